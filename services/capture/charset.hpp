#pragma once
// Bytes of a web page to text, the way browsers decide: byte order mark, HTTP header, <meta>, guess. Pure functions.

#include <string>
#include <string_view>

namespace holdfast::capture {

// Valid UTF-8; what cannot be decoded becomes U+FFFD. Never throws.
std::string decode_page(std::string_view bytes, std::string_view content_type);

} // namespace holdfast::capture
