#pragma once
// Workers without processes: each has slots in which pages take time and nothing else, and calls the database as a
// worker does:
//
//   worker_turn   when a page has ended: finishes all that have ended since the last turn, claims into the free slots
//   worker_hooks  when another hook runs, at most four times a second
//   worker_heartbeat   every few seconds
//
// One thread and one session for each worker, so a call delays the next one, as on a worker with a small pool.

#include "tests/bench/measure.hpp"

namespace holdfast::bench {

// workers=, slots= (of each), page_ms= (mean; half as long to one and a half times as long), hooks= (one after the
// other), heartbeat_ms=, warm_ms= (not measured), seconds=. The queue must not run empty.
nlohmann::json simulate(const std::string& dsn, const Settings& settings);

} // namespace holdfast::bench
