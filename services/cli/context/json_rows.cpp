#include "services/cli/context/json_rows.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace holdfast::cli {

using Json = nlohmann::ordered_json;

namespace {

// How PostgreSQL writes a document: with blanks.
std::string document_text(const Json& value) {
  std::string text;
  if (value.is_array()) {
    for (const auto& one : value)
      text += (text.empty() ? "" : ", ") + document_text(one);
    return "[" + text + "]";
  }
  if (!value.is_object()) return base::json_text(value);
  for (const auto& [name, one] : value.items())
    text += (text.empty() ? "" : ", ") + base::json_text(Json(name)) + ": " + document_text(one);
  return "{" + text + "}";
}

} // namespace

Column::Column(std::string name_in, const Json& schema) : name(std::move(name_in)) {
  const auto format = schema.value("format", "");
  if (format == "date-time") kind = pg::Kind::time;
  if (format == "interval") kind = pg::Kind::interval;
  if (schema.contains("items") && schema["items"] == Json{{"type", "string"}}) kind = pg::Kind::list;
  document = !schema.contains("type") && !schema.contains("enum") && !schema.contains("anyOf");
}

std::optional<std::string> Column::cell(const Json& value) const {
  if (value.is_null()) return std::nullopt;
  if (document) return document_text(value);
  if (value.is_array()) return pg::Params::of(value.get<std::vector<std::string>>()).values().front();
  if (value.is_boolean()) return value.get<bool>() ? "t" : "f";
  if (!value.is_string()) return value.dump();
  auto text = value.get<std::string>();
  if (kind == pg::Kind::time && text.size() > 19 && text[10] == 'T') {
    text[10] = ' ';
    if (text.ends_with("+00:00")) text.resize(text.size() - 3);
  }
  return text;
}

pg::Result table(const std::vector<Column>& columns, const std::vector<Json>& items) {
  std::vector<std::string> names;
  std::vector<pg::Kind> kinds;
  for (const auto& column : columns) {
    names.push_back(column.name);
    kinds.push_back(column.kind);
  }
  std::vector<pg::Result::Cells> rows;
  for (const auto& item : items) {
    auto& row = rows.emplace_back();
    for (const auto& column : columns)
      row.push_back(column.cell(item.value(column.name, Json())));
  }
  return {std::move(names), std::move(kinds), std::move(rows)};
}

void fill_age(Json& item) {
  if (!item.contains("age") || !item["age"].is_null()) return;
  const auto start = base::text_at(item, item.contains("created_at") ? "created_at" : "opened_at");
  const auto since = base::read_timestamp(std::string(start));
  if (!since) return;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now() - *since);
  const auto seconds = std::max<std::int64_t>(age.count(), 0) / 1000;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%02lld:%02lld:%02lld", static_cast<long long>(seconds / 3600),
                static_cast<long long>(seconds / 60 % 60), static_cast<long long>(seconds % 60));
  item["age"] = text.data();
}

} // namespace holdfast::cli
