#pragma once
// Memento (RFC 7089): the captures of a URL by time. A memento is the page of a snapshot. Blocking, on the thread that
// owns the connection.

#include "lib/pg/connection.hpp"
#include "services/serve/http_message.hpp"

#include <string>
#include <string_view>

namespace holdfast::serve {

// Answers /timegate/URL with the last snapshot until the time in Accept-Datetime (without one, the first), and
// /timemap/link/URL and /timemap/json/URL with all of them. `path`: of the request, which begins with one of these.
// `site`: "http://host".
bool is_memento_path(std::string_view path);
Response memento(pg::Connection& connection, const Request& request, const std::string& site);
// Adds Memento-Datetime and Link to the page of a snapshot.
void add_memento(pg::Connection& connection, const std::string& snapshot, const std::string& site, Response& page);

} // namespace holdfast::serve
