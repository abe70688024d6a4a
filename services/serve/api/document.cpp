// The OpenAPI document, made of the table of operations.
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "services/serve/api/table.hpp"

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

Json responses_of(const ApiOperation& operation) {
  const char* schema = operation.type == "application/json" ? "object" : "string";
  const Json answer{{std::string(operation.type), {{"schema", {{"type", schema}}}}}};
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

Json problem_schema() {
  const Json text{{"type", "string"}};
  return {{"type", "object"},
          {"required", Json::array({"type", "title", "status", "detail", "code"})},
          {"properties",
           {{"type", text},
            {"title", text},
            {"status", {{"type", "integer"}}},
            {"detail", text},
            {"code", text},
            {"hint", text},
            {"field", text},
            {"request_id", text}}}};
}

} // namespace

const std::string& openapi_document() {
  static const auto text = [] {
    Json paths = Json::object();
    for (const auto& operation : api_operations()) {
      std::string method(operation.method);
      std::transform(method.begin(), method.end(), method.begin(), [](char c) { return static_cast<char>(c | 0x20); });
      Json entry{{"operationId", operation.name},
                 {"summary", operation.summary},
                 {"parameters", parameters_of(operation)},
                 {"responses", responses_of(operation)}};
      if (!operation.body.empty()) entry["requestBody"] = request_body(operation);
      paths[std::string(kApi) + std::string(operation.path)][method] = std::move(entry);
    }
    const Json problem{
        {"description", "A problem (RFC 9457). Its title is the class of the error, as in exit codes"},
        {"content", {{"application/problem+json", {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}};
    const Json security = Json::array({{{"token", Json::array()}}});
    const Json document{
        {"openapi", "3.1.0"},
        {"info",
         {{"title", "Holdfast"},
          {"version", "1"},
          {"description", "Archive web pages: what the commands of holdfast do, over HTTP. Operations that change "
                          "something need a token with the role operator."}}},
        {"servers", Json::array({{{"url", "/"}}})},
        {"security", security},
        {"paths", std::move(paths)},
        {"components",
         {{"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}},
          {"responses", {{"Problem", problem}}},
          {"schemas", {{"Problem", problem_schema()}}}}}};
    return base::json_text(document) + "\n";
  }();
  return text;
}

} // namespace holdfast::serve
