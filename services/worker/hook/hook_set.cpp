#include "services/worker/hook/hook_set.hpp"

#include "lib/base/text/time.hpp"

#include <boost/asio/steady_timer.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace holdfast::worker {

std::shared_ptr<hooks::HookRun> HookSet::start(const hooks::Hook& hook, PreparedHook prepared,
                                               const std::filesystem::path& directory, std::size_t number) {
  auto run = std::make_shared<hooks::HookRun>(context_.launcher, context_.executor, std::move(prepared.command), hook,
                                              directory / hook.plugin->name, prepared.limits);
  run->start();
  running_.push_back({run, number});
  return run;
}

void HookSet::forget(const hooks::HookRun& run) {
  std::erase_if(running_, [&](const Running& one) { return one.run.get() == &run; });
}

void HookSet::end_background(std::chrono::milliseconds most) {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [run, number] : running_) {
    if (!run->hook().name.background) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(run->started_at() + run->timeout() - now);
    const auto grace = std::min(most, std::max(left, context_.options.kill_grace));
    spdlog::debug("SIGTERM to {}/{} pid {}, SIGKILL in {}", run->hook().plugin->name, run->hook().name.name, run->pid(),
                  base::format_duration(grace));
    run->end(grace, false);
  }
}

awaitable<void> HookSet::outlast_background() {
  auto running = running_;
  std::erase_if(running, [](const Running& one) { return one.run->hook().name.daemon; });
  std::vector<std::unique_ptr<asio::steady_timer>> timers;
  for (const auto& [run, number] : running) {
    timers.push_back(std::make_unique<asio::steady_timer>(context_.executor, run->started_at() + run->timeout()));
    timers.back()->async_wait([run = run, grace = context_.options.kill_grace](const boost::system::error_code& error) {
      if (!error) run->end(grace, false);
    });
  }
  for (const auto& [run, number] : running)
    co_await run->finish();
}

void HookSet::end_all(std::chrono::milliseconds grace) {
  for (const auto& [run, number] : running_)
    run->end(grace, false);
}

void HookSet::interrupt(std::chrono::milliseconds grace) {
  for (const auto& [run, number] : running_)
    run->end(grace, true);
}

void HookSet::interrupt_foreground(std::chrono::milliseconds grace) {
  for (const auto& [run, number] : running_)
    if (!run->hook().name.background) run->end(grace, true);
}

void HookSet::kill() {
  for (const auto& [run, number] : running_)
    run->kill();
}

} // namespace holdfast::worker
