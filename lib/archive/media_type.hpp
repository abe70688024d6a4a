#pragma once
// MIME types of archived files, by extension first and by the first bytes for other names. Pure functions.

#include <string_view>

namespace holdfast::archive {

// Returns the type of a file. `head`: its first bytes, 512 are enough. Never empty: "application/octet-stream" if
// unknown.
std::string_view media_type(std::string_view name, std::string_view head);

} // namespace holdfast::archive
