#pragma once
// Output for users and for programs. Stateless; standard output belongs to results, everything else goes to standard
// error.

#include "lib/pg/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// A table of the given columns, as wide as its content, cut to the terminal. A name that ends in "?" is of a column
// that is left out if every row has nothing there, or 0.
void print_table(const pg::Result& result, const std::vector<std::string>& columns, std::ostream& out = std::cout);
// Columns (none given: all) as CSV (RFC 4180), with a header line; NULL is an empty field.
void print_csv(const pg::Result& result, const std::vector<std::string>& columns);
// "name   value" lines; empty values are left out.
void print_fields(const std::vector<std::pair<std::string, std::string>>& fields, std::ostream& out = std::cout);

// A line of JSON: an object with its type first.
void print_record(std::string_view type, const nlohmann::ordered_json& fields, std::ostream& out = std::cout);
void print_records(const std::vector<std::string>& objects, std::string_view type);

// Prints a part of a source or of the archive that cannot be used, and why: a line for users, or a Defect.
void print_defect(bool json, const std::string& kind, const std::string& path, const std::string& detail);

// Control characters of foreign text (titles, errors) become "?" so that it cannot steer the terminal.
std::string printable(std::string_view text);
// A word as it is typed in a shell: in quotes if it needs them.
std::string shell_word(std::string_view word);
// Shortened to `columns` terminal columns, with "…".
std::string fitted(std::string_view text, std::size_t columns);
std::size_t display_width(std::string_view text);
std::size_t terminal_width();

// Times and durations of the database for users: in the time zone of the terminal's user (TZ, else /etc/localtime),
// which is named. Programs get UTC instead. Stateless.

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
