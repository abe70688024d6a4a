// The OpenAPI document, made of the table of operations and the columns of the views.
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/catalog/row_schema.hpp"
#include "services/serve/api/table.hpp"
#include "services/serve/embedded.hpp"

#include <algorithm>
#include <string>

namespace holdfast::serve {

namespace {

Json parameters_of(const ApiOperation& operation) {
  auto list = Json::array();
  if (operation.path.find("{id}") != std::string_view::npos)
    list.push_back({{"name", "id"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  for (const auto& field : operation.parameters)
    list.push_back({{"name", field.name},
                    {"in", "query"},
                    {"required", field.required},
                    {"description", field.what},
                    {"schema", Json::parse(field.schema)}});
  if (operation.method == "POST")
    list.push_back({{"name", "Idempotency-Key"},
                    {"in", "header"},
                    {"description", "For a day, the same key with the same body makes nothing new"},
                    {"schema", {{"type", "string"}, {"maxLength", 255}}}});
  if (operation.changes() && get_beside(operation) != nullptr && operation.path.ends_with("{id}"))
    list.push_back({{"name", "If-Match"},
                    {"in", "header"},
                    {"description", "Change it only if this is its ETag"},
                    {"schema", {{"type", "string"}}}});
  return list;
}

Json request_body(const ApiOperation& operation) {
  Json properties = Json::object();
  auto required = Json::array();
  for (const auto& field : operation.body) {
    auto schema = Json::parse(field.schema);
    schema["description"] = field.what;
    properties[std::string(field.name)] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return {{"required", !required.empty()}, {"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
}

Json reference_to(std::string_view name) { return {{"$ref", "#/components/schemas/" + std::string(name)}}; }

// A page of a list whose cursor is of a type.
Json page_schema(std::string_view row, Json cursor, bool total) {
  cursor["type"] = Json::array({cursor["type"], "null"});
  cursor["description"] = "Continues behind this page; null: it is the last";
  Json properties{{"items", {{"type", "array"}, {"items", reference_to(row)}}}, {"cursor", std::move(cursor)}};
  if (total)
    properties["total"] = {{"type", Json::array({"integer", "null"})},
                           {"format", "int64"},
                           {"description", "Rows of the list, where that is known without counting"}};
  auto required = Json::array();
  for (const auto& [name, schema] : properties.items())
    required.push_back(name);
  return {{"type", "object"}, {"required", required}, {"properties", std::move(properties)}};
}

Json responses_of(const ApiOperation& operation) {
  std::string name(operation.schema);
  if (name.ends_with("[]")) name.replace(name.size() - 2, 2, "Page");
  const Json answer{
      {std::string(operation.type), {{"schema", name.empty() ? Json{{"type", "string"}} : reference_to(name)}}}};
  Json all = Json::object();
  all[std::to_string(operation.status)] = {{"description", operation.summary}, {"content", answer}};
  if (operation.status == 201) all["200"] = {{"description", "Nothing was made"}, {"content", answer}};
  if (!operation.changes()) all["304"] = {{"description", "Not modified since the ETag of If-None-Match"}};
  const Json problem{{"$ref", "#/components/responses/Problem"}};
  for (const char* status : {"400", "401", "404", "422", "429", "503"})
    all[status] = problem;
  if (operation.changes())
    for (const char* status : {"403", "409", "412", "413"})
      all[status] = problem;
  return all;
}

// The rows of lists, what else is answered (answers.json), and pages of these.
Json schemas_of(pg::Connection& connection) {
  auto rows = catalog::row_schemas(connection);
  auto schemas = Json::parse(embedded::answers_json);
  for (const auto& list : catalog::lists())
    if (list.for_guests) schemas[answer_name(list)] = rows.at(list.view());
  schemas["ShelfEntry"] = schemas["Snapshot"];
  schemas["Found"] = rows.at("search");
  auto& status = schemas["Status"] = rows.at("v_total");
  status["properties"].update(rows.at("v_status")["properties"]);
  for (const auto& name : rows.at("v_status")["required"])
    status["required"].push_back(name);
  for (const auto& operation : api_operations())
    if (operation.schema.ends_with("[]")) {
      const std::string row(operation.schema.substr(0, operation.schema.size() - 2));
      const auto cursor = std::find_if(operation.parameters.begin(), operation.parameters.end(),
                                       [](const auto& one) { return one.name == "cursor"; });
      schemas[row + "Page"] = page_schema(
          row, cursor != operation.parameters.end() ? Json::parse(cursor->schema) : Json{{"type", "integer"}},
          operation.path != "v1/search" && operation.path != "v1/events" && row != "File" && row != "ShelfEntry");
    }
  return schemas;
}

std::string made_document(pg::Connection& connection) {
  Json paths = Json::object();
  for (const auto& operation : api_operations()) {
    Json entry{{"operationId", operation.name},
               {"summary", operation.summary},
               {"parameters", parameters_of(operation)},
               {"responses", responses_of(operation)}};
    if (!operation.body.empty()) entry["requestBody"] = request_body(operation);
    paths[std::string(kApi) + std::string(operation.path)][base::lower_case(operation.method)] = std::move(entry);
  }
  const Json problem{{"description", "A problem (RFC 9457). Its title is the class of the error, as in exit codes"},
                     {"content", {{"application/problem+json", {{"schema", reference_to("Problem")}}}}}};
  const Json document{
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Holdfast"},
        {"version", "1"},
        {"description", "Archive web pages: what the commands of holdfast do, over HTTP. Operations that change "
                        "something need a token with the role operator."}}},
      {"servers", Json::array({{{"url", "/"}}})},
      {"security", Json::array({{{"token", Json::array()}}})},
      {"paths", std::move(paths)},
      {"components",
       {{"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}},
        {"responses", {{"Problem", problem}}},
        {"schemas", schemas_of(connection)}}}};
  return base::json_text(document) + "\n";
}

} // namespace

std::string answer_name(const catalog::List& list) {
  std::string name(list.one);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

const std::string& openapi_document(pg::Connection& connection) {
  static const auto text = made_document(connection);
  return text;
}

} // namespace holdfast::serve
