#pragma once
// State shared by the jobs and sessions of one worker. Owned by Worker, which outlives them; main thread only.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/base/log.hpp"
#include "lib/process/hook_users.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/hook/binary_lookup.hpp"
#include "services/worker/options.hpp"
#include "services/worker/turn/retry_policy.hpp"

#include <boost/asio/thread_pool.hpp>

#include <string>

namespace holdfast::worker {

class CrawlSessions;
class HookNetworks;
class BinaryResolver;
class BrowserWatch;
class ClaimConditions;
class RunningHooks;
class Turns;

struct JobContext {
  const Options& options;
  const std::string& worker_id;
  const std::string& hostname;
  RetryPolicy& retry;
  process::Launcher& launcher;
  BinaryLookup& binaries;
  asio::thread_pool& files;    // hashing, fsync, publication; not two jobs of one attempt at once
  asio::thread_pool& resolver; // name resolution
  const archive::Root& archive_root;
  asio::any_io_executor executor;
  const process::Sandbox& sandbox;      // of every hook of a page or a crawl; each gets its own directories on top
  const process::HookUsers& hook_users; // ... and its crawl a user
  HookNetworks& networks;
  std::string cookie; // HOLDFAST_COOKIE value of this incarnation
  CrawlSessions* sessions{nullptr};
  BinaryResolver* binary_resolver{nullptr};
  RunningHooks* running_hooks{nullptr};
  Turns* turns{nullptr};
  BrowserWatch* browser{nullptr};
  ClaimConditions* claim_conditions{nullptr};
};

// Adds this attempt, and a hook of it, to log lines during its life.
inline base::LogAbout log_about(const store::Lease& lease, const std::string& plugin = "",
                                const std::string& hook = "") {
  return base::LogAbout({lease.crawl_id, lease.snapshot_id, lease.fence, plugin, hook});
}

} // namespace holdfast::worker
