#pragma once
// Text for a POSIX shell. Pure; any thread.

#include <string>
#include <string_view>

namespace holdfast::base {

// One word, in single quotes, whatever it holds.
inline std::string shell_quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word)
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  return text + "'";
}

} // namespace holdfast::base
