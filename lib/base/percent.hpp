#pragma once
// Percent codes of URLs. Pure; any thread.

#include "lib/base/characters.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace holdfast::base {

// What never needs a code (RFC 3986).
constexpr bool is_unreserved(char c) noexcept {
  return is_alpha(c) || is_digit(c) || std::string_view("-._~").find(c) != std::string_view::npos;
}

// Everything but unreserved characters and those of `kept` as %XX.
inline std::string percent_encoded(std::string_view text, std::string_view kept = "/") {
  std::string encoded;
  for (const char c : text)
    is_unreserved(c) || kept.find(c) != std::string_view::npos ? encoded.push_back(c) : append_percent(encoded, c);
  return encoded;
}

// "a%40b" -> "a@b"; what is no code stays.
inline std::string percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = percent_decoded(text, i);
    decoded += byte < 0 ? text[i] : static_cast<char>(byte);
    if (byte >= 0) i += 2;
  }
  return decoded;
}

// Of a form: "+" is a blank.
inline std::string form_decode(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return percent_decode(text);
}

// Encodes what is not `allowed`, decodes what needs no code, spells the other codes in upper case. A "%" that begins no
// code is a character like others. Doing it twice changes nothing.
template <typename Allowed>
std::string canonical_codes(std::string_view text, Allowed allowed) {
  std::string canonical;
  canonical.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int byte = percent_decoded(text, i);
    const char c = byte >= 0 ? static_cast<char>(byte) : text[i];
    (byte >= 0 ? is_unreserved(c) : allowed(c)) ? canonical.push_back(c) : append_percent(canonical, c);
    if (byte >= 0) i += 2;
  }
  return canonical;
}

} // namespace holdfast::base
