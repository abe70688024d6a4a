#pragma once
// Whether this machine has memory and processor time left for another snapshot, and the right time. Functions of /proc
// and the cgroup file systems alone; any thread. What cannot be read counts as no limit.

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::worker {

// Bytes that this process and its hooks can still get: what the kernel calls available, or less where a cgroup (v2, or
// v1 as in older containers) has a limit. Pages of files that can be dropped count as free. nullopt: unknown.
std::optional<std::uint64_t> available_memory();

// The load average of the last minute by processor.
double load_per_processor();

// What is wrong with its clock, for people; empty: it may be right. One that is before our program was made is not:
// certificates do not hold then, and what is archived would carry that time.
std::string clock_trouble();

} // namespace holdfast::worker
