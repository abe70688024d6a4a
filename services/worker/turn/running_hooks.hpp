#pragma once
// Reports to the database which hooks of snapshots run on this worker, and the ends of those whose page is still in
// work (holdfast.running_hook): at once when the set changes, but at most four times a second, and every ten seconds
// while some run. Nothing waits for these calls, and one that fails is made again. Owned by Worker; main thread only.
// Destroy it when run() has completed.

#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/turn/retry_policy.hpp"

#include <functional>
#include <string>
#include <vector>

namespace holdfast::worker {

class RunningHooks {
public:
  // `collect`: those hooks, as they are at that moment.
  RunningHooks(asio::any_io_executor executor, RetryPolicy& retry, const std::string& worker,
               std::function<std::vector<store::ActiveHook>()> collect);
  RunningHooks(const RunningHooks&) = delete;
  RunningHooks& operator=(const RunningHooks&) = delete;

  // Runs until stop().
  awaitable<void> run();
  void stop() { sleeper_.stop(); }

  void changed();
  // The database may have lost the set: its table does not survive a crash.
  void lost();

private:
  awaitable<bool> tell();

  RetryPolicy& retry_;
  const std::string& worker_;
  const std::function<std::vector<store::ActiveHook>()> collect_;
  base::Sleeper sleeper_;
  std::vector<store::ActiveHook> told_; // what the database knows
  bool changed_{false}, lost_{false};
  bool unsettled_{false}; // a hook was reported without what it was started with
};

} // namespace holdfast::worker
