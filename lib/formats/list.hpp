#pragma once
// Lists of URLs, handwritten and exported by other programs: the one reader for the command, the page, the API and the
// hooks that look for links. Text may be broken or hostile. Pure functions; any thread.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::formats {

struct Entry {
  std::string url, title;        // the URL as written, not checked; ""; it has none
  std::vector<std::string> tags; // trimmed, none empty
  std::string where;             // "line 12", "item 3": for messages
  std::string bookmarked_at{};   // as base::written_timestamp() writes it; "": not known
  std::string problem{};         // of a line that cannot be read; then there is no URL
};

struct List {
  std::vector<Entry> entries;
  bool lines{false};                 // plain text: each entry is a handwritten line, or a URL in it
  bool index{false};                 // of sitemaps: the entries are lists, not pages
  std::size_t prose{0}, comments{0}; // lines that hold more than a URL; lines after "#" that hold one
};

// Names of formats for users. "auto" tries all: the first that fits reads the list.
inline constexpr std::array<std::string_view, 13> kParsers{
    "auto", "txt", "jsonl", "json", "netscape", "html", "csv", "rss", "sitemap", "opml", "xbel", "pocket", "pinboard"};

// Reads a file: unpacked from gzip, decoded by its byte order mark or its declaration. Throws Error(refused) with the
// place if it is broken, or not of the requested format.
List read_list(std::string_view bytes, std::string_view parser = "auto");

// The URLs within text, each as a reader would copy it: without the punctuation of the sentence, of Markdown, org-mode
// or LaTeX, and without quotes.
std::vector<std::string> urls_in(std::string_view text);

} // namespace holdfast::formats
