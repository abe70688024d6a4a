#pragma once
// The readable part of a page, as a list of plain blocks: headings, paragraphs, list items, rows of tables. Text inside
// <article> or <main> counts if there is one; menus, footers and lists of links are left out. If nothing would remain,
// nothing is left out. Pure functions.

#include <string>
#include <vector>

namespace holdfast::capture {

struct Block {
  std::string tag, pieces;
  bool in_main{false}, in_surroundings{false}, in_frame{false}; // frame: navigation and footer
  std::size_t size{0}, linked{0};                               // characters; of them inside links
  std::vector<std::size_t> cells{};                             // of a row: where each begins in `pieces`

  std::string text() const;             // one line, unless it is <pre>; the cells of a row are parted by tabs
  std::vector<std::string> row() const; // each cell's text
};

// The first <title> that is not the tool tip of a drawing, on one line; empty: none.
std::string title_of(const std::string& html);

std::vector<Block> readable_blocks(const std::string& html);
// Returns the other blocks with words: rows beside <main>, asides, dialogs; without navigation, footers and
// menus, of which it has the headings <h1>, such as the name of a chat.
std::vector<Block> blocks_beside(const std::string& html);
std::string blocks_as_text(const std::vector<Block>& blocks);
std::string blocks_as_html(const std::vector<Block>& blocks, const std::string& title, const std::string& url);

} // namespace holdfast::capture
