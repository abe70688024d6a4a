#pragma once
// The operations of the API: those that read or add, and the commands of lib/catalog/operation.hpp. Immutable;
// any thread.

#include "lib/catalog/field.hpp"
#include "lib/catalog/list.hpp"
#include "services/serve/api/api.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::serve {

struct ApiOperation;

// Json: keeps the order in which members were written. Parameters and body are checked against the table before.
using Json = nlohmann::ordered_json;

struct ApiCall {
  pg::Connection& connection;
  const Request& request;
  const Caller& caller;
  const ApiOptions& options;
  const ApiOperation& operation;
  const std::string& id;     // of the path
  const std::string& new_id; // for what the call makes; the same if the call is repeated
  const nlohmann::json& parameters;
  const nlohmann::json& body; // an object, maybe an empty one

  std::optional<std::string> parameter(const char* name) const;
  int number(const char* name, int otherwise) const; // a parameter
  bool flag(const char* name) const;                 // a parameter
  std::string text(const char* name) const;          // of the body; empty: not given
  bool checked(const char* name) const;
};

using ApiField = catalog::Field;

struct ApiOperation {
  std::string_view method, path; // path: below /api/; "{id}" stands for one part
  std::string_view name, summary;
  Response (*answer)(const ApiCall&);
  std::string_view schema; // of a good answer: a name of the OpenAPI document, or "NAME[]" for a page of a list
  std::span<const ApiField> parameters{}, body{};
  unsigned status{200};
  std::string_view type{"application/json"}; // of a good answer

  bool changes() const noexcept { return method != "GET"; }
};

namespace schema = catalog::schema;

std::span<const ApiOperation> api_operations();
// The operation that reads what is at the path of this one; null: none.
const ApiOperation* get_beside(const ApiOperation& operation);
std::span<const ApiOperation> api_reads();
std::span<const ApiOperation> api_crawls();
std::span<const ApiOperation> api_archivebox();

const std::string& openapi_document(pg::Connection& connection); // made once

Response json_response(const Json& json, unsigned status = 200);
Response not_found(const std::string& what);
std::string answer_name(const catalog::List& list); // of a row, in the OpenAPI document: "Crawl"
Json array_of(const std::vector<std::string>& lines);
// The id of the path, if it names a thing of this kind: crawl, snapshot, process.
std::optional<std::string> target(const ApiCall& call, const std::string& kind);

} // namespace holdfast::serve
