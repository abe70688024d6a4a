#pragma once
// What other programs export: bookmarks, feeds, sitemaps, lists. Reads text that may be broken or hostile; pure
// functions.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

struct Entry {
  std::string url, title; // as written; the URL is not checked
  std::vector<std::string> tags;
  std::string where;           // "line 12", "item 3": for messages
  std::string bookmarked_at{}; // as base::written_timestamp() writes it; "": not known
};

enum class Format { lines, json, html, xml, csv };

// The format that a parser's name on the command line stands for; "auto" looks at the text.
Format format_of(std::string_view parser, std::string_view text);

// Links of an HTML page: Netscape bookmark files, Pocket's and Pinboard's HTML exports, any saved page.
std::vector<Entry> read_html(std::string_view text);
// RSS, Atom, RDF feeds, sitemaps, Pinboard's XML. Throws Error(refused) with the place if it is no XML, or an index of
// sitemaps.
std::vector<Entry> read_xml(std::string_view text);
// An array of objects or URLs, or an object that holds one (JSON Feed, Pocket's list). Throws Error(refused).
std::vector<Entry> read_json(std::string_view text);
// With a header that names a "url" column: Pocket's CSV export, spreadsheets. Throws Error(refused).
std::vector<Entry> read_csv(std::string_view text);

// When it was bookmarked, by the fields in which programs say so; "": it does not say.
std::string json_bookmarked_at(const nlohmann::json& object);

// "a, b;c" -> {"a", "b", "c"}; blanks separate only if nothing else does and `blanks` says so (Pinboard).
std::vector<std::string> split_tags(std::string_view text, bool blanks);

} // namespace holdfast::cli
