#pragma once
// The hooks of one attempt or one session that were started and are not collected yet: starts and ends them.
// Owned by SnapshotJob or CrawlSession; main thread only. The owner
// waits for the end of each hook before it destroys the set.

#include "lib/base/async.hpp"
#include "lib/hooks/hook_run.hpp"
#include "services/worker/hook/hook_services.hpp"
#include "services/worker/hook/prepare_hook.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

namespace holdfast::worker {

class HookSet {
public:
  struct Running {
    std::shared_ptr<hooks::HookRun> run;
    std::size_t number; // the owner's
  };

  explicit HookSet(HookServices& context) : context_(context) {}

  // Starts it in `directory`/PLUGIN. Throws what HookRun::start() throws.
  std::shared_ptr<hooks::HookRun> start(const hooks::Hook& hook, PreparedHook prepared,
                                        const std::filesystem::path& directory, std::size_t number = 0);
  // Removes a collected hook.
  void forget(const hooks::HookRun& run);
  void clear() { running_.clear(); }

  // Sends TERM to background hooks, and KILL once the rest of their time is over, each its own: at least kill_grace, at
  // most `most`. A hook that ends so has not failed.
  void end_background(std::chrono::milliseconds most = std::chrono::milliseconds::max());
  // Lets background hooks run until their time is over; ends them then. Completes when all have ended but daemons,
  // which have nothing of their own to finish.
  awaitable<void> outlast_background();
  // Sends TERM now, KILL after `grace`. A hook that ends so without a result was interrupted.
  void interrupt(std::chrono::milliseconds grace);
  // Every hook is ended as one whose time is over.
  void end_all(std::chrono::milliseconds grace);
  void interrupt_foreground(std::chrono::milliseconds grace);
  void kill();

  const std::vector<Running>& running() const noexcept { return running_; }

private:
  HookServices& context_;
  std::vector<Running> running_;
};

// Time to wait until a background hook is ready, beyond its timeout.
inline constexpr std::chrono::seconds kReadiness{30};

} // namespace holdfast::worker
