#include "lib/catalog/row_schema.hpp"

#include "lib/base/text/text.hpp"

#include <algorithm>
#include <set>

namespace holdfast::catalog {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSearch = "id crawl_id url excerpt rank outcome sealed_at tags cursor";
constexpr std::string_view kStatus = "crawls snapshots archived failed bytes workers slots crawls_open snapshots_open "
                                     "snapshots_held hooks_running crawls_paused crawls_to_do runners workers_lapsed "
                                     "bytes_saved";

Json schema_of_type(std::string_view type, std::string_view name) {
  constexpr std::string_view kArray = "[]";
  if (type.ends_with(kArray))
    return {{"type", "array"}, {"items", schema_of_type(type.substr(0, type.size() - kArray.size()), "")}};
  if (type == "uuid") return {{"type", "string"}, {"format", "uuid"}};
  if (type == "bigint") return {{"type", "integer"}, {"format", "int64"}};
  if (type == "integer") return {{"type", "integer"}, {"format", "int32"}};
  if (type == "numeric" || type == "double precision" || type == "real") return {{"type", "number"}};
  if (type == "boolean") return {{"type", "boolean"}};
  if (type == "interval") return {{"type", "string"}, {"format", "interval"}};
  if (type == "timestamp with time zone") return {{"type", "string"}, {"format", "date-time"}};
  if (type == "jsonb") return Json::object(); // anything
  if (name == "url") return {{"type", "string"}, {"format", "uri"}};
  return {{"type", "string"}};
}

void allow_null(Json& schema) {
  if (schema.contains("enum")) // generated clients make one type of it
    schema = {{"anyOf", Json::array({schema, {{"type", "null"}}})}};
  else if (schema.contains("type"))
    schema["type"] = Json::array({schema["type"], "null"});
}

// The values of a column by which the list can be filtered.
std::vector<std::string> values_in(const List& list, std::string_view column) {
  for (const auto& [filter, of] : list.filters)
    if ((of.empty() ? filter : of) == column)
      if (auto values = values_of(list, filter); !values.empty()) return values;
  return {};
}

} // namespace

std::map<std::string, Json, std::less<>> row_schemas(pg::Connection& connection) {
  std::map<std::string, const List*, std::less<>> shown;
  for (const auto& list : lists())
    shown.emplace(list.view(), &list);
  std::map<std::string, Json, std::less<>> schemas;
  for (const auto row : connection.call("select * from holdfast.answer_columns()")) {
    const auto source = row.text("source"), name = row.text("name");
    const auto list = shown.find(source);
    auto schema = schema_of_type(row.text("type"), name);
    if (list != shown.end())
      if (const auto values = values_in(*list->second, name); !values.empty()) schema["enum"] = values;
    const auto always = source == "search" ? kSearch : list != shown.end() ? list->second->always : kStatus;
    const auto known = base::split(std::string(always), " ");
    if (std::find(known.begin(), known.end(), name) == known.end()) allow_null(schema);
    if (const auto about = row["about"].value_or(""); !about.empty()) schema["description"] = about;
    auto& made = schemas[source];
    made["type"] = "object";
    made["properties"][name] = std::move(schema);
    made["required"].push_back(name);
  }
  return schemas;
}

} // namespace holdfast::catalog
