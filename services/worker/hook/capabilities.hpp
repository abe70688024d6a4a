#pragma once
// Description of a worker for its join. Stateless.

#include "lib/store/worker.hpp"
#include "services/worker/hook/try_browser.hpp"
#include "services/worker/options.hpp"

#include <string>

namespace holdfast::worker {

// The plugin whose hook starts the browser of the built-in ones.
inline constexpr const char* kBrowserPlugin = "browser";

// Returns the capabilities of a worker for claims: `plugins`, those that it has and that work here; `lacks`, why not
// all that are enabled without being named do; `persona`, whose pages it can take; `browser`, its state; `archive`,
// where its files go.
std::string capabilities_json(const Options& options, const BrowserState& browser);

// A worker of these options, with the plugins that it has.
store::ProcessInfo describe_worker(const Options& options);

} // namespace holdfast::worker
