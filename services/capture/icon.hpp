#pragma once

#include <string>
#include <string_view>

namespace holdfast::capture {

// "ico", "png", "gif", "jpg", "webp" or "svg" by the first bytes of a file; empty: no icon.
std::string icon_kind(std::string_view bytes);

} // namespace holdfast::capture
