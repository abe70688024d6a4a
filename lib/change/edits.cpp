#include "lib/change/edits.hpp"

#include "lib/change/mask.hpp"

#include <algorithm>

namespace holdfast::change {

namespace {

constexpr std::size_t kEditedBlock = 8; // words of a block in which an edit can be told from noise

Word word_at(const std::vector<Word>& words, std::size_t i) { return i < words.size() ? words[i] : kAny; }

} // namespace

std::vector<Word> numbered(std::vector<Word> words) {
  for (auto& word : words)
    if ((word & kDigits) != 0) word = kAnyNumber;
  return words;
}

std::vector<Word> names_of(std::vector<Word> words) {
  std::erase_if(words, [](Word word) { return !is_mask(word) && (word & kDigits) != 0; });
  return words;
}

bool is_edit(const Unit& a, const Unit& b) {
  const auto pairs = pairs_of(a.words, b.words);
  if (std::max(a.words.size(), b.words.size()) < kEditedBlock) return false;
  if (10 * pairs.size() < 7 * std::max(a.words.size(), b.words.size())) return false;
  std::set<std::size_t> same_a, same_b;
  for (const auto& [i, j] : pairs) {
    same_a.insert(i);
    same_b.insert(j);
  }
  for (std::size_t i = 0; i < a.words.size(); ++i)
    if (!same_a.contains(i) && (a.words[i] & kDigits) != 0) return false;
  for (std::size_t j = 0; j < b.words.size(); ++j)
    if (!same_b.contains(j) && (b.words[j] & kDigits) != 0) return false;
  return true;
}

Contexts contexts_of(const std::vector<Unit>& units, Contexts contexts) {
  for (const auto& unit : units)
    for (std::size_t i = 0; i < unit.words.size(); ++i)
      if (unit.words[i] == kAnyNumber)
        contexts.emplace(unit.place, word_at(unit.words, i - 1), word_at(unit.words, i + 1));
  return contexts;
}

bool varies_within(const Contexts& contexts, const Unit& a, const Unit& b) {
  if (contexts.empty() || a.words.size() != b.words.size()) return false;
  for (std::size_t i = 0; i < a.words.size(); ++i) {
    if (a.words[i] == b.words[i]) continue;
    const auto before = word_at(b.words, i - 1), after = word_at(b.words, i + 1);
    if ((a.words[i] & b.words[i] & kDigits) == 0 || (before == kAny && after == kAny) ||
        !contexts.contains({b.place, before, after}))
      return false;
  }
  return true;
}

} // namespace holdfast::change
