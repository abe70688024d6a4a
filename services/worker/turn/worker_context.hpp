#pragma once
// Context that all parts of one worker use. Owned by Worker, which outlives them; main thread only. Each directory
// above adds what it needs besides: HookServices, SessionServices, PageServices.

#include "lib/base/async.hpp"
#include "lib/base/log.hpp"
#include "lib/store/worker.hpp"
#include "services/worker/options.hpp"
#include "services/worker/turn/retry_policy.hpp"

#include <boost/asio/thread_pool.hpp>

#include <string>

namespace holdfast::worker {

struct WorkerContext {
  const Options& options;
  const std::string& worker_id;
  const std::string& hostname;
  RetryPolicy& retry;
  asio::any_io_executor executor;
  asio::thread_pool& files;    // hashing, fsync, publication; not two jobs of one attempt at once
  asio::thread_pool& resolver; // name resolution
};

// Returns an object for whose life the log lines name this attempt, and a hook of it.
inline base::LogAbout log_about(const store::Lease& lease, const std::string& plugin = "",
                                const std::string& hook = "") {
  return base::LogAbout({lease.crawl_id, lease.snapshot_id, lease.fence, plugin, hook});
}

} // namespace holdfast::worker
