#pragma once
// Reading for people: rows of the stable views. Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct CrawlProgress {
  std::string id, label, status, outcome, first_url, stop_reason;
  std::int64_t total{0}, open{0}, succeeded{0}, partial{0}, failed{0}, cancelled{0}, seeds_left{0}, bytes{0};
};

struct RunningHook {
  std::string url, plugin, hook_name, worker;
  double seconds{0};
};

// Throws Error(refused) if there is no such crawl.
CrawlProgress crawl_progress(pg::Connection& connection, const std::string& crawl_id);
std::vector<RunningHook> running_hooks(pg::Connection& connection, const std::string& crawl_id, int limit);

struct CrawlDetails {
  std::string id, label, status, outcome, created_at, sealed_at; // times: ISO 8601, UTC
  std::vector<std::string> tags;
  int max_depth{0};
  std::int64_t bytes{0};
};

struct CrawlEntry {
  std::string url, title, outcome, directory, thumbnail; // thumbnail: relative to the directory, or empty
  int depth{0};
  std::int64_t bytes{0};
};

// Throws Error(refused) if there is no such crawl.
CrawlDetails crawl_details(pg::Connection& connection, const std::string& crawl_id);
std::vector<std::string> crawl_seeds(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit);
std::vector<CrawlEntry> crawl_entries(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit);

// The one row of holdfast.v_status.
pg::Result status(pg::Connection& connection);
// The one row of holdfast.v_total.
pg::Result totals(pg::Connection& connection);

// What can be listed.
std::vector<std::string> list_names();

// A view's rows, newest first where it has a notion of that. `view`: one of list_names(). Filters are optional.
struct ListQuery {
  std::string view{"snapshots"};
  std::optional<std::string> crawl_id, snapshot_id, status, url_contains, tag, plugin;
  std::optional<std::string> outcome, host, since; // since: a time as PostgreSQL reads it
  std::int64_t limit{50};
};
// Rows as they are, for tables.
pg::Result list(pg::Connection& connection, const ListQuery& query);
// The same rows, each as one line of JSON.
std::vector<std::string> list_json(pg::Connection& connection, const ListQuery& query);

// What a (possibly shortened) id, a URL or the label of a crawl names: ("crawl" | "snapshot" | "process", full id). A
// short id is the head or the tail of one, at least 4 hex digits. Throws Error(refused) if nothing or more than one
// thing matches. find_newest() takes the newest of those that a URL or a label names.
struct Found {
  std::string kind, id, crawl_id;
};
Found find(pg::Connection& connection, const std::string& name);
Found find_newest(pg::Connection& connection, const std::string& name);

// Rows of holdfast.check_invariants(): empty when all is well.
pg::Result check_invariants(pg::Connection& connection);

} // namespace holdfast::store
