#pragma once

#include <string_view>

namespace holdfast::capture {

// The characters that a name ("amp;", "amp") stands for in UTF-8; empty: none.
std::string_view entity(std::string_view name);

} // namespace holdfast::capture
