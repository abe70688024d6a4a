#pragma once
// Times and durations of the database for users: in the time zone of the terminal's user (TZ, else /etc/localtime),
// which is named. Programs get UTC instead. Stateless.

#include "lib/pg/result.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

// "2026-11-22 02:48:46.123+00", or with "T" and "Z" -> "2026-11-21 21:48:46 EST". Anything else stays as it is; times
// that stand for "never" become that.
std::string local_time(std::string_view utc);
// Converts each "2026-11-22 02:48:46 UTC" in a sentence.
std::string with_local_times(std::string_view sentence);

// Reads a time in the past in the notation and zone of the user: "2h" or "7d" (ago), "2026-11-22", "2026-11-22 14:00";
// returns it for PostgreSQL. Throws Error(usage).
std::string time_before(const std::string& given);
// Reads a time to come: "2h" is in two hours.
std::string time_after(const std::string& given);

// A cell of a result; empty for NULL. Bytes are a size.
std::string shown_cell(const pg::Result& result, std::size_t row, std::size_t column);

} // namespace holdfast::cli
