#pragma once
// What became of a crawl, for the verbs that work on one until it ends. Main thread.

#include "services/cli/context.hpp"

#include <string>

namespace holdfast::cli {

// One sentence and where to look; as JSON its snapshots and the crawl.
void print_crawl_outcome(Context& context, const std::string& crawl_id);

} // namespace holdfast::cli
