#pragma once
// Tokens of an HTML text, in one pass and in linear time for any text.
//
// A page is hostile input, and the hooks need its tags and texts, not a tree. Parsers that build one (libgumbo, lexbor,
// libxml2) search the open elements at each tag, which takes quadratic time on a page that nests deeply. This follows
// the tokenizer of the HTML standard, where everything that is not closed reaches to the end of the text.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::formats {

struct Token {
  enum class Kind { text, start, end };
  Kind kind{Kind::text};
  std::string text; // character references resolved; of tags: the name in lower case
  std::vector<std::pair<std::string, std::string>> attributes; // names in lower case, the first of each
  std::size_t at{0};                                           // of a tag: where it begins
  bool self_closed{false};                                     // of a start tag: "<path/>"

  bool has(std::string_view name) const;
  const std::string& attribute(std::string_view name) const; // empty: none
};

// Calls take(token) for each; false ends the scan.
void scan_html(std::string_view html, const std::function<bool(const Token&)>& take);

// XHTML for readers of HTML: elements that close themselves get an end tag, CDATA becomes text.
std::string xml_as_html(std::string_view xml);

// "&lt;" -> "<"; `value`: of an attribute, where names that lack their ";" count less.
std::string unescape_html(std::string_view text, bool value = false);
std::string escape_html(std::string_view text);

} // namespace holdfast::formats
