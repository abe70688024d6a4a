#pragma once
// manifest-sha256.txt: one line for each file of an attempt, in the format that `sha256sum -c` checks. Pure functions.

#include <string>
#include <string_view>

namespace holdfast::archive {

inline constexpr const char* kManifestName = "manifest-sha256.txt";

// "<digest>  <path>\n"; a path with a backslash, line feed or carriage return is escaped and the line starts with a
// backslash, as coreutils does.
std::string manifest_line(std::string_view sha256, std::string_view path);

} // namespace holdfast::archive
