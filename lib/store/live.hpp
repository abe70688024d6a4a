#pragma once
// Data of pages and live displays: the collection now, its crawls and snapshots, running hooks, stuck objects,
// failures. Mostly rows of the stable views by name; times are text as the server writes them, in UTC, and empty for
// NULL. Blocking; call on the thread that owns the connection.

#include "lib/base/metrics.hpp"
#include "lib/pg/connection.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

// The totals and what runs: one row of v_total and v_status; the same as JSON.
pg::Result status(pg::Connection& connection);
nlohmann::ordered_json status_json(pg::Connection& connection);

struct Crawl {
  std::string id, label, status, outcome, stop_reason, first_url, notes, created_by, created_at, sealed_at;
  std::vector<std::string> tags;
  std::int64_t total{0}, open{0}, succeeded{0}, partial{0}, failed{0}, cancelled{0}, seeds_left{0}, bytes{0},
      max_urls{0};
  int max_depth{0};

  const std::string& name() const noexcept { return label.empty() ? first_url : label; }
};
std::optional<Crawl> find_crawl(pg::Connection& connection, const std::string& id);
// Throws Error(refused) if there is no such crawl.
Crawl crawl(pg::Connection& connection, const std::string& id);
// At most `limit` open ones, then at most `limit` sealed ones: rows of v_crawl.
pg::Result latest_crawls(pg::Connection& connection, int limit);

// The pictures of these snapshots, by id, relative to their directories; empty: it has none.
std::map<std::string, std::string> thumbnails(pg::Connection& connection, const std::vector<std::string>& ids);

struct SearchPage {
  pg::Result found; // rows of v_snapshot, with thumbnail
  std::string next; // where the next page begins; empty: nothing is older
};
// Looks at the `window` snapshots older than `before`.
SearchPage search_names(pg::Connection& connection, const std::string& text, const std::optional<std::string>& before,
                        int window, int limit);

// Rows of v_result of the attempt that counts, with files_json.
pg::Result results(pg::Connection& connection, const std::string& snapshot);

// Rows of v_running without those in the background, the longest first.
pg::Result running_in_front(pg::Connection& connection, int limit);
// Rows of v_worker, with why.
pg::Result running_processes(pg::Connection& connection, int limit);

pg::Result process_tree(pg::Connection& connection, int limit);

// name, delay_seconds, max_parallel, paused, reason.
pg::Result limited_hosts(pg::Connection& connection, int limit);

// Returns rows of v_event, with json, in their order, of at most `limit` ids after `id`. The changes that one call made
// to many snapshots have one id and come together. `crawl_id`: only of that crawl; may be empty.
pg::Result events_after(pg::Connection& connection, std::int64_t id, std::int64_t limit, const std::string& crawl_id);
// The highest id that an event has; 0 if there is none.
std::int64_t last_event(pg::Connection& connection);
// The last `limit` events as lines of JSON, in their order.
std::vector<std::string> last_events(pg::Connection& connection, std::int64_t limit, const std::string& crawl_id);

// Numbers of the whole collection: holdfast.metrics().
std::vector<base::Sample> metrics(pg::Connection& connection);
// Returns the metrics of the worker with this pid on that machine; empty if there is none whose lease holds.
std::vector<base::Sample> worker_metrics(pg::Connection& connection, const std::string& hostname, int pid);

// Throws if the server does not answer.
void ping(pg::Connection& connection);

} // namespace holdfast::store
