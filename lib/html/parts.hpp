#pragma once
// The pieces that the archive's own pages and those of `serve` share: badges, times, links, facts. Pure; any thread.

#include "lib/html/template.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::html {

// The style rules that all pages share, and the icons that its badges show: once at the start of a page.
Html page_style();
Html icon_sprite();

// A relative path as a link, with "./" in front, so that no name can be taken for a scheme, a query or another host.
std::string href_of_path(std::string_view path);

// <a> to a page outside if it may be linked to, plain text otherwise.
Html outside_link(std::string_view url, std::string_view text);
// Shortens a URL for users, not for links: "https://example.com/a/b" -> "example.com/a/b".
std::string_view without_scheme(std::string_view url);
// <a> within the archive or the site.
Html link(std::string_view href, std::string_view text);

// "2026-08-01T09:14:22.5Z" -> "1 August 2026, 09:14 UTC"; another text is returned as it is.
std::string human_time(std::string_view iso_utc);
// <time datetime=...>human time</time>, or nothing for an empty text.
Html time_element(std::string_view iso_utc);

// 12345 -> "12,345".
std::string grouped(std::uint64_t number);
// 1, "file" -> "1 file"; 3, "file" -> "3 files".
std::string counted(std::uint64_t number, std::string_view noun);

// Out of the page's sprite, hidden from screen readers: words stand beside it.
Html icon(std::string_view name);
// The class and icon of a status: "ok", "warn", "bad" or "mute".
std::string_view status_tone(std::string_view status);
// Icon and word for an outcome or a status: succeeded, partial, failed, skipped, noresults, anything else.
Html status_badge(std::string_view status);

// `text`, and `sub` after it in a softer colour if there is any.
Html with_sub(std::string_view text, std::string_view sub);

// The <dl> under a page's heading. Facts without a value are left out.
class Facts {
public:
  enum class Width { narrow, wide }; // on a phone: half of the line, or all of it
  void add(std::string_view name, Value value, Width width = Width::narrow);
  Html html() const;

private:
  List facts_;
};

} // namespace holdfast::html
