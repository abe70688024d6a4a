#include "services/runner/spawn_rule.hpp"

#include <algorithm>

namespace holdfast::runner {

namespace {

int count(const Running& running, const std::string& kind) {
  const auto found = running.find(kind);
  return found == running.end() ? 0 : found->second;
}

bool needs_worker(std::int64_t due, int running, int slots) {
  return due > 0 && (running == 0 || due > std::int64_t{running} * slots);
}

} // namespace

std::vector<std::string> kinds_to_spawn(const store::Backlog& backlog, const Running& running,
                                        const SpawnerOptions& options) {
  int total = 0;
  for (const auto& [kind, number] : running)
    total += number;
  std::vector<std::string> kinds;
  const auto consider = [&](const std::string& kind, std::int64_t due, int same, int most, int slots) {
    if (same >= most || total >= options.max_total || !needs_worker(due, same, slots)) return;
    kinds.push_back(kind);
    ++total;
  };
  if (options.split) {
    consider("crawl", backlog.crawls_due, count(running, "crawl"), options.max_crawl_workers, 1);
    consider("snapshot", backlog.snapshots_due, count(running, "snapshot"), options.max_per_type, options.slots);
  } else {
    // One worker does both: it turns crawls into snapshots and works on those.
    consider("all", backlog.crawls_due + backlog.snapshots_due, total, options.max_per_type, options.slots);
  }
  return kinds;
}

bool is_busy(const store::Backlog& backlog, const SpawnerOptions& options) {
  if (!options.stay) return backlog.unfinished;
  return backlog.crawls_due + backlog.snapshots_due + backlog.held > 0;
}

bool is_done(int idle_rounds, const SpawnerOptions& options) {
  return !options.stay && options.idle_timeout > 0 && idle_rounds >= options.idle_timeout;
}

std::size_t to_keep(std::size_t workers, int idle_rounds, const SpawnerOptions& options) {
  if (!options.stay || idle_rounds < std::max(1, options.idle_timeout)) return workers;
  return std::min<std::size_t>(workers, 1);
}

bool keeps_crashing(CrashTimes& crashes, std::chrono::steady_clock::time_point now, const SpawnerOptions& options) {
  while (!crashes.empty() && now - crashes.front() > options.crash_window)
    crashes.pop_front();
  return static_cast<int>(crashes.size()) >= options.max_crashes;
}

} // namespace holdfast::runner
