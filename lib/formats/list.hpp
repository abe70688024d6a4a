#pragma once
// Lists of URLs, handwritten and exported by other programs: the one reader for the command, the page, the API and the
// hooks that look for links. Text may be broken or hostile. Pure functions; any thread.

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
  std::string notes{};           // a description of the bookmark; "": none
  std::string problem{};         // of a line that cannot be read; then there is no URL
};

struct List {
  std::vector<Entry> entries;
  bool lines{false};                 // plain text: each entry is a handwritten line, or a URL in it
  bool index{false};                 // of sitemaps: the entries are lists, not pages
  std::size_t prose{0}, comments{0}; // lines that hold more than a URL; lines after "#" that hold one
};

// Names of formats. Some ("auto", "pocket") try all: the first that fits reads the list.
std::vector<std::string> parsers();

// Reads a file: unpacked from gzip, decoded by its byte order mark or its declaration. Throws Error(refused) with the
// place if it is broken, or not of the requested format.
List read_list(std::string_view bytes, std::string_view parser = "auto");

// The URLs within text, each as a reader would copy it: without the punctuation of the sentence, of Markdown, org-mode
// or LaTeX, and without quotes.
std::vector<std::string> urls_in(std::string_view text);

// Returns true if a line is nothing but one URL, so that its last character belongs to it: "https://a.test/Jeopardy!".
bool is_bare_url(std::string_view line);

} // namespace holdfast::formats
