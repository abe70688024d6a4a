#pragma once
// Checks whether this machine has memory and processor time left for another snapshot, and the right time. Functions of
// /proc and the cgroup file systems alone; any thread. Values that cannot be read count as no limit.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::worker {

// Bytes that this process and its hooks can still get: what the kernel calls available, or less where a cgroup (v2, or
// v1 as in older containers) has a limit. Pages of files that can be dropped count as free. nullopt: unknown.
std::optional<std::uint64_t> available_memory();

// The memory that a hook may use if no setting says so: `most`, or the share of a slot of what is available, but for a
// browser at least 1 GiB.
std::uint64_t memory_of_hook(std::uint64_t most, std::optional<std::uint64_t> available, int slots);

// The load average of the last minute by processor.
double load_per_processor();

// Returns the error of its clock, for users; empty: it may be right. A clock before the build of our program is wrong:
// certificates are not valid then, and the archive would carry that time.
std::string clock_trouble();
// Archived files have the time of this machine, claims that of the database. Returns why no page is claimed if they
// differ by more than a minute, else an empty text. `ahead` is negative if this machine is behind.
std::string clock_difference_trouble(std::chrono::milliseconds ahead);

} // namespace holdfast::worker
