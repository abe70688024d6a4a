#pragma once
// Parts of `holdfast status` (status.cpp), and their display with --follow (follow.cpp): totals, workers, crawls and
// running hooks, drawn again and again. On a terminal, keys move over its rows.

#include "services/cli/context/collection.hpp"
#include "services/cli/context/context.hpp"

#include <ostream>

namespace holdfast::cli {

void print_now(Context& context, std::ostream& out);
// Prints nothing if there are no rows. Returns the rows.
pg::Result print_list(Collection& collection, const catalog::ListQuery& query, const char* title, std::ostream& out);

// Runs until interrupted; `delay` in seconds between updates. Returns the exit code.
int follow(Context& context, double delay);

} // namespace holdfast::cli
