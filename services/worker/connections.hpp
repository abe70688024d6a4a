#pragma once
// How long a worker waits for the database, as a function of its lease. Pure.

#include "lib/pg/connection.hpp"
#include "services/worker/options.hpp"

#include <string>

namespace holdfast::worker {

// An answer that comes after the end of trust is of no use, so no call waits longer than trust could last.
pg::ConnectionOptions connection_options(const std::string& label, const Options& worker);
// A beat that hangs is worth less than the next one: the session is given up, and a new one made, in time for it.
pg::ConnectionOptions beat_options(const std::string& label, const Options& worker);

} // namespace holdfast::worker
