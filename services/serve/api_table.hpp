#pragma once
// The operations of the API. Immutable; any thread.

#include "services/serve/api.hpp"

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
  std::vector<std::string> texts(const char* name) const;
  bool checked(const char* name) const;
};

// A name and a JSON schema, in JSON: {"depth", R"({"type":"integer"})"}.
struct ApiField {
  std::string_view name, schema, what;
  bool required{false};
};

struct ApiOperation {
  std::string_view method, path; // path: below /api/; "{id}" stands for one part
  std::string_view name, summary;
  Response (*answer)(const ApiCall&);
  std::span<const ApiField> parameters, body;
  unsigned status{200};
  std::string_view type{"application/json"}; // of a good answer

  bool changes() const noexcept { return method != "GET"; }
};

// The schemas that many fields have.
namespace schema {
inline constexpr std::string_view kWord =
    R"({"type":"string","maxLength":200})"; // for addresses: all must fit a header
inline constexpr std::string_view kText = R"({"type":"string","maxLength":10000})";
inline constexpr std::string_view kTexts =
    R"({"type":"array","items":{"type":"string","maxLength":2000},"maxItems":100})";
inline constexpr std::string_view kUrlList =
    R"({"type":"array","items":{"type":"string","maxLength":2000},"maxItems":1000})";
inline constexpr std::string_view kTime =
    R"({"type":"string","x-time":true,"maxLength":40})"; // what a time may be written as, no format has a name for
inline constexpr std::string_view kFlag = R"({"type":"boolean"})";
inline constexpr std::string_view kId = R"({"type":"string","format":"uuid"})";
inline constexpr std::string_view kIds =
    R"({"type":"array","items":{"type":"string","format":"uuid"},"minItems":1,"maxItems":1000})";
inline constexpr std::string_view kCount = R"({"type":"integer","minimum":0,"maximum":1000000000})";
inline constexpr std::string_view kPriority = R"({"type":"integer","minimum":-1000000,"maximum":1000000})";
inline constexpr std::string_view kLimit = R"({"type":"integer","minimum":1,"maximum":1000})";
} // namespace schema

// Fields that several operations have.
inline constexpr ApiField kReason[] = {{"why", schema::kText, "A reason, for others to read"}};
inline constexpr ApiField kAddTags{"add_tags", schema::kTexts, "Tags to add"};
inline constexpr ApiField kRemoveTags{"remove_tags", schema::kTexts, "Tags to remove"};

std::span<const ApiOperation> api_operations();
// The operation that reads what is at the path of this one; null: none.
const ApiOperation* get_beside(const ApiOperation& operation);
// Parts of it, in the files of these names.
std::span<const ApiOperation> api_reads();
std::span<const ApiOperation> api_crawls();
std::span<const ApiOperation> api_commands();
std::span<const ApiOperation> api_archivebox();

const std::string& openapi_document();

// The schema of a field of the table; parsed once.
const nlohmann::json& schema_of(const ApiField& field);
// Throws Error(usage), which begins with `name`, if a value does not fit its schema (api_schema.cpp).
void check_schema(const std::string& name, const nlohmann::json& schema, const nlohmann::json& value);
// A value that was written as text, in the type that its schema asks for.
nlohmann::json value_of_text(const nlohmann::json& schema, const std::string& text);

Response json_response(const Json& json, unsigned status = 200);
Response changed(bool value);
Response not_found(const std::string& what);
// Lines of JSON as an array.
Json array_of(const std::vector<std::string>& lines);
// The id of the path, if it names a thing of this kind: crawl, snapshot, process.
std::optional<std::string> target(const ApiCall& call, const std::string& kind);
store::Command command(const ApiCall& call); // with the reason and the time of the body

} // namespace holdfast::serve
