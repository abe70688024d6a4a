#pragma once
// MIME types of archived files, by extension first and by the first bytes for names that say nothing. Pure functions.

#include <string_view>

namespace holdfast::archive {

// `head`: the first bytes of the file, 512 are enough. Never empty: "application/octet-stream" if nothing is known.
std::string_view media_type(std::string_view name, std::string_view head);

} // namespace holdfast::archive
