#pragma once
// Services for all parts of a worker that run hooks on this machine. Owned by Worker, which outlives its users; main
// thread only. The directories above add what they need besides: SessionServices, PageServices.

#include "lib/base/async.hpp"
#include "lib/base/log.hpp"
#include "lib/process/hook_users.hpp"
#include "lib/process/launcher.hpp"
#include "lib/process/sandbox.hpp"
#include "lib/store/worker.hpp"
#include "services/worker/hook/binary_lookup.hpp"
#include "services/worker/options.hpp"
#include "services/worker/turn/retry_policy.hpp"

#include <boost/asio/thread_pool.hpp>

#include <string>

namespace holdfast::worker {

class HookNetworks;

struct HookServices {
  const Options& options;
  const std::string& worker_id;
  const std::string& hostname;
  RetryPolicy& retry;
  asio::any_io_executor executor;
  asio::thread_pool& files;    // hashing, fsync, publication; not two jobs of one attempt at once
  asio::thread_pool& resolver; // name resolution
  process::Launcher& launcher;
  BinaryLookup& binaries;
  const process::Sandbox& sandbox;      // of all hooks; those of a page or crawl get their own directories on top
  const process::HookUsers& hook_users; // a crawl's hooks get one
  HookNetworks& networks;
};

// Returns an object for whose life the log lines name this attempt, and a hook of it.
inline base::LogAbout log_about(const store::Lease& lease, const std::string& plugin = "",
                                const std::string& hook = "") {
  return base::LogAbout({lease.crawl_id, lease.snapshot_id, lease.fence, plugin, hook});
}

} // namespace holdfast::worker
