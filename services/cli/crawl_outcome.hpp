#pragma once
// What became of a crawl, for the verbs that work on one until it ends. Main thread.

#include "services/cli/context.hpp"

#include <string>

namespace holdfast::cli {

// One sentence and where to look; as JSON its snapshots and the crawl.
void print_crawl_outcome(Context& context, const std::string& crawl_id);

// Throws Error(unavailable): no worker can take it, for what they lack (store::crawl_lacks).
[[noreturn]] void throw_unable(const std::string& crawl_id, const std::string& lacking);

} // namespace holdfast::cli
