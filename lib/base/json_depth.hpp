#pragma once
// Whether JSON of a stranger nests deeper than is sound. Pure; any thread.

#include <string_view>

namespace holdfast::base {

// Printing JSON recurses, so its depth has to be bounded before it is parsed.
inline bool nests_too_deep(std::string_view text, int most = 64) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (++depth > most) return true;
    } else if (letter == '}' || letter == ']') {
      --depth;
    }
  }
  return false;
}

} // namespace holdfast::base
