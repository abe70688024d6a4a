#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::capture {

inline constexpr std::size_t kLargestIcon = 1u << 20;

// "ico", "png", "gif", "jpg", "webp" or "svg" by the first bytes of a file; empty: no icon.
std::string icon_kind(std::string_view bytes);

// The icons that a document at this URL links, best first.
std::vector<std::string> linked_icons(const std::string& html, const std::string& url);

} // namespace holdfast::capture
