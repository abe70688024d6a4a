#pragma once
// The words and links of a page by their places in it: text/blocks.jsonl, from which a change is found and
// `holdfast diff` reads. A block is the text between two breaks; its place is the path of its elements. A choice leaves
// out what does not count.

#include "lib/formats/selector.hpp"
#include "services/capture/browser/page.hpp"
#include "services/capture/extract/readable.hpp"

#include <regex>
#include <string>
#include <vector>

namespace holdfast::capture {

// The part of a page whose changes count: by the options TEXT_SELECT, TEXT_IGNORE and TEXT_FIND.
struct Choice {
  std::vector<formats::Selector> selected, ignored;
  std::vector<std::regex> removed;
  std::vector<std::string> find; // words
  std::string name;              // tells this choice from others; empty: the whole page

  static Choice from_settings(); // throws Ending
};

// Returns lines of JSON: {"source", "url", "title"}, then {"at", "text", "links"} for each block. `document`: the
// blocks of a page that is neither HTML, XML nor plain text. Empty: the page has no words.
std::string page_blocks(const Page& page, const std::vector<Block>& document, const Choice& choice = {});

// Returns the facts of what was chosen: "selected", its text, "number", the first number in it, and "found", those of
// the words to find that are in it. Null: the choice has neither.
Json facts_of(const std::string& blocks, const Choice& choice);

} // namespace holdfast::capture
