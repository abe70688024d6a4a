#pragma once
// What reads input of strangers, by name. A target aborts (through `must`) if a promise of the reader does not hold.

#include <cstddef>
#include <span>
#include <string_view>

namespace holdfast::fuzz {

struct Target {
  std::string_view name; // also of its directory in corpus/
  void (*run)(std::string_view input);
};

std::span<const Target> targets();
// nullptr if there is no such target.
const Target* find_target(std::string_view name);

} // namespace holdfast::fuzz
