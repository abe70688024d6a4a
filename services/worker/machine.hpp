#pragma once
// What this process says of itself when it joins. Stateless.

#include "lib/store/worker.hpp"
#include "services/worker/options.hpp"

#include <filesystem>
#include <string>

namespace holdfast::worker {

// A new incarnation: fresh id, this machine, boot, pid and start time. `keep_in`: where a machine without
// /etc/machine-id keeps the id it was given.
store::ProcessInfo describe_process(const std::string& process_type, const std::string& worker_type,
                                    const std::string& version, int slots, const std::filesystem::path& keep_in);

// A worker of these options, with the plugins that it has.
store::ProcessInfo describe_worker(const Options& options);

} // namespace holdfast::worker
