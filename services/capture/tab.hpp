#pragma once
// The snapshot hook of the browser plugin, and the hooks that look at its tab.

#include "services/capture/hook.hpp"

namespace holdfast::capture {

// Loads the page once, in a browser context of its own, records its traffic into page.warc.gz, prints that it is ready,
// and keeps the tab until SIGTERM. Throws Ending when there is nothing to keep.
Result run_tab(Job& job);

Result take_screenshot(Job& job);
Result print_pdf(Job& job);
Result save_dom(Job& job);

} // namespace holdfast::capture
