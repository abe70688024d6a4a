#pragma once
// Starts local workers as the queue needs them (`holdfast run`), by the rule below. Owned by the verb; main thread
// only. Workers are programs of their own: a crash of one costs its own work only, and is followed by a new one.
// Destroy it only after run() has completed; the destructor kills remaining workers (their guards see to the rest).

#include "lib/base/async.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/pg/pool.hpp"
#include "lib/process/subprocess.hpp"
#include "lib/store/runner.hpp"
#include "services/runner/gate.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::runner {

// Decides when the spawner starts and ends local workers: pure functions of the state of one round. Any thread.

// The kinds of workers to start in this round: at most one worker of a kind, and within the limits per kind and in
// total. A kind needs a worker if something is due for it and none that could claim it runs, or more is due than those
// can hold. `running`: the workers of this machine, also those of others.
std::vector<std::string> kinds_to_spawn(const store::Backlog& backlog, const store::WorkerCounts& running,
                                        const SpawnerOptions& options);
// The limit of workers per kind where none is configured: `most`, or half the processors, because each worker runs
// several browsers at once.
int limit_by_processors(int most, int processors);
// Returns why no worker is started although work is due, for users; "": for no reason that is outside this process.
std::string why_none(const store::Backlog& backlog, const store::Neighbours& neighbours,
                     const store::WorkerCounts& running, const SpawnerOptions& options);

// Returns true if the queue still needs workers. A spawner that stays counts only work that can be done now.
bool is_busy(const store::Backlog& backlog, const SpawnerOptions& options);
// Returns true if , after so many rounds in a row without work, all is done.
bool is_done(int idle_rounds, const SpawnerOptions& options);
// Returns how many workers to keep after so many such rounds: a spawner that stays keeps one of them warm.
std::size_t to_keep(std::size_t workers, int idle_rounds, const SpawnerOptions& options);

using CrashTimes = std::deque<std::chrono::steady_clock::time_point>; // oldest first; a failed start is one of them
// Forgets crashes before the window. Returns true if the rest are so many that starting another worker would not help.
bool keeps_crashing(CrashTimes& crashes, std::chrono::steady_clock::time_point now, const SpawnerOptions& options);

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
  int resting_{0}; // rounds in a row in which nothing is due and nothing is in work
  int waiting_{0}; // rounds in a row in which something is due, nothing is in work, and no worker is started
  std::uint64_t started_{0};
};

} // namespace holdfast::runner
