#pragma once
// Captures a page without hooks, if its site says that the files of the last capture are unchanged. Main thread only.

#include "lib/base/async.hpp"
#include "services/worker/attempt/page_work.hpp"
#include "services/worker/page/hook_results.hpp"

namespace holdfast::worker {

// Returns false if the hooks have to run; then nothing is left of the try. `options`: of the page's hooks.
awaitable<bool> recapture(PageWork& work, HookResults& results, const hooks::Options& options);

} // namespace holdfast::worker
