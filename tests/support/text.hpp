#pragma once
// Text and files as a check looks at them.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace holdfast::test {

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The bytes of a file; empty if it cannot be read.
inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace holdfast::test
