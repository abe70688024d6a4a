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
// Shortened to `columns` terminal columns, with "…".
std::string fitted(std::string_view text, std::size_t columns);
std::size_t display_width(std::string_view text);
std::size_t terminal_width();

} // namespace holdfast::cli
