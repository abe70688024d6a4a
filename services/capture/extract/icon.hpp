#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::capture {

inline constexpr std::size_t kLargestIcon = 1u << 20;

// "ico", "png", "gif", "jpg", "webp", "avif" or "svg" by the first bytes of a file; empty: no icon.
std::string icon_kind(std::string_view bytes);

// Returns the contents of a data: URL.
std::string data_of(std::string_view url);

// The icons that a document at this URL links, best first; some are data: URLs.
std::vector<std::string> linked_icons(const std::string& html, const std::string& url);

} // namespace holdfast::capture
