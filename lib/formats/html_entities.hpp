#pragma once

#include <string_view>

namespace holdfast::formats {

// The characters that a name ("amp;", "amp") stands for in UTF-8; empty: none.
std::string_view entity(std::string_view name);

} // namespace holdfast::formats
