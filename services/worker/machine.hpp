#pragma once
// What this process says of itself when it joins. Stateless.

#include "lib/store/worker.hpp"
#include "services/worker/options.hpp"
#include "services/worker/try_browser.hpp"

#include <filesystem>
#include <string>

namespace holdfast::worker {

// A new incarnation: fresh id, this machine, boot, pid and start time. `keep_in`: where a machine without
// /etc/machine-id keeps the id it was given.
store::ProcessInfo describe_process(const std::string& process_type, const std::string& worker_type,
                                    const std::string& version, int slots, const std::filesystem::path& keep_in);

// The plugin whose hook starts the browser of the built-in ones.
inline constexpr const char* kBrowserPlugin = "browser";

// What a worker can do, as a claim looks at it: `plugins`, those that it has and that work here; `lacks`, why not all
// that are enabled without being named do; `persona`, whose pages it can take; `browser`, what is known of it;
// `archive`, where its files go.
std::string capabilities_json(const Options& options, const BrowserState& browser);

// A worker of these options, with the plugins that it has.
store::ProcessInfo describe_worker(const Options& options);

} // namespace holdfast::worker
