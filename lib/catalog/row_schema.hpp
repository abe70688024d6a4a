#pragma once
// JSON schemas of what lists hold, from the columns of their views: types, formats, values and which may be null.
// Blocking; call on the thread that owns the connection.

#include "lib/catalog/list.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>

namespace holdfast::catalog {

// Returns the schema of a row of each view, and of search(), by name.
std::map<std::string, nlohmann::ordered_json, std::less<>> row_schemas(pg::Connection& connection);

} // namespace holdfast::catalog
