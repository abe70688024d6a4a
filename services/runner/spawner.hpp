#pragma once
// Starts local workers as the queue needs them (`holdfast run`), by spawn_rule.hpp. Owned by the verb; main thread
// only. Workers are programs of their own: a crash of one costs its own work only, and is followed by a new one.
// Destroy it only after run() has completed; the destructor kills remaining workers (their guards see to the rest).

#include "lib/base/async.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/pg/pool.hpp"
#include "lib/process/subprocess.hpp"
#include "lib/store/runner.hpp"
#include "services/runner/options.hpp"
#include "services/runner/spawn_rule.hpp"

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <string>
#include <vector>

namespace holdfast::runner {

class Spawner {
public:
  Spawner(asio::io_context& io, const std::string& dsn, SpawnerOptions options, base::StopSignal& stop);
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // Runs until no work is left (unless it is to stay), or until it is stopped; then ends the workers and waits for
  // them. Throws Error(system) if workers keep crashing.
  awaitable<void> run();

  std::size_t workers() const noexcept { return workers_.size(); }
  std::uint64_t started() const noexcept { return started_; }

private:
  awaitable<void> tick();
  awaitable<bool> say_next(std::string about);
  void reap();
  void spawn(const std::string& kind);
  store::WorkerCounts running() const; // those that we have started
  void show(const store::Backlog& backlog);
  awaitable<void> end_workers();

  asio::io_context& io_;
  SpawnerOptions options_;
  base::StopSignal& stop_;
  pg::Pool pool_;
  asio::steady_timer timer_;
  struct Worker {
    std::string kind; // all, crawl, snapshot
    std::unique_ptr<process::Subprocess> process;
  };
  std::vector<Worker> workers_;
  CrashTimes crashes_;
  std::string shown_, why_none_;
  int idle_{0};
  int waiting_{0}; // rounds in a row in which something is due, nothing is in work, and no worker is started
  std::uint64_t started_{0};
};

} // namespace holdfast::runner
