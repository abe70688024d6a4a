// The part of JSON Schema that fields use.
#include "lib/catalog/field.hpp"

#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/uuid.hpp"

#include <algorithm>
#include <map>

namespace holdfast::catalog {

namespace {

using nlohmann::json;

[[noreturn]] void refuse_value(const std::string& name, const std::string& what) {
  throw FieldError(FieldError::What::invalid, name, name + ": " + what);
}

std::size_t code_points(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void check_text(const std::string& name, const json& schema, const json& value) {
  if (!value.is_string()) refuse_value(name, "not a text");
  const auto& text = value.get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) refuse_value(name, "may not hold U+0000");
  const auto length = code_points(text);
  if (length < schema.value("minLength", std::size_t{0})) refuse_value(name, "too short");
  if (length > schema.value("maxLength", length)) refuse_value(name, "too long");
  if (schema.value("format", "") == "uuid" && !base::is_uuid(text)) refuse_value(name, "not an id");
  if (schema.contains("x-time") && base::canonical_timestamp(text).empty())
    refuse_value(name, "not a time, as 2026-11-22T14:00:00Z");
  try {
    if (schema.contains("x-size")) base::parse_size(text);
    if (schema.contains("x-duration")) base::parse_duration(text);
  } catch (const base::Error& error) {
    refuse_value(name, error.what());
  }
  if (const auto all = schema.find("enum");
      all != schema.end() && std::find(all->begin(), all->end(), value) == all->end())
    refuse_value(name, "one of " + all->dump());
}

void check_number(const std::string& name, const json& schema, const json& value) {
  const auto least = schema.value("minimum", std::int64_t{0}), most = schema.value("maximum", std::int64_t{0});
  if (!value.is_number_integer() || value < least || value > most)
    refuse_value(name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

void check_array(const std::string& name, const json& schema, const json& value) {
  if (!value.is_array()) refuse_value(name, "not an array");
  if (value.size() < schema.value("minItems", std::size_t{0})) refuse_value(name, "too few");
  if (value.size() > schema.value("maxItems", value.size())) refuse_value(name, "too many");
  for (const auto& item : value)
    check_schema(name, schema["items"], item);
}

void check_object(const std::string& name, const json& schema, const json& value) {
  if (!value.is_object()) refuse_value(name, "not an object");
  for (const auto& [member, inner] : value.items()) {
    check_text(name, json::object(), member);
    check_schema(name + "." + member, schema["additionalProperties"], inner);
  }
}

} // namespace

std::string_view FieldError::code() const noexcept {
  switch (what_) {
  case What::unknown:
    return "field_unknown";
  case What::missing:
    return "field_missing";
  case What::repeated:
    return "field_repeated";
  case What::invalid:
    return "field_invalid";
  }
  return {};
}

void check_schema(const std::string& name, const json& schema, const json& value) {
  const auto& type = schema["type"];
  if (type == "string") check_text(name, schema, value);
  if (type == "integer") check_number(name, schema, value);
  if (type == "boolean" && !value.is_boolean()) refuse_value(name, "true or false");
  if (type == "array") check_array(name, schema, value);
  if (type == "object") check_object(name, schema, value);
}

const json& schema_of(const Field& field) {
  static thread_local std::map<std::string_view, json> parsed;
  const auto found = parsed.find(field.schema);
  return found != parsed.end() ? found->second : parsed.emplace(field.schema, json::parse(field.schema)).first->second;
}

json value_of_text(const json& schema, const std::string& text) {
  const auto& type = schema["type"];
  if (type == "integer")
    if (const auto value = base::parse_number<std::int64_t>(text)) return *value;
  if (const auto word = base::lower_case(text); type == "boolean" && (word == "true" || word == "false"))
    return word == "true";
  return text;
}

} // namespace holdfast::catalog
