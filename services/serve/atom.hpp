#pragma once
// Atom feeds of notices and changes. Blocking, on the thread that owns the connection.

#include "lib/pg/connection.hpp"
#include "services/serve/http_message.hpp"

#include <string>

namespace holdfast::serve {

// Answers /atom?watch=NAME with the newest notices of a watch, /atom?tag=TAG with the newest changes of pages with a
// tag, and /atom with those of all watches. `base`: URL of this server, without a slash at the end.
Response atom(pg::Connection& connection, const Request& request, const std::string& collection,
              const std::string& base);

} // namespace holdfast::serve
