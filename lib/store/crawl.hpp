#pragma once
// Crawls: adding, once or by a schedule. One free function per SQL function (migrations/functions/30_crawl.sql).
// Blocking; call on the thread that owns the connection.

#include "lib/store/expansion.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace holdfast::store {

struct NewCrawl {
  std::string id; // chosen by the caller, so that adding may be repeated
  // By the names of the columns (crawl_option_names() in SQL); what is not there has the column's default.
  nlohmann::json options = nlohmann::json::object();
  std::string paused_why{}; // not empty: it is added paused, for this reason

  nlohmann::json& operator[](const char* name) { return options[name]; }
};
struct PlannedCrawl {
  NewCrawl crawl;
  std::vector<Seed> seeds;
  std::size_t left_out{0}; // lines of the text that cannot be used
  std::string problems{};  // what is wrong with them
};

// Adds the crawl with all its seeds in one transaction (in batches, so that a million seeds need no million-element
// array). Returns false if a crawl with this id exists already: then nothing changes.
bool crawl_add(pg::Connection& connection, const NewCrawl& crawl, const std::vector<Seed>& seeds);

// A seed that a crawl with only_new leaves out, and its newest snapshot.
struct ArchivedSeed {
  std::string url, snapshot_id, sealed_at, directory;
};
// Returns those of `seeds` that are archived, in their order, each once.
std::vector<ArchivedSeed> seeds_archived(pg::Connection& connection, const NewCrawl& crawl,
                                         const std::vector<Seed>& seeds);
// Adds a planned crawl; one with only_new is not added if all its seeds are archived.
struct CrawlAdded {
  bool added{false}; // false: it exists already, or nothing is left of it
  bool nothing_left{false};
  std::vector<ArchivedSeed> archived{}; // that it leaves out
};
CrawlAdded crawl_add(pg::Connection& connection, const PlannedCrawl& planned);

// Schedules: crawls that are added again and again. One free function per SQL function
// (migrations/functions/72_schedule.sql). Blocking; call on the thread that owns the connection. Errors: refused, with
// a message for users, when a schedule makes no sense.
struct NewSchedule {
  std::string id; // chosen by the caller, so that adding may be repeated
  std::string label, every, time_zone{"UTC"};
  NewCrawl crawl;          // what each run adds; its id is not used
  nlohmann::json watch{};  // {when, select, ignore, notify}: argument of watch_set(); null: no condition
  std::vector<Seed> seeds; // canonical
};

// Returns when it runs first: ISO 8601, UTC.
std::string schedule_add(pg::Connection& connection, const NewSchedule& schedule);
// The next times, as the clock in the zone shows them: columns "local" and "at" (UTC).
pg::Result schedule_times(pg::Connection& connection, const std::string& every, const std::string& time_zone,
                          int count);

} // namespace holdfast::store
