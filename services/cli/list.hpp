#pragma once
// holdfast list, and what other verbs list in the same way. Main thread.

#include "services/cli/context.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::cli {

struct ListOptions {
  std::string what{"snapshots"};
  std::string crawl, snapshot, status, outcome, host, since, url, tag, plugin, kind;
  std::vector<std::string> columns; // of tables, CSV and JSON; empty: the usual ones
  std::int64_t limit{50};
  bool csv{false};
};
int list(Context& context, const ListOptions& options);

} // namespace holdfast::cli
