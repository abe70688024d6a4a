#pragma once
// Snapshots as a worker claims and finishes them, and the hooks that it runs. One free function per SQL function, same
// name (migrations/functions/40_claim.sql, 41_finish.sql, 21_worker.sql). Blocking; call on the thread that owns the
// connection.
//
// worker_hooks() and worker_turn() may be repeated, but not with room: snapshots that a lost answer has granted come up
// in the next heartbeats (HeartbeatAnswer::extra). Times are sent as ages: only the database's clock counts.

#include "lib/base/text/facts.hpp"
#include "lib/store/expansion.hpp"
#include "lib/store/worker.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::store {

// A snapshot as its new owner sees it: holdfast.claimed_snapshot.
struct Claim {
  Lease lease;
  std::map<std::string, std::string> options;
  std::string url, host, title, created_at, bookmarked_at; // bookmarked_at may be empty
  int depth{0}, max_depth{0}, attempts{0}, lapses{0};
  std::vector<std::string> tags, plugins;
  std::string persona;
  bool robots{false};                  // honour the host's robots.txt
  bool full{false};                    // run hooks also if no file has changed
  std::uint64_t max_snapshot_bytes{0}; // left by all hooks together; 0: no cap
  std::vector<std::string> archived;   // plugins that need not run: the collection has their results
};

struct HookCost {
  std::chrono::milliseconds wall{0}, user{0}, system{0};
  std::uint64_t peak_memory_bytes{0}, read_bytes{0}, written_bytes{0};
};

struct ResultFile {
  std::string path; // below the plugin's directory
  std::string type;
  std::uint64_t size{0};
  std::string sha256;
};

// Result of one hook in one attempt: the columns of holdfast.archive_result.
struct HookResult {
  std::string plugin, hook;
  std::string status{"succeeded"}; // succeeded, failed, skipped, noresults
  int pid{0};                      // 0: it never had one
  bool background{false};
  std::chrono::steady_clock::time_point started{};
  std::string output, error;
  std::string output_json; // a JSON text, or empty
  std::vector<ResultFile> files;
  std::uint64_t bytes{0}; // of all files, also of those that are not listed
  std::optional<int> exit_code, exit_signal;
  std::optional<HookCost> cost;                    // without it, it took no time
  std::shared_ptr<const std::string> started_with; // hooks::started_with(), of one that failed; may be null
};

// Returns the end and the cost of a hook as columns of holdfast.archive_result and holdfast.session_hook.
nlohmann::json end_json(const HookResult& result);

// A finished page: how this attempt ended, and its results.
struct Page {
  Lease lease;
  std::string ending{"sealed"};                   // sealed, released, worker_error, interrupted, declined
  std::string outcome;                            // of sealed: succeeded, partial, failed, refused
  std::string reason;                             // a sentence, or empty
  std::optional<std::chrono::milliseconds> delay; // of released; without it and with `spend` the database decides
  bool spend{false};                              // the attempt counts
  std::string directory, manifest;                // manifest: its SHA-256
  std::uint64_t bytes{0}, files{0};
  std::string title;
  base::Facts facts;
  std::vector<std::string> tags;
  std::vector<Seed> links;
  std::vector<HookResult> results;
  std::string captures;    // records of its WARC files: an array of JSON (archive::read_captures), or empty
  std::string fingerprint; // for the next capture of the URL: {persona, kind, previous, digest, body}, or empty
  // Snapshots of other crawls, as (crawl, snapshot), to whose records these refer.
  std::set<std::pair<std::string, std::string>> originals;
};

struct PageAnswer {
  enum class What {
    sealed,
    cancelled, // sealed as cancelled, because its crawl was stopped: nothing of the attempt is kept
    released,
    failed, // its attempts are used up: sealed as failed
    lost,   // no longer held with this fence: nothing was written
  };
  What what{What::lost};
  std::int64_t children{0}; // new snapshots among the links
  bool crawl_sealed{false}; // with this page
};
std::string_view to_string(PageAnswer::What what) noexcept;

struct ClaimOrder {
  bool newest{false}; // the newest, not the oldest, as they were found
  int from_top_n{0};  // at random among so many; 0: strictly in order
};

struct ClaimRequest {
  int room{0};                     // at most so many; 0: none
  std::vector<std::string> open{}; // crawls that have a session here
  bool open_only{false};           // nothing of other crawls
  ClaimOrder order{};
  int seeds{0};                    // open one new crawl of at most so many seeds, if one is due; 0: none
  std::vector<std::string> only{}; // these snapshots; empty: any
};

struct TurnRequest {
  std::vector<Page> pages{};
  ClaimRequest claim{};
};

struct TurnAnswer {
  std::vector<PageAnswer> pages; // one for each page, in the order of the request
  std::vector<Claim> claims;
  // Time until a waiting snapshot is due, if there was room for more; nullopt: nothing waits.
  std::optional<std::chrono::milliseconds> wait;
};

// Finishes pages, then claims, in one transaction. Throws, and changes nothing, if a page breaks a rule of the schema.
TurnAnswer worker_turn(pg::Connection& connection, const std::string& worker, const TurnRequest& request);

// A hook that runs now: a row of holdfast.running_hook.
struct ActiveHook {
  Lease lease;
  std::string plugin, hook;
  bool background{false};
  int pid{0}; // 0: not known yet
  std::chrono::steady_clock::time_point started{};
  std::chrono::milliseconds timeout{0};
  std::optional<std::chrono::steady_clock::time_point> still_since{}; // it makes no progress
  std::shared_ptr<const std::string> started_with{};                  // as in HookResult
  std::shared_ptr<const HookResult> ended{};                          // what it did, without files; null: it runs
  friend bool operator==(const ActiveHook&, const ActiveHook&) = default;
};
// Replaces the report of hooks that run on this worker, or have ended on pages that it has in work.
void worker_hooks(pg::Connection& connection, const std::string& worker, const std::vector<ActiveHook>& hooks);

} // namespace holdfast::store
