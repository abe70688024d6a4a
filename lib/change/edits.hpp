#pragma once
// Tells what differs between two captures of a block: an edit, or noise in it. Pure.

#include "lib/change/fingerprint.hpp"

#include <set>
#include <tuple>
#include <vector>

namespace holdfast::change {

// Returns the words with all numbers alike.
std::vector<Word> numbered(std::vector<Word> words);
// Returns the words without digits.
std::vector<Word> names_of(std::vector<Word> words);
// Returns true if a change is an edit for certain: some words of a sentence, none of them a number, and most of it
// stays.
bool is_edit(const Unit& a, const Unit& b);

// The words beside a number that varies, by the place of its block.
using Contexts = std::set<std::tuple<Place, Word, Word>>;
// Adds those of units of a mask.
Contexts contexts_of(const std::vector<Unit>& units, Contexts contexts);
// Returns true if two blocks differ by numbers, each beside words that another block of the place has beside its own.
bool varies_within(const Contexts& contexts, const Unit& a, const Unit& b);

} // namespace holdfast::change
