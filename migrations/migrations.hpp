#pragma once
// The SQL files of this directory, embedded at build time. Constant data; any thread.

#include <string_view>
#include <vector>

namespace holdfast::migrations {

struct File {
  std::string_view name; // "0001_basics.sql", "functions/21_worker.sql"
  std::string_view text;
};

const std::vector<File>& numbered();  // structure, by number
const std::vector<File>& functions(); // replaced whole, in the order of their names

} // namespace holdfast::migrations
