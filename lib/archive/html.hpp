#pragma once
// The few pieces that every page is put together from. Whatever goes through here cannot break out of its place in the
// page. Pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::archive {

// Text for element content and for attribute values in quotes. Bytes that are not UTF-8, control characters and the
// characters that turn the direction of writing (they can make a name look like another) become U+FFFD.
std::string html_escape(std::string_view text);

// A relative path as an attribute value: every byte but letters, digits and "-._~/" percent-encoded, "./" in front, so
// that no name can be taken for a scheme, a query or another host.
std::string href_of_path(std::string_view path);

// True if a page may link to `url`: http and https only.
bool is_web_url(std::string_view url);

// <a> to a page outside if it may be linked to, plain escaped text otherwise. `text` is escaped.
std::string outside_link(std::string_view url, std::string_view text);

// "https://example.com/a/b" -> "example.com/a/b": for people, not for links.
std::string_view without_scheme(std::string_view url);

// "2026-08-01T09:14:22.5Z" -> "1 August 2026, 09:14 UTC"; another text is returned as it is. Not escaped.
std::string human_time(std::string_view iso_utc);
// <time datetime=...>human time</time>, or nothing for an empty text.
std::string time_element(std::string_view iso_utc);

// 12345 -> "12,345".
std::string grouped(std::uint64_t number);
// 1, "file" -> "1 file"; 3, "file" -> "3 files".
std::string counted(std::uint64_t number, std::string_view noun);

// <svg> icon out of the page's own sprite, hidden from screen readers: words stand beside it.
std::string icon(std::string_view name);
// Badge with icon and word for an outcome or a status: succeeded, partial, failed, skipped, noresults, anything else.
std::string status_badge(std::string_view status);
// The class and icon of a status: "ok", "warn", "bad" or "mute".
std::string_view status_tone(std::string_view status);

// Everything up to <body>'s content. `title` is escaped.
std::string page_head(std::string_view title, std::string_view icon_path = {});
std::string page_foot();

} // namespace holdfast::archive
