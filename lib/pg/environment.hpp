#pragma once
// A connection string as the environment of a libpq program (psql), so that no password stands in a command line. Pure;
// any thread.

#include <map>
#include <string>

namespace holdfast::pg {

// PGHOST, PGDATABASE, PGPASSWORD, ... for what `dsn` says. Throws Error(configuration) if it cannot be parsed.
std::map<std::string, std::string> environment_of(const std::string& dsn);

} // namespace holdfast::pg
