#pragma once
// Snapshots and results: claiming, starting, putting back, sealing. One free function per SQL function
// (migrations/functions/30_snapshot.sql, 40_result.sql). Blocking; call on the thread that owns the connection. Every
// function that names a Lease raises Error(lease_lost) if its fence is stale, and then has changed nothing; all but
// snapshot_take, work_take and snapshot_claim may be repeated.

#include "lib/store/crawl.hpp"
#include "lib/store/node.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace holdfast::store {

// A snapshot as its new owner sees it.
struct Claim {
  Lease lease;
  std::string url, host, title, created_at;
  int depth{0}, max_depth{0}, attempts{0}, owners_lost{0};
  std::vector<std::string> tags, plugins;
  std::map<std::string, std::string> options;
  std::string persona;
  // What its crawl demands of whoever works on it; not of snapshot_claim.
  bool robots{false};                  // as the site's robots.txt allows
  std::uint64_t max_snapshot_bytes{0}; // left by all hooks together; 0: no cap
  std::vector<std::string> archived;   // plugins whose results the collection has already: they need not run
};

struct HookStart {
  std::string plugin, hook_name;
  int pid{0};
  std::uint64_t start_ticks{0};
  std::chrono::milliseconds timeout{0};
  bool background{false};
};

struct Sealing {
  std::string outcome; // succeeded, partial, failed, refused
  std::string reason;  // a sentence, or empty
  std::string directory, manifest_sha256;
  std::uint64_t bytes{0}, files{0};
  std::string title;
  std::vector<std::string> tags;
  std::vector<Seed> discovered;
};

struct Sealed {
  std::int64_t children{0}; // new snapshots among the discovered URLs
  bool crawl_sealed{false}; // with it; of several sealed in one call, with the last
};

// What is asked for one snapshot of several; must outlive the call.
struct SealRequest {
  const Lease& lease;
  const Sealing& sealing;
};

struct SealAnswer {
  enum class What { sealed, cancelled, lost, running };
  What what{What::lost};
  Sealed sealed;
};

// Which of a crawl's due snapshots goes first.
struct ClaimOrder {
  std::string first{"oldest"}; // oldest, newest: as they were found
  int from_top_n{0};           // at random among so many; 0: strictly in order
};
// Up to `room` due snapshots, started; crawls in `near` first, or with `near_only` of those alone.
std::vector<Claim> snapshot_take(pg::Connection& connection, const std::string& node, int room,
                                 const std::vector<std::string>& near, bool near_only, const ClaimOrder& order = {});
// The same, after opening one new crawl of at most `seeds` URLs if one is due: then these are among them, or are next.
std::vector<Claim> work_take(pg::Connection& connection, const std::string& node, int room,
                             const std::vector<std::string>& near, bool near_only, const ClaimOrder& order, int seeds);
// The same in two steps, as older programs: claimed, then started.
std::vector<Claim> snapshot_claim(pg::Connection& connection, const std::string& node, int room,
                                  const std::vector<std::string>& near);
void snapshot_start(pg::Connection& connection, const std::string& node, const Lease& lease);
// ending: released, interrupted, handed_back. spend: count the attempt.
void snapshot_release(pg::Connection& connection, const std::string& node, const Lease& lease,
                      const std::string& ending, std::chrono::milliseconds delay, const std::string& reason,
                      bool spend);
Sealed snapshot_seal(pg::Connection& connection, const std::string& node, const Lease& lease, const Sealing& sealing);
// The same for several, in one commit: an answer for each, in their order. Throws if any breaks a rule of the schema;
// then none is sealed.
std::vector<SealAnswer> snapshot_seal_many(pg::Connection& connection, const std::string& node,
                                           const std::vector<SealRequest>& requests);
// What snapshot_seal returns or throws for such an answer.
Sealed sealed_or_throw(const Lease& lease, const SealAnswer& answer);

// Results of several snapshots' hooks, in one commit; as for seals, what is referred to must outlive the call, and a
// throw means that nothing of it was written.
struct StartRequest {
  const Lease& lease;
  const HookStart& hook;
};
struct FinishRequest {
  const Lease& lease;
  const std::string &plugin, &hook_name, &status;
  const std::string& result_json;
};
enum class Written { written, lost, unknown };
std::vector<Written> result_start_many(pg::Connection& connection, const std::string& node,
                                       const std::vector<StartRequest>& requests);
std::vector<Written> result_finish_many(pg::Connection& connection, const std::string& node,
                                        const std::vector<FinishRequest>& requests);
// Throws what result_start and result_finish throw for such an answer.
void require_written(const Lease& lease, Written answer);

void result_start(pg::Connection& connection, const std::string& node, const Lease& lease, const HookStart& hook);
// `result_json`: columns of holdfast.archive_result by name (output, error, output_files, exit_code, wall_ms, ...).
void result_finish(pg::Connection& connection, const std::string& node, const Lease& lease, const std::string& plugin,
                   const std::string& hook_name, const std::string& status, const std::string& result_json);
// What a finished hook had left was changed by another. `result_json`: error, output_files, output_bytes.
void result_amend(pg::Connection& connection, const std::string& node, const Lease& lease, const std::string& plugin,
                  const std::string& hook_name, const std::string& result_json);

} // namespace holdfast::store
