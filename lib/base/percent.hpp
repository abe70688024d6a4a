#pragma once
// Percent codes of URLs. Pure; any thread.

#include "lib/base/characters.hpp"

#include <string>
#include <string_view>

namespace holdfast::base {

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

constexpr bool is_graphic(char c) noexcept { return c > ' ' && c < 0x7F; } // ASCII, no blank, no control character

// " b" -> "%20b"; characters that `stays` accepts stay.
template <typename Stays>
std::string percent_encode(std::string_view text, Stays&& stays) {
  std::string encoded;
  for (const char c : text)
    stays(c) ? encoded.push_back(c) : append_percent(encoded, c);
  return encoded;
}

} // namespace holdfast::base
