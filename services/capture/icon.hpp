#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::capture {

inline constexpr std::size_t kLargestIcon = 1u << 20;

// "ico", "png", "gif", "jpg", "webp" or "svg" by the first bytes of a file; empty: no icon.
std::string icon_kind(std::string_view bytes);

} // namespace holdfast::capture
