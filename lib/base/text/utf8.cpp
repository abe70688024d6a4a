#include "lib/base/text/utf8.hpp"

namespace holdfast::base {

std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) -> unsigned {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const auto follows = [&](std::size_t at) { return (byte(at) & 0xC0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !follows(1)) return 0;
  if (lead < 0xE0) return 2;
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) || !follows(2)) return 0;
  if (lead < 0xF0) return 3;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F) || !follows(3)) return 0;
  return 4;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string repair_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  std::size_t begin = 0; // of what is valid
  for (std::size_t at = 0; at < text.size();) {
    const auto length = utf8_length(text.substr(at));
    at += length;
    if (length > 0) continue;
    clean += text.substr(begin, at - begin);
    clean += kReplacement;
    begin = ++at;
  }
  return clean += text.substr(begin);
}

Character first_character(std::string_view text) noexcept {
  const auto length = utf8_length(text);
  if (length == 0) return {U'\uFFFD', 1};
  const auto lead = static_cast<unsigned char>(text[0]);
  char32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  for (std::size_t at = 1; at < length; ++at)
    code = (code << 6) | (static_cast<unsigned char>(text[at]) & 0x3Fu);
  return {code, length};
}

std::string utf8_of(char32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

bool is_unprintable(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

} // namespace holdfast::base
