#pragma once
// The snapshot hook of the browser plugin.

#include "services/capture/hook.hpp"
#include "services/capture/replay/replay_source.hpp"

namespace holdfast::capture {

// Loads the page once, in a browser context of its own, records its traffic into page.warc.gz, prints that it is ready,
// and keeps the tab until SIGTERM. Throws Ending when there is nothing to keep.
Result run_tab(Job& job);
// Captures a page with answers of `source` in place of the network.
Result replay_tab(Job& job, ReplaySource& source);

} // namespace holdfast::capture
