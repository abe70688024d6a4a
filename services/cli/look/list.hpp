#pragma once
// holdfast list, and what other verbs list in the same way. Main thread.

#include "lib/catalog/list.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/context/context.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace holdfast::cli {

struct ListOptions {
  std::string what{"snapshots"};
  std::map<std::string, std::string> filters{}; // as typed; empty: not given
  std::vector<std::string> columns{};           // of tables, CSV and JSON; empty: the usual ones
  std::int64_t limit{50};
  bool csv{false};
};
int list(Context& context, const ListOptions& options);

// Returns the value of a filter as typed, in the spelling of rows: an id in full, a time in UTC. Throws Error(usage).
std::string filter_value(Context& context, const catalog::List& list, const std::string& filter,
                         const std::string& typed);
// "list" in a group of verbs that is named as one row of a list: all of its rows.
void list_verb_of(Group& group, std::string_view one);

// Each row as a line of JSON. `columns`: only these; empty: all.
void print_json(Collection& collection, const catalog::ListQuery& query, const std::vector<std::string>& columns = {});

} // namespace holdfast::cli
