#pragma once
// The lists that can be shown: their columns and the type of their JSON lines. Main thread.

#include "lib/store/view.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

// Columns that people see first; JSON has all of them.
const std::vector<std::string>& table_columns(const std::string& list);

// Each row as a line of JSON. `columns`: only these; empty: all.
void print_json(pg::Connection& connection, const store::ListQuery& query,
                const std::vector<std::string>& columns = {});

} // namespace holdfast::cli
