#pragma once
// Bytes of a web page to text, the way browsers decide: byte order mark, HTTP header, <meta>, guess. Pure functions.

#include <array>
#include <string>
#include <string_view>

namespace holdfast::formats {

// The characters of the bytes 0x80 to 0x9F in Windows 1252, which browsers take for Latin-1.
inline constexpr std::array<char32_t, 32> kWindows1252{0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                                       0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                                       0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                                       0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

// Returns valid UTF-8; undecodable bytes become U+FFFD, as browsers show them: title, text and links must be those of
// the page that users see and replay, and the record has the bytes. Never throws.
std::string decode_page(std::string_view bytes, std::string_view content_type);

// Returns the encoding that decode_page() uses, as iconv names it.
std::string page_encoding(std::string_view bytes, std::string_view content_type);

// UTF-8 to an encoding of page_encoding(), as browsers encode the query of a link: what it lacks becomes "&#8364;", its
// marks escaped for a URL.
std::string encode(std::string_view text, const std::string& encoding);

// Decodes a list, which no browser shows, and for which only its bytes are known: UTF-16 and UTF-32 are recognised
// without a declaration, too, the encoding of a file that is wrongly declared UTF-8 is guessed, and stray bytes within
// UTF-8 are read as Windows 1252 rather than lost.
std::string decode_file(std::string_view bytes);

// The bytes that a text of mail stands for: "a=3Db" -> "a=b". What is no code stays.
std::string quoted_printable(std::string_view text);

// Types of bytes: the MIME Sniffing standard, as in browsers. One rule is left out, as in Chromium: a feed under
// text/html is a page. Pure functions, any thread.
inline constexpr std::size_t kSniffed = 1445; // bytes that decide

// The media type of a response, in lower case. `content_type`: its header, "" for none.
std::string sniffed_type(std::string_view content_type, std::string_view head);

// Returns the type of bytes without one; never empty. The second function: images, sounds and films alone; empty: none.
std::string_view type_of_bytes(std::string_view head);
std::string_view media_of_bytes(std::string_view head);

} // namespace holdfast::formats
