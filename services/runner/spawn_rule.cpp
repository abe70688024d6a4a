#include "services/runner/spawn_rule.hpp"

#include <algorithm>

namespace holdfast::runner {

namespace {

store::WorkerCount total_of(const store::WorkerCounts& workers) {
  store::WorkerCount total;
  for (const auto& [kind, count] : workers) {
    total.running += count.running;
    total.able += count.able;
  }
  return total;
}

// Counts workers that take due work of a kind: those of that kind, and those that do everything.
store::WorkerCount count(const store::WorkerCounts& workers, const std::string& kind) {
  store::WorkerCounts found;
  for (const auto& same : {kind, std::string("all")})
    if (const auto it = workers.find(same); it != workers.end()) found.insert(*it);
  return total_of(found);
}

bool needs_worker(std::int64_t due, int able, int slots) {
  return due > 0 && (able == 0 || due > std::int64_t{able} * slots);
}

} // namespace

std::vector<std::string> kinds_to_spawn(const store::Backlog& backlog, const store::WorkerCounts& running,
                                        const SpawnerOptions& options) {
  int total = total_of(running).running;
  std::vector<std::string> kinds;
  const auto consider = [&](const std::string& kind, std::int64_t due, store::WorkerCount same, int most, int slots) {
    if (same.running >= most || total >= options.max_total || !needs_worker(due, same.able, slots)) return;
    kinds.push_back(kind);
    ++total;
  };
  if (options.split) {
    consider("crawl", backlog.crawls_due, count(running, "crawl"), options.max_crawl_workers, 1);
    consider("snapshot", backlog.snapshots_due, count(running, "snapshot"), options.max_per_type, options.slots);
  } else {
    // A worker does both: it turns crawls into snapshots and works on those.
    consider("all", backlog.crawls_due + backlog.snapshots_due, total_of(running), options.max_per_type, options.slots);
  }
  return kinds;
}

int limit_by_processors(int most, int processors) { return std::min(most, std::max(1, processors / 2)); }

std::string why_none(const store::Backlog& backlog, const store::Neighbours& neighbours,
                     const store::WorkerCounts& running, const SpawnerOptions& options) {
  if (backlog.crawls_due + backlog.snapshots_due == 0) return "";
  if (!neighbours.newer_run.empty()) return neighbours.newer_run + " starts the workers of this machine";
  const int others = total_of(neighbours.workers).running;
  if (others == 0) return "";
  const int most = options.split ? options.max_total : std::min(options.max_per_type, options.max_total);
  return std::to_string(total_of(running).running) + " of " + std::to_string(most) + " workers of this machine run; " +
         std::to_string(others) + (others == 1 ? " was" : " were") + " started elsewhere";
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
