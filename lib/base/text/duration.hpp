#pragma once
// Durations and sizes in the notation of users. Pure functions; throw Error(configuration) on bad input, naming it.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::base {

// "90", "90s", "1.5m", "2 min", "250ms", "2h", "3d", "1w" -> milliseconds. A bare number is seconds.
std::chrono::milliseconds parse_duration(std::string_view text);

// Formats a duration for users, with two units at most: 1250 ms -> "1.3 s", 125 s -> "2 min 5 s", 2 h -> "2 h".
std::string format_duration(std::chrono::milliseconds duration);

// "512", "10k", "10kb", "1.5MiB", "2g" -> bytes; k, m, g, t are powers of 1024.
std::uint64_t parse_size(std::string_view text);

// Formats a size for users: 1536 -> "1.5 KiB".
std::string format_size(std::uint64_t bytes);

} // namespace holdfast::base
