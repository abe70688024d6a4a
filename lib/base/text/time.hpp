#pragma once
// Points in time as text, ours and that of other programs. Pure functions.

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::base {

using Timestamp = std::chrono::system_clock::time_point;

// "2026-01-31 23:59:59.5" (UTC), with "T" and "Z" or "+01:00"; the same to the minute, the day, the month or the year;
// "20260131235959"; seconds since 1970 ("1700000000.5"), or thousandths and less; "Sat, 31 Jan 2026 23:59:59 GMT" (of
// mail and RSS), "Saturday, 31-Jan-26 23:59:59 GMT" and "Sat Jan 31 23:59:59 2026" (HTTP).
// nullopt: it is no time, or outside of 1970 to 2261.
std::optional<Timestamp> read_timestamp(const std::string& text);
std::string written_timestamp(Timestamp time);                    // "2026-01-31T23:59:59.500Z"
std::string utc_timestamp(std::time_t time = std::time(nullptr)); // "2026-01-31T23:59:59Z"
// A time as PostgreSQL writes it in UTC, "2026-01-31 23:59:59.5+00", as utc_timestamp() does; shorter texts as they
// are.
std::string iso_time(std::string_view utc);
// Returns the time that read_timestamp() reads, as written_timestamp() writes it; empty if the text is not a time.
std::string canonical_timestamp(const std::string& text);

// Durations and sizes in the notation of users. Pure functions; throw Error(configuration) on bad input, naming it.

// "90", "90s", "1.5m", "2 min", "250ms", "2h", "3d", "1w" -> milliseconds. A bare number is seconds.
std::chrono::milliseconds parse_duration(std::string_view text);

// Formats a duration for users, with two units at most: 1250 ms -> "1.3 s", 125 s -> "2 min 5 s", 2 h -> "2 h".
std::string format_duration(std::chrono::milliseconds duration);

// "512", "10k", "10kb", "1.5MiB", "2g" -> bytes; k, m, g, t are powers of 1024.
std::uint64_t parse_size(std::string_view text);

// Formats a size for users: 1536 -> "1.5 KiB".
std::string format_size(std::uint64_t bytes);

} // namespace holdfast::base
