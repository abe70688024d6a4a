#pragma once
// What live views read: the latest events, what is stuck, what runs. Blocking; call on the thread that owns the
// connection.

#include "lib/pg/connection.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::store {

// Rows of v_event in their order, of at most `limit` ids after `id`, each with its JSON in the column "json". What one
// call did to many snapshots has one id and comes whole. `crawl_id`: only of that crawl; may be empty.
pg::Result events_after(pg::Connection& connection, std::int64_t id, std::int64_t limit, const std::string& crawl_id);
// The highest id that an event has; 0 if there is none.
std::int64_t last_event(pg::Connection& connection);

// Rows of v_stuck, v_running (column "seconds") and the workers of v_worker (column "lease_seconds").
pg::Result stuck(pg::Connection& connection, int limit);
pg::Result running(pg::Connection& connection, const std::string& order,
                   int limit); // order: age, plugin, url or worker
pg::Result workers(pg::Connection& connection, int limit);
pg::Result open_crawls(pg::Connection& connection, int limit);

// `process` empty: every worker and runner, now and later. `level` empty: back to what each has configured.
void log_level_set(pg::Connection& connection, const std::string& process, const std::string& level);

// Views and functions for people: rows of holdfast.reference().
pg::Result reference(pg::Connection& connection);

} // namespace holdfast::store
