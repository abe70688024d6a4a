#pragma once
// The schema this binary was built with. Stateless; any thread.

#include "lib/pg/migrator.hpp"

#include <string>
#include <vector>

namespace holdfast::store {

const pg::Migrator& migrator();

// Returns true if the database has a collection, whatever its revision.
bool has_schema(pg::Connection& connection);

// Parts that a migrated database lacks because this login may not make them, and the SQL for an administrator.
struct Lacking {
  std::string what, why, statement;
};
// Makes roles, grants and extensions what they should be. Returns what is left.
std::vector<Lacking> complete_schema(pg::Connection& connection);
// Returns what makes calls wait or fail, or opens the collection to others; each with the way out. Changes nothing.
std::vector<std::string> database_problems(pg::Connection& connection);

} // namespace holdfast::store
