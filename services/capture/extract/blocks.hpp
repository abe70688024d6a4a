#pragma once
// The words and links of a page by their places in it: text/blocks.jsonl, from which a change is found and
// `holdfast diff` reads. A block is the text between two breaks; its place is the path of its elements.

#include "services/capture/browser/page.hpp"
#include "services/capture/extract/readable.hpp"

#include <string>
#include <vector>

namespace holdfast::capture {

// Returns lines of JSON: {"source", "url", "title"}, then {"at", "text", "links"} for each block. `document`: the
// blocks of a page that is neither HTML, XML nor plain text. Empty: the page has no words.
std::string page_blocks(const Page& page, const std::vector<Block>& document);

} // namespace holdfast::capture
