#pragma once
// Files that come packed (sitemap.xml.gz). Pure functions, any thread.

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::formats {

// Whether it begins as what gzip makes does.
bool is_gzip(std::string_view text);

// What is in it, several members in a row too. Throws Error(refused) if it is damaged, or unpacks to more than
// base::most_unpacked() of `limit`.
std::string gunzip(std::string_view packed, std::size_t limit);

} // namespace holdfast::formats
