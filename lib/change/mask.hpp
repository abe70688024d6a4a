#pragma once
// Masks of units: words with kAny and kAnyNumber in place of those that are noise. Pure.

#include "lib/change/fingerprint.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace holdfast::change {

bool is_mask(Word word);
// Returns the number of words that are no mask.
std::size_t fixed_words(const std::vector<Word>& words);
// Returns the positions of the words that both have, in order.
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
Pairs pairs_of(const std::vector<Word>& a, const std::vector<Word>& b);

// Returns true if words are those that a unit of a mask stands for. `pattern` may have kAny and kAnyNumber. `soft`: the
// words beside a number that varies, as its unit or the rest of a date, may vary with it.
bool fits(const std::vector<Word>& pattern, const std::vector<Word>& words, bool soft = true);
// Returns true if words are a mask of which enough is fixed.
bool is_pattern(const std::vector<Word>& words);
// Returns the words of `later` with kAny for those that differ, and that the mask of `earlier` has in their place.
// `learn`: also for all others that differ.
std::vector<Word> carried(const std::vector<Word>& earlier, const std::vector<Word>& later, bool learn);

// Returns what the mask of a URL hides, for people: lines such as "main/p: It is …", with … for words that vary. The
// texts are those of the capture of this fingerprint (text/blocks.jsonl, screenshot/look.json).
std::vector<std::string> noise(const Fingerprint& fingerprint, std::string_view blocks, std::string_view look);

} // namespace holdfast::change
