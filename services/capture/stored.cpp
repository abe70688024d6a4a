#include "services/capture/stored.hpp"

#include <fstream>
#include <string>

namespace holdfast::capture {

// "sha1:... 2026-01-31T23:59:59Z https://..." on each line; one that is still being written has no end.
void know_stored(const std::filesystem::path& list, warc::Writer& writer) {
  std::ifstream file(list);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto first = line.find(' '), second = line.find(' ', first + 1);
    if (second == std::string::npos) continue;
    writer.know(line.substr(second + 1), line.substr(0, first), line.substr(first + 1, second - first - 1));
  }
}

} // namespace holdfast::capture
