#pragma once
// Schedules: crawls that are added again and again. One free function per SQL function
// (migrations/functions/72_schedule.sql). Blocking; call on the thread that owns the connection. Errors: refused, with
// a message for users, when a schedule makes no sense.

#include "lib/pg/connection.hpp"
#include "lib/store/crawl.hpp"

#include <string>
#include <vector>

namespace holdfast::store {

struct NewSchedule {
  std::string id; // chosen by the caller, so that adding may be repeated
  std::string label, every, time_zone{"UTC"};
  NewCrawl crawl;          // what each run adds; its id is not used
  std::vector<Seed> seeds; // canonical
};

// Returns when it runs first: ISO 8601, UTC.
std::string schedule_add(pg::Connection& connection, const NewSchedule& schedule);
// The id of the schedule that a label, or an id, whole or shortened, names. Throws Error(refused) unless it is exactly
// one.
std::string schedule_find(pg::Connection& connection, const std::string& text);
// The next times, as the clock in the zone shows them: columns "local" and "at" (UTC).
pg::Result schedule_times(pg::Connection& connection, const std::string& every, const std::string& time_zone,
                          int count);

} // namespace holdfast::store
