#pragma once
// Turns the seeds of due crawls into snapshots, one crawl at a time, in batches. New crawls that are small need no
// expander: a worker's claim opens them. Owned by Worker; main thread only. Destroy it when run() has completed.

#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/store/expansion.hpp"
#include "services/worker/options.hpp"
#include "services/worker/turn/retry_policy.hpp"

#include <functional>
#include <string>

namespace holdfast::worker {

class CrawlExpander {
public:
  struct Callbacks {
    std::function<bool()> may_claim;                             // whether new work is taken now
    std::function<void()> expanded;                              // there are new snapshots
    std::function<awaitable<void>(std::string crawl_id)> sealed; // nothing of the crawl was left to do
  };

  CrawlExpander(asio::any_io_executor executor, RetryPolicy& retry, const std::string& worker, const Options& options,
                Callbacks callbacks);
  CrawlExpander(const CrawlExpander&) = delete;
  CrawlExpander& operator=(const CrawlExpander&) = delete;

  // Runs until stop(). Waits out temporary errors; throws any other, and Error(lease_lost) if the worker has lapsed.
  awaitable<void> run();
  // Releases what it is expanding, so that others need not wait until this worker has left.
  void stop() { sleeper_.stop(); }
  // A crawl may be due.
  void wake() { sleeper_.wake(); }

private:
  awaitable<bool> expand_one();
  awaitable<void> release();

  RetryPolicy& retry_;
  const std::string& worker_;
  const Options& options_;
  const Callbacks callbacks_;
  base::Sleeper sleeper_;
  bool in_doubt_{false}; // the answer to a claim was lost, or an expansion broke off
};

} // namespace holdfast::worker
