#pragma once
// Types of bytes: the MIME Sniffing standard, as in browsers. One rule is left out, as in Chromium: a feed under
// text/html is a page. Pure functions, any thread.

#include <string>
#include <string_view>

namespace holdfast::formats {

inline constexpr std::size_t kSniffed = 1445; // bytes that decide

// The media type of a response, in lower case. `content_type`: its header, "" for none.
std::string sniffed_type(std::string_view content_type, std::string_view head);

// Returns the type of bytes without one; never empty. The second function: images, sounds and films alone; empty: none.
std::string_view type_of_bytes(std::string_view head);
std::string_view media_of_bytes(std::string_view head);

} // namespace holdfast::formats
