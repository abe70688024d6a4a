#pragma once
// What a server must have before there can be a schema in one of its databases. Blocking; any thread.

#include "lib/pg/connection.hpp"

#include <string>
#include <vector>

namespace holdfast::pg {

// "a database in UTF8, not LATIN1", and what to do about it.
struct Precondition {
  std::string what, remedy;
};
// Those that this session's database, server and user do not meet.
std::vector<Precondition> unmet_preconditions(Connection& connection);

} // namespace holdfast::pg
