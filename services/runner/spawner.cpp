#include "services/runner/spawner.hpp"

#include "lib/base/error.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>

namespace holdfast::runner {

namespace {

pg::ConnectionOptions connection_options() {
  pg::ConnectionOptions options;
  options.application_name = "holdfast run";
  return options;
}

} // namespace

Spawner::Spawner(asio::io_context& io, const std::string& dsn, SpawnerOptions options, base::StopSignal& stop)
    : io_(io), options_(std::move(options)), stop_(stop), pool_(dsn, connection_options(), 1), timer_(io) {}

Spawner::~Spawner() = default;

void Spawner::reap() {
  for (auto it = workers_.begin(); it != workers_.end();) {
    const auto& exit = it->process->exit();
    if (!exit) {
      ++it;
      continue;
    }
    // A worker that was stopped, or found nothing to do, has not crashed.
    if (!exit->clean() && stop_.strength() == base::Strength::none) {
      spdlog::warn("the worker whose guard had pid {} ended: {}", it->process->pid(), exit->describe());
      crashes_.push_back(std::chrono::steady_clock::now());
    }
    it = workers_.erase(it);
  }
  if (keeps_crashing(crashes_, std::chrono::steady_clock::now(), options_))
    throw base::Error(base::ErrorClass::system,
                      "workers keep crashing: " + std::to_string(crashes_.size()) +
                          " within a minute, no more are started",
                      "holdfast worker runs one alone; its log says why");
}

store::WorkerCounts Spawner::running() const {
  store::WorkerCounts running;
  for (const auto& worker : workers_) {
    ++running[worker.kind].running;
    ++running[worker.kind].able;
  }
  return running;
}

void Spawner::spawn(const std::string& kind) {
  try {
    auto command = options_.command;
    command.insert(command.end(), {"worker", "--kind", kind});
    if (options_.runner && !options_.runner->empty()) command.insert(command.end(), {"--parent", *options_.runner});
    workers_.push_back({kind, std::make_unique<process::Subprocess>(io_.get_executor(), command)});
    ++started_;
    spdlog::info("started a {}worker; its guard has pid {}", kind == "all" ? "" : kind + " ",
                 workers_.back().process->pid());
  } catch (const base::Error& error) {
    spdlog::error("{}", error.what()); // the next round tries again; what keeps failing counts as a crash
    crashes_.push_back(std::chrono::steady_clock::now());
  }
}

void Spawner::show(const store::Backlog& backlog) {
  std::string line;
  const int crawl = running()["crawl"].running;
  const auto others = static_cast<int>(workers_.size()) - crawl;
  if (backlog.crawls_due > 0 || crawl > 0) line += " crawl=" + std::to_string(backlog.crawls_due) + "q";
  if (crawl > 0) line += "/" + std::to_string(crawl) + "w";
  if (backlog.snapshots_due > 0 || others > 0)
    line += " snapshot=" + std::to_string(backlog.snapshots_due) + "q/" + std::to_string(others) + "w";
  if (backlog.held > 0) line += " held=" + std::to_string(backlog.held);
  if (line != shown_ && !line.empty()) spdlog::info("tick:{}", line);
  shown_ = line;
}

awaitable<void> Spawner::tick() {
  reap();
  const std::string runner = options_.runner ? *options_.runner : "";
  const auto [backlog, neighbours] = co_await pool_.run([&runner](pg::Connection& connection) {
    return std::pair(store::backlog(connection), store::neighbours(connection, runner));
  });
  show(backlog);
  waiting_ = backlog.crawls_due + backlog.snapshots_due > 0 && backlog.held == 0 ? waiting_ + 1 : 0;
  const int timeout = std::max(1, options_.idle_timeout);
  auto all = running();
  for (const auto& [kind, count] : neighbours.workers) {
    all[kind].running += count.running;
    if (waiting_ <= timeout) all[kind].able += count.able; // later it is clear that they do not take what is due
  }
  auto kinds = kinds_to_spawn(backlog, all, options_);
  if (!neighbours.newer_run.empty()) kinds.clear();
  for (const auto& kind : kinds)
    spawn(kind);
  if (!kinds.empty()) waiting_ = 0;
  const std::string why = kinds.empty() ? why_none(backlog, neighbours, all, options_) : "";
  if (why != why_none_ && !why.empty()) spdlog::info("starts no worker: {}", why);
  why_none_ = why;
  if (waiting_ == 2 * timeout) co_await say_next("nothing is taken up");
  resting_ = backlog.crawls_due + backlog.snapshots_due + backlog.held == 0 ? resting_ + 1 : 0;
  // Once, and not between two pages.
  if (resting_ == 2 && backlog.unfinished) co_await say_next("nothing is due");
  if (is_busy(backlog, options_)) {
    idle_ = 0;
    co_return;
  }
  if (++idle_ == 1 && !backlog.unfinished)
    spdlog::info("idle, {}", options_.stay ? "waiting for work" : "nothing left to do");
  for (std::size_t i = to_keep(workers_.size(), idle_, options_); i < workers_.size(); ++i)
    workers_[i].process->signal(SIGTERM);
}

// Logs which page is due next, and why it waits; returns false if none is.
awaitable<bool> Spawner::say_next(std::string about) {
  const auto next = co_await pool_.run([](pg::Connection& connection) { return store::next_work(connection); });
  if (!next.empty()) spdlog::info("{}; the next page is {}", about, next);
  co_return !next.empty();
}

awaitable<void> Spawner::run() {
  std::exception_ptr failure;
  co_await asio::post(io_, asio::use_awaitable); // the runner joins first: it identifies our machine
  try {
    while (stop_.strength() == base::Strength::none) {
      try {
        co_await tick();
      } catch (const base::Error& error) {
        if (error.error_class() != base::ErrorClass::temporary && error.error_class() != base::ErrorClass::unavailable)
          throw;
        spdlog::warn("cannot look at the queue: {}", error.what());
      }
      if (is_done(idle_, options_)) break;
      timer_.expires_after(options_.poll);
      const auto stopped = stop_.strength() != base::Strength::none;
      if (!stopped) co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  co_await end_workers();
  if (failure) std::rethrow_exception(failure);
}

// TERM drains, INT stops, another INT kills: workers get the same signals as we, and keep their own deadlines.
awaitable<void> Spawner::end_workers() {
  using namespace asio::experimental::awaitable_operators;
  auto told = base::Strength::none;
  timer_.expires_after(options_.drain_timeout + 2 * options_.stop_timeout);
  const auto late = [this]() -> awaitable<void> { co_await timer_.async_wait(asio::use_awaitable); };
  while (!workers_.empty() && std::chrono::steady_clock::now() < timer_.expiry()) {
    const auto strength = std::max(stop_.strength(), base::Strength::drain);
    if (strength > told) {
      told = strength;
      for (auto& worker : workers_)
        worker.process->signal(strength == base::Strength::drain ? SIGTERM : SIGINT);
    }
    auto& next = *workers_.front().process; // all of them have to end
    if (strength == base::Strength::kill)
      co_await (next.wait() || late());
    else
      co_await (next.wait() || late() || stop_.reached(static_cast<base::Strength>(static_cast<int>(strength) + 1)));
    std::erase_if(workers_, [](const auto& worker) { return worker.process->exit().has_value(); });
  }
  workers_.clear(); // kills
}

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
