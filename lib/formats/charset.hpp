#pragma once
// Bytes of a web page to text, the way browsers decide: byte order mark, HTTP header, <meta>, guess. Pure functions.

#include <string>
#include <string_view>

namespace holdfast::formats {

// Valid UTF-8; what cannot be decoded becomes U+FFFD, as browsers show it: title, text and links must be those of the
// page that people see and replay, and the record has the bytes. Never throws.
std::string decode_page(std::string_view bytes, std::string_view content_type);

// How decode_page() reads it, as iconv names it.
std::string page_encoding(std::string_view bytes, std::string_view content_type);

// UTF-8 to an encoding of page_encoding(), as browsers encode the query of a link: what it lacks becomes "&#8364;", its
// marks escaped for a URL.
std::string encode(std::string_view text, const std::string& encoding);

// The same of a list, which no browser shows, and of which nothing is known but its bytes: UTF-16 and UTF-32 are seen
// without a declaration, too, what says that it is UTF-8 and is not is guessed, and stray bytes within UTF-8 are read
// as Windows 1252 rather than lost.
std::string decode_file(std::string_view bytes);

} // namespace holdfast::formats
