#include "lib/pg/params.hpp"

#include "lib/base/text/utf8.hpp"

namespace holdfast::pg {
namespace {

void append_array_element(std::string& literal, std::string_view value) {
  literal += '"';
  for (const char c : wire_text(value)) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  literal += '"';
}

} // namespace

std::string wire_text(std::string_view text) {
  std::string clean = base::repair_utf8(text);
  for (auto at = clean.find('\0'); at != std::string::npos; at = clean.find('\0', at))
    clean.replace(at, 1, base::kReplacement);
  return clean;
}

Params& Params::add(std::nullopt_t) {
  values_.emplace_back(std::nullopt);
  return *this;
}

Params& Params::add(std::string_view value) {
  values_.emplace_back(wire_text(value));
  return *this;
}

Params& Params::add(bool value) {
  values_.emplace_back(value ? "t" : "f");
  return *this;
}

Params& Params::add(std::chrono::milliseconds value) {
  values_.emplace_back(std::to_string(value.count()) + " milliseconds");
  return *this;
}

Params& Params::add(const std::vector<std::string>& values) {
  std::string literal = "{";
  for (const auto& value : values) {
    if (literal.size() > 1) literal += ',';
    append_array_element(literal, value);
  }
  values_.emplace_back(literal + '}');
  return *this;
}

Params& Params::add(const std::vector<std::optional<std::string>>& values) {
  std::string literal = "{";
  for (const auto& value : values) {
    if (literal.size() > 1) literal += ',';
    if (value) {
      append_array_element(literal, *value);
    } else {
      literal += "NULL";
    }
  }
  values_.emplace_back(literal + '}');
  return *this;
}

Params& Params::add(const std::vector<std::int64_t>& values) {
  std::string literal = "{";
  for (const auto value : values) {
    if (literal.size() > 1) literal += ',';
    literal += std::to_string(value);
  }
  values_.emplace_back(literal + '}');
  return *this;
}

} // namespace holdfast::pg
