#pragma once
// Bytes as base64 or base32 text (RFC 4648). Pure functions, any thread.

#include "lib/base/text/text.hpp"

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>

namespace holdfast::base {

std::string base64_decode(std::string_view text); // what is not base64 is skipped
std::string base64_encode(std::string_view bytes);
std::string base32_encode(std::string_view bytes);

// Percent codes of URLs. Pure; any thread.

// Returns true for characters that never need percent-encoding (RFC 3986).
constexpr bool is_unreserved(char c) noexcept {
  return is_alpha(c) || is_digit(c) || std::string_view("-._~").find(c) != std::string_view::npos;
}

constexpr bool is_graphic(char c) noexcept { return c > ' ' && c < 0x7F; } // ASCII, no blank, no control character

// The byte that "%4F" at `position` stands for, or -1 if there is no complete escape.
constexpr int percent_decoded(std::string_view text, std::size_t position) noexcept {
  if (position + 2 >= text.size() || text[position] != '%') return -1;
  const int high = hex_value(text[position + 1]);
  const int low = hex_value(text[position + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// "*" -> "%2A".
inline void append_percent(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  out += '%';
  out += kDigits[static_cast<unsigned char>(c) >> 4];
  out += kDigits[static_cast<unsigned char>(c) & 15];
}

// " b" -> "%20b"; characters that `stays` accepts stay.
template <std::predicate<char> Stays>
std::string percent_encode(std::string_view text, Stays stays) {
  std::string encoded;
  for (const char c : text)
    stays(c) ? encoded.push_back(c) : append_percent(encoded, c);
  return encoded;
}

// Unreserved characters and those of `kept` stay.
inline std::string percent_encode(std::string_view text, std::string_view kept = "/") {
  return percent_encode(text, [kept](char c) { return is_unreserved(c) || kept.find(c) != std::string_view::npos; });
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

// Decodes a value of a form, where "+" is a blank.
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

// A file name with every byte that is not part of valid UTF-8 written as %XX.
std::string percent_encode_invalid_utf8(std::string_view name);

} // namespace holdfast::base
