#pragma once
// holdfast psql: psql on the collection's database, in a role that cannot change anything. The embedded server runs for
// as long as psql does. Blocking; main thread only.

#include "services/cli/context.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::cli {

void add_psql_verb(CLI::App& app, std::function<int(Context&)>& verb);

// `role`: reader, operator or owner. Returns the exit code of psql; 128 and more: a signal ended it. Throws
// Error(refused) if the login may not take the role, Error(unavailable) if there is no psql.
int psql(Context& context, const std::string& role, const std::vector<std::string>& arguments);

} // namespace holdfast::cli
