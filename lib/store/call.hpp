#pragma once
// Calls a function of the database by its name: call(connection, "purge_done", directories). PostgreSQL has the types
// of its arguments; its definition documents it (migrations/functions). Blocking; call on the thread that owns the
// connection. Functions with more than plain values are in the other headers of this module. Also JSON as an argument.

#include "lib/pg/connection.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

pg::Result call_with(pg::Connection& connection, std::string_view function, const pg::Params& arguments);

template <class... Arguments>
pg::Result call(pg::Connection& connection, std::string_view function, const Arguments&... arguments) {
  return call_with(connection, function, pg::Params::of(arguments...));
}

template <class Value, class... Arguments>
Value call_for(pg::Connection& connection, std::string_view function, const Arguments&... arguments) {
  return call(connection, function, arguments...).value().template as<Value>();
}

// The texts that it answers with, one a row.
template <class... Arguments>
std::vector<std::string> call_list(pg::Connection& connection, std::string_view function,
                                   const Arguments&... arguments) {
  return call(connection, function, arguments...).map([](const pg::Row& row) { return row.value().as<std::string>(); });
}

// Returns the members of a JSON object as texts. Pure; any thread.
std::map<std::string, std::string> texts_of(const nlohmann::json& object);

// Returns text that the server's jsonb accepts, whatever bytes a hook has printed: invalid UTF-8 and NUL characters are
// replaced by U+FFFD. Pure; any thread.
std::string json_text(nlohmann::json json);

} // namespace holdfast::store
