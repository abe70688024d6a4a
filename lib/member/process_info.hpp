#pragma once
// What a process says of itself when it joins. Stateless.

#include "lib/store/worker.hpp"

#include <filesystem>
#include <string>

namespace holdfast::member {

// A new incarnation: fresh id, this machine, boot, pid and start time. `keep_in`: where a machine without
// /etc/machine-id keeps the id it was given.
store::ProcessInfo describe_process(const std::string& process_type, const std::string& worker_type,
                                    const std::string& version, int slots, const std::filesystem::path& keep_in);

} // namespace holdfast::member
