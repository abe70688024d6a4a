#include "lib/pg/params.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace holdfast::pg {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Length of the well-formed sequence at `at`, or 0. As strict as the server: no overlong forms, no surrogates, nothing
// past U+10FFFF; and no NUL, which the protocol cannot carry.
std::size_t well_formed_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[at + index]); };
  const std::size_t left = text.size() - at;
  const unsigned char first = byte(0);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2 || left < 2 || !is_continuation(byte(1))) return 0;
  if (first < 0xE0) return 2;
  if (left < 3 || !is_continuation(byte(2))) return 0;
  if (first < 0xF0) {
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first > 0xF4 || left < 4 || !is_continuation(byte(3))) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return 4;
}

void append_array_element(std::string& literal, std::string_view value) {
  literal += '"';
  for (const char c : sanitize_utf8(value)) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  literal += '"';
}

} // namespace

std::string sanitize_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t length = well_formed_length(text, at); length > 0) {
      clean.append(text, at, length);
      at += length;
    } else {
      clean += kReplacement;
      ++at;
    }
  }
  return clean;
}

Params& Params::add(std::nullopt_t) {
  values_.emplace_back(std::nullopt);
  return *this;
}

Params& Params::add(std::string_view value) {
  values_.emplace_back(sanitize_utf8(value));
  return *this;
}

Params& Params::add(bool value) {
  values_.emplace_back(value ? "t" : "f");
  return *this;
}

Params& Params::add(double value) {
  if (std::isnan(value)) {
    values_.emplace_back("NaN");
  } else if (std::isinf(value)) {
    values_.emplace_back(value > 0 ? "Infinity" : "-Infinity");
  } else {
    std::array<char, 64> buffer{}; // the shortest text that reads back as the same number
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    values_.emplace_back(std::string(buffer.data(), end));
  }
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
