#pragma once
// The difference of two captures in words, for people: from their text/blocks.jsonl. Pure.

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::change {

struct Piece {
  enum class Kind { same, removed, added };
  Kind kind{Kind::same};
  std::string text; // words with the blanks between them
};

struct Difference {
  std::string title_before, title, url_before, url;
  std::vector<std::vector<Piece>> blocks; // that differ, in the order of the later capture
  std::vector<std::string> links_added, links_removed;
  std::size_t words_added{0}, words_removed{0}, blocks_same{0};
  bool any() const {
    return !blocks.empty() || !links_added.empty() || !links_removed.empty() || title != title_before;
  }
};

Difference difference(std::string_view blocks_before, std::string_view blocks);

nlohmann::json to_json(const Difference& difference);
// Returns lines of text; `mark` writes what was removed or added.
std::string to_text(const Difference& difference, const std::function<std::string(const Piece&)>& mark);
// Marks as `git diff --word-diff` does: [-removed-] {+added+}.
std::string word_mark(const Piece& piece);

} // namespace holdfast::change
