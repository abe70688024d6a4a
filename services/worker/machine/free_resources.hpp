#pragma once
// Checks whether this machine has memory and processor time left for another snapshot, and the right time. Functions of
// /proc and the cgroup file systems alone; any thread. Values that cannot be read count as no limit.

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::worker {

// Bytes that this process and its hooks can still get: what the kernel calls available, or less where a cgroup (v2, or
// v1 as in older containers) has a limit. Pages of files that can be dropped count as free. nullopt: unknown.
std::optional<std::uint64_t> available_memory();

// The load average of the last minute by processor.
double load_per_processor();

// Returns the error of its clock, for users; empty: it may be right. A clock before the build of our program is wrong:
// certificates are not valid then, and the archive would carry that time.
std::string clock_trouble();

} // namespace holdfast::worker
