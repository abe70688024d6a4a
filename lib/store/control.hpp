#pragma once
// Commands to a running collection: pause, resume, cancel, scope, retry, tags, remove. One free function per SQL
// function (migrations/functions/80_commands.sql, 81_collection.sql). Blocking; call on the thread that owns the
// connection. Each command is final when the call returns, and may be repeated: the answer then says that nothing
// changed.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct Command {
  std::string by, why; // who gives it; a sentence, or empty
  std::string at{};    // of resuming a crawl or snapshot: not before this time (ISO 8601); empty: now
};

using ScopeLists = std::map<std::string, std::vector<std::string>>; // "deny" -> patterns, as in holdfast.scope_refusal

// All return whether anything changed. Throw Error(refused) for an id that names nothing.
// kind: crawl, snapshot, host, worker, or collection (without an id). action: pause, resume, cancel or drain, as
// 80_commands.sql has them. A drained worker or runner claims nothing more, finishes what it has, and ends.
bool give(pg::Connection& connection, const std::string& kind, const std::string& action, const std::string& id,
          const Command& command);
// Also closes what is open, at most so many batches of it; workers and the runner close the rest. `progress` is told
// how many snapshots are left.
bool crawl_cancel(pg::Connection& connection, const std::string& crawl, const Command& command,
                  const std::function<void(std::int64_t)>& progress,
                  int most_batches = std::numeric_limits<int>::max());

// Open crawls that nothing stops yet.
std::vector<std::string> crawls_to_stop(pg::Connection& connection, int limit);
// Those of these workers and runners that still run.
std::vector<std::string> workers_running(pg::Connection& connection, const std::vector<std::string>& ids);

struct Scope {
  std::string lists; // JSON, as ScopeLists
  std::int64_t excluded{0}, refused{0};
};
Scope crawl_scope_of(pg::Connection& connection, const std::string& crawl);
// Judges the open snapshots by the new scope too, unless the crawl is paused (then that happens when it is resumed).
bool crawl_scope(pg::Connection& connection, const std::string& crawl, const ScopeLists& add, const ScopeLists& remove,
                 const std::string& by);

// Above 0: before other crawls; below 0: after them. From the next claim of any worker on.
bool crawl_priority(pg::Connection& connection, const std::string& crawl, int priority, const std::string& by);

// A new crawl `id` of what went wrong in these crawls and snapshots; returns how many URLs, 0: nothing was added.
std::int64_t crawl_retry(pg::Connection& connection, const std::string& id, const std::vector<std::string>& of,
                         bool failed_only, const std::vector<std::string>& plugins, const std::string& by);

// What people write about a crawl or snapshot. What is not set stays as it is.
struct Description {
  std::optional<std::string> label, title, notes; // label: of crawls; title: of snapshots, "": that of the page
  std::vector<std::string> add_tags, remove_tags;
};
struct Described {
  std::string label, title, notes;
  std::vector<std::string> tags;
};
Described crawl_description(pg::Connection& connection, const std::string& crawl);
Described snapshot_description(pg::Connection& connection, const std::string& snapshot);
void crawl_describe(pg::Connection& connection, const std::string& crawl, const Description& description,
                    const std::string& by);
// False: nothing was to change.
bool snapshot_describe(pg::Connection& connection, const std::string& snapshot, const Description& description,
                       const std::string& by);
void crawl_keep(pg::Connection& connection, const std::string& crawl, std::optional<std::chrono::milliseconds> keep);

// Deletes a sealed crawl; purge_list() then lists its directories. Returns how many.
std::int64_t crawl_remove(pg::Connection& connection, const std::string& crawl, const std::string& by);
// Deletes one snapshot of a sealed crawl. False: there was none.
bool snapshot_remove(pg::Connection& connection, const std::string& snapshot, const std::string& by);
std::vector<std::string> crawls_expired(pg::Connection& connection, std::int64_t limit);
// Lists directories of removed months for purge_list(), a batch at a time; nothing while many are listed.
void purge_fill(pg::Connection& connection);
// Those that have waited for `age`.
std::vector<std::string> purge_list(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age = {});
// A crawl's page in the archive that no longer says what is so.
struct StalePage {
  std::string crawl_id, since;
  bool there{true}; // else the crawl was removed, and its page is to go
};
// Those that have waited for `age`; with `crawl` only its own.
std::vector<StalePage> crawl_pages_stale(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age,
                                         const std::optional<std::string>& crawl);
// It was written, or deleted, after `since` was read.
void crawl_page_made(pg::Connection& connection, const StalePage& page);
void purge_done(pg::Connection& connection, const std::vector<std::string>& directories);

// Whether this login may take a role.
bool may_act_as(pg::Connection& connection, const std::string& role);

// `process` empty: every worker and runner, now and later. `level` empty: back to what each has configured.
void log_level_set(pg::Connection& connection, const std::string& process, const std::string& level);

// If no runner does its duty "clock": makes due what an earlier clock of the server has dated too far ahead. Returns
// how many rows; at most once a minute any, however many workers call.
std::int64_t clock_check(pg::Connection& connection);

} // namespace holdfast::store
