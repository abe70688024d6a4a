#include "services/worker/turn/running_hooks.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::chrono::milliseconds kLeast{250}; // between two calls
constexpr std::chrono::milliseconds kAgain{10000};
constexpr std::chrono::milliseconds kAfterTrouble{1000};
constexpr std::chrono::milliseconds kSettled{1000}; // hooks that have run so long are described in full

} // namespace

RunningHooks::RunningHooks(asio::any_io_executor executor, RetryPolicy& retry, const std::string& worker,
                           std::function<std::vector<store::ActiveHook>()> collect)
    : retry_(retry), worker_(worker), collect_(std::move(collect)), sleeper_(std::move(executor)) {}

void RunningHooks::changed() {
  changed_ = true;
  sleeper_.wake();
}

void RunningHooks::lost() {
  lost_ = true;
  changed();
}

awaitable<void> RunningHooks::run() {
  using Clock = std::chrono::steady_clock;
  while (!sleeper_.stopped()) {
    if (!changed_) co_await sleeper_.sleep(told_.empty() ? base::Sleeper::kUntilWoken : kAgain);
    if (sleeper_.stopped()) break;
    if (!std::exchange(changed_, false) && !told_.empty()) lost_ = true;
    const bool told = co_await tell();
    for (const auto next = Clock::now() + (told ? kLeast : kAfterTrouble); !sleeper_.stopped() && Clock::now() < next;)
      co_await sleeper_.sleep(std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()));
    // The launcher learns a hook's pid a moment after its start.
    const bool pids_missing = std::any_of(told_.begin(), told_.end(),
                                          [](const store::ActiveHook& hook) { return hook.pid == 0 && !hook.ended; });
    changed_ |= !told || pids_missing || unsettled_;
  }
}

// Reports the running hooks. Returns false if the report failed.
awaitable<bool> RunningHooks::tell() {
  auto hooks = collect_();
  unsettled_ = false;
  for (auto& hook : hooks)
    if (hook.started_with && !hook.ended && std::chrono::steady_clock::now() - hook.started < kSettled) {
      hook.started_with.reset();
      unsettled_ = true;
    }
  if (!lost_ && hooks == told_) co_return true;
  lost_ = false;
  try {
    co_await retry_.once(&store::worker_hooks, worker_, hooks);
  } catch (const std::exception& error) {
    spdlog::debug("could not report running hooks: {}", error.what());
    lost_ = true;
    co_return false;
  }
  told_ = std::move(hooks);
  co_return true;
}

} // namespace holdfast::worker
