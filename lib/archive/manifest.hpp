#pragma once
// manifest-sha256.txt: one line for each file of an attempt, in the format that `sha256sum -c` checks. Pure functions.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::archive {

inline constexpr const char* kManifestName = "manifest-sha256.txt";

// A file of an attempt as it is published.
struct PublishedFile {
  std::string sha256; // 64 hex digits
  std::uint64_t size{0};
};
using PublishedFiles = std::map<std::string, PublishedFile>; // by path, relative to the attempt

// "<digest>  <path>\n"; a path with a backslash, line feed or carriage return is escaped and the line starts with a
// backslash, as coreutils does.
std::string manifest_line(std::string_view sha256, std::string_view path);

} // namespace holdfast::archive
