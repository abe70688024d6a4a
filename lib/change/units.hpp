#pragma once
// Compares two sequences of units (blocks of text, or links), and learns what is noise in them. Pure.

#include "lib/change/fingerprint.hpp"

#include <cstddef>
#include <set>
#include <vector>

namespace holdfast::change {

inline constexpr std::size_t kMostTried = 200; // units, or pictures, of a place that one is compared with

struct UnitChanges {
  std::size_t added{0}, removed{0}, moved{0}; // words; units where the order does not count
  bool any{false};
  std::vector<Unit> next; // the later sequence, with the mask of the earlier one
};

// A unit of the later sequence with `any` announces units that are not there yet.
struct UnitRules {
  bool learn{false};   // both captures follow each other at once: what differs is noise, unless it cannot be
  bool ordered{false}; // a unit in another place of the sequence is a change
  bool soft{true};     // the words beside a number that varies may vary, too
  int most_changes{0}; // captures in a row with other words in a block, after which these are noise
  std::set<Place>& noise;
  std::set<Place>& order;
  std::vector<Unit>& known; // masks of units that are not on the page now
};

UnitChanges compare_units(const std::vector<Unit>& earlier, const std::vector<Unit>& later, UnitRules rules);

} // namespace holdfast::change
