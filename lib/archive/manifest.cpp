#include "lib/archive/manifest.hpp"

namespace holdfast::archive {

std::string manifest_line(std::string_view sha256, std::string_view path) {
  std::string escaped;
  escaped.reserve(path.size());
  for (const char c : path) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\r') {
      escaped += "\\r";
    } else {
      escaped += c;
    }
  }
  std::string line = escaped.size() == path.size() ? "" : "\\";
  line += sha256;
  line += "  ";
  line += escaped;
  line += '\n';
  return line;
}

} // namespace holdfast::archive
