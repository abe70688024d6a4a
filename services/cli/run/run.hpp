#pragma once

#include "services/cli/context/context.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

// holdfast run --crawl, --snapshot. Main thread.
struct SomeWork {
  std::vector<std::string> crawls, snapshots; // as given; one of them is empty
};

// Works on these until only paused pages of them are left, or a signal arrives. Waits for those that other workers
// hold. Returns the exit code: 1 if one of them is not archived.
int run_some(Context& context, const SomeWork& work);

} // namespace holdfast::cli
