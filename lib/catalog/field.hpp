#pragma once
// A field of a request: a member of its JSON, a field of a form, an option of the command line. Immutable; any thread.

#include "lib/base/error.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::catalog {

// `schema` is a JSON schema, in JSON: {"depth", R"({"type":"integer"})"}. On the command line it is --max-urls for
// max_urls, unless `flags` says otherwise.
struct Field {
  std::string_view name, schema, what;
  bool required{false};
  std::string_view flags{};
};

namespace schema {
inline constexpr std::string_view kWord =
    R"({"type":"string","maxLength":200})"; // for addresses: all must fit a header
inline constexpr std::string_view kWords = R"({"type":"string","minLength":1,"maxLength":2000})"; // or a URL
inline constexpr std::string_view kText = R"({"type":"string","maxLength":10000})";
inline constexpr std::string_view kTexts =
    R"({"type":"array","items":{"type":"string","maxLength":2000},"maxItems":100})";
// Words; on the command line and in forms one may hold several: "a,b".
inline constexpr std::string_view kNames =
    R"({"type":"array","items":{"type":"string","maxLength":2000},"maxItems":100,"x-commas":true})";
inline constexpr std::string_view kUrlList =
    R"({"type":"array","items":{"type":"string","maxLength":2000},"maxItems":1000})";
// Formats of times, sizes and durations, for which JSON schema has no names.
inline constexpr std::string_view kTime = R"({"type":"string","x-time":true,"maxLength":40})";
inline constexpr std::string_view kSize = R"({"type":"string","x-size":true,"maxLength":40})";
inline constexpr std::string_view kDuration = R"({"type":"string","x-duration":true,"maxLength":40})";
inline constexpr std::string_view kFlag = R"({"type":"boolean"})";
inline constexpr std::string_view kId = R"({"type":"string","format":"uuid"})";
inline constexpr std::string_view kIds =
    R"({"type":"array","items":{"type":"string","format":"uuid"},"minItems":1,"maxItems":1000})";
inline constexpr std::string_view kCount = R"({"type":"integer","minimum":0,"maximum":1000000000})";
inline constexpr std::string_view kPositive = R"({"type":"integer","minimum":1,"maximum":1000000000})";
inline constexpr std::string_view kPriority = R"({"type":"integer","minimum":-1000000,"maximum":1000000})";
inline constexpr std::string_view kLimit = R"({"type":"integer","minimum":1,"maximum":1000})";
} // namespace schema

// A field that a request may not have, lacks, has twice, or has with a value that does not fit.
class FieldError : public base::Error {
public:
  enum class What { unknown, missing, repeated, invalid };
  FieldError(What what, std::string field, const std::string& message, std::string hint = {})
      : Error(base::ErrorClass::usage, message, std::move(hint)), what_(what), field_(std::move(field)) {}
  std::string_view code() const noexcept; // "field_unknown" and so on, for programs
  const std::string& field() const noexcept { return field_; }

private:
  What what_;
  std::string field_;
};

// URLs of a request that cannot be archived, each with its place ("urls/3", "text:4") and what is wrong with it.
class UrlErrors : public base::Error {
public:
  using Urls = std::vector<std::pair<std::string, std::string>>;
  UrlErrors(Urls urls, const std::string& message, std::string hint)
      : Error(base::ErrorClass::refused, message, std::move(hint)), urls_(std::move(urls)) {}
  const Urls& urls() const noexcept { return urls_; }

private:
  Urls urls_;
};

// The schema of a field; parsed once in each thread.
const nlohmann::json& schema_of(const Field& field);
// Throws FieldError, which begins with `name`, if a value does not fit its schema.
void check_schema(const std::string& name, const nlohmann::json& schema, const nlohmann::json& value);
// Converts a text to the type that its schema requires.
nlohmann::json value_of_text(const nlohmann::json& schema, const std::string& text);

} // namespace holdfast::catalog
