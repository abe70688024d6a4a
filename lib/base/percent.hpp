#pragma once
// Percent codes of URLs, undone. Pure; any thread.

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

} // namespace holdfast::base
