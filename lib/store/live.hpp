#pragma once
// What pages and live displays show: the collection now, its crawls and snapshots, what runs, what is stuck, what
// failed. Rows of the stable views; times are text as the server writes them, in UTC, and empty for NULL. Blocking;
// call on the thread that owns the connection.

#include "lib/base/metrics.hpp"
#include "lib/pg/connection.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct Status {
  std::int64_t workers{0}, slots{0}, crawls_open{0}, snapshots_open{0}, snapshots_held{0}, hooks_running{0},
      crawls_paused{0}, crawls_to_do{0}, runners{0}, workers_lapsed{0};
  std::optional<std::string> last_sealed_at, paused; // paused: who paused everything, and why
};
Status status(pg::Connection& connection);

struct Totals {
  std::int64_t crawls{0}, snapshots{0}, archived{0}, failed{0}, bytes{0};
};
Totals totals(pg::Connection& connection);
// All of both, by their columns' names.
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
// At most `limit` open ones, then at most `limit` sealed ones.
std::vector<Crawl> latest_crawls(pg::Connection& connection, int limit);

struct Snapshot {
  std::string id, crawl_id, url, title, status, outcome, directory, mime, owner, created_at, sealed_at, manifest_sha256;
  std::vector<std::string> tags;
  std::string thumbnail; // relative to the directory; not of find_snapshot()
  int depth{0}, http_status{0};
  std::int64_t bytes{0}, files{0}, attempts{0}, lapses{0};
  std::optional<int> resources; // not of lists
  int resources_missing{0};

  const std::string& name() const noexcept { return title.empty() ? url : title; }
};
std::optional<Snapshot> find_snapshot(pg::Connection& connection, const std::string& id);
// Those of a crawl older than `before`, newest first.
std::vector<Snapshot> crawl_snapshots(pg::Connection& connection, const std::string& crawl,
                                      const std::optional<std::string>& before, int limit);

// The pictures of these snapshots, by id, as Snapshot::thumbnail; empty: it has none.
std::map<std::string, std::string> thumbnails(pg::Connection& connection, const std::vector<std::string>& ids);

struct SearchPage {
  std::vector<Snapshot> found;
  std::string next; // where the next page begins; empty: nothing is older
};
// Looks at the `window` snapshots older than `before`.
SearchPage search_names(pg::Connection& connection, const std::string& text, const std::optional<std::string>& before,
                        int window, int limit);

// What a hook did in the attempt that counts.
struct ShownResult {
  std::string plugin, hook, status, output, error, files_json;
  std::optional<std::chrono::milliseconds> wall;
  std::int64_t peak_memory_bytes{0}, output_bytes{0};
};
std::vector<ShownResult> results(pg::Connection& connection, const std::string& snapshot);

struct RunningHook {
  std::string snapshot_id, url, plugin, hook_name, worker;
  double seconds{0};
};
// The longest first, without those in the background.
std::vector<RunningHook> running_in_front(pg::Connection& connection, int limit);
std::vector<RunningHook> running_of(pg::Connection& connection, const std::string& crawl, int limit);

// Rows of v_stuck, also in seconds.
pg::Result stuck(pg::Connection& connection, int limit);

// Rows of v_worker, with lease_seconds and why.
pg::Result running_processes(pg::Connection& connection, int limit);

// Rows of v_process, also in seconds.
pg::Result process_tree(pg::Connection& connection, int limit);

// name, delay_seconds, max_parallel, paused, reason.
pg::Result limited_hosts(pg::Connection& connection, int limit);

struct Event {
  std::int64_t id{0};
  std::string at, lifecycle, object_id, event, to_state, detail;
  std::string json; // all of it; only of events_after()
};
// In their order, of at most `limit` ids after `id`. What one call did to many snapshots has one id and comes whole.
// `crawl_id`: only of that crawl; may be empty.
std::vector<Event> events_after(pg::Connection& connection, std::int64_t id, std::int64_t limit,
                                const std::string& crawl_id);
// The highest id that an event has; 0 if there is none.
std::int64_t last_event(pg::Connection& connection);

// Numbers of the whole collection: holdfast.metrics().
std::vector<base::Sample> metrics(pg::Connection& connection);
// Those of the worker with this pid on that machine; empty if there is none whose lease holds.
std::vector<base::Sample> worker_metrics(pg::Connection& connection, const std::string& hostname, int pid);

// Throws if the server does not answer.
void ping(pg::Connection& connection);

} // namespace holdfast::store
