#pragma once
// Comparison of all archived files with their manifests, as `holdfast verify --all` makes it. Main thread.

#include "services/cli/context/context.hpp"

namespace holdfast::cli {

// Prints defects and totals. Returns the exit code.
int verify_all(Context& context);

} // namespace holdfast::cli
