#include "services/runner/maintenance.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "lib/maintenance/archive_maintenance.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <map>
#include <optional>
#include <utility>

namespace holdfast::runner {

namespace {

constexpr std::chrono::milliseconds kLapseEvery{2000};
constexpr std::chrono::milliseconds kRejoin{500};
// Before that, the worker that sealed the crawl writes its page.
constexpr maintenance::ArchiveMaintenance::Ages kAges{std::chrono::seconds(0), std::chrono::seconds(5)};

// Brings the archive after the collection, where it is mounted: deletes the files of what was removed, and writes the
// pages of crawls that have changed. The destructor waits for what it is deleting.
class Purge {
public:
  // A runner without the archive (other machine, unmounted) leaves the list to the workers, which all have it: they
  // process entries that have waited for a minute.
  Purge(pg::Pool& pool, const std::filesystem::path& archive_root, const std::string& collection_id);
  ~Purge();
  Purge(const Purge&) = delete;
  Purge& operator=(const Purge&) = delete;

  // Does a little; how much.
  awaitable<int> step();

private:
  std::filesystem::path archive_root_;
  std::string collection_id_;
  boost::asio::thread_pool files_{1};
  maintenance::ArchiveMaintenance maintenance_;
  bool told_{false};
};

Purge::Purge(pg::Pool& pool, const std::filesystem::path& archive_root, const std::string& collection_id)
    : archive_root_(archive_root), collection_id_(collection_id),
      maintenance_(pool, files_, kAges, spdlog::level::err, 0) {}

Purge::~Purge() { files_.join(); }

awaitable<int> Purge::step() {
  if (archive_root_.empty() || !co_await maintenance_.due()) co_return 0;
  std::optional<archive::Root> root;
  std::string problem;
  co_await base::on_thread(files_, [&] {
    try {
      root = archive::Root::open(archive_root_, collection_id_, false);
    } catch (const base::Error& error) {
      problem = error.what();
    }
  });
  if (!root && !std::exchange(told_, true))
    spdlog::info("files of removed crawls are left to a worker that has the archive: {}", problem);
  if (!root) co_return 0;
  co_return co_await maintenance_.step(*root);
}

// Runs due maintenance tasks until the gate is lost, another runner requests it, or we are stopped. Returns at most one
// task after that.
awaitable<void> do_maintenance(Gate& gate, Purge& purge, std::chrono::milliseconds poll, base::StopSignal& stop) {
  std::map<std::string, std::string> failing; // logged once, not each time
  auto lapsed = std::chrono::steady_clock::time_point{};
  while (gate.leads() && stop.strength() == base::Strength::none) {
    bool done = false;
    try {
      const auto run = co_await gate.pool().run([&gate](pg::Connection& connection) {
        return store::runner_maintenance(connection, gate.id(), gate.epoch());
      });
      done = run.has_value();
      if (run) {
        if (!run->error.empty() && failing[run->task] != run->error)
          spdlog::error("task {} failed: {}", run->task, run->error);
        failing[run->task] = run->error;
        if (run->count > 0)
          spdlog::debug("task {}: {} in {}", run->task, run->count,
                        base::format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(run->duration)));
      } else if (std::chrono::steady_clock::now() - lapsed > kLapseEvery) {
        co_await gate.lapse_dead();
        done = co_await purge.step() > 0;
        if (!done) lapsed = std::chrono::steady_clock::now();
      }
    } catch (const base::Error& error) {
      if (error.error_class() == base::ErrorClass::lease_lost)
        gate.lose(error.what());
      else if (error.error_class() != base::ErrorClass::temporary &&
               error.error_class() != base::ErrorClass::unavailable)
        throw;
      spdlog::debug("no task: {}", error.what());
    }
    if (!done) co_await gate.sleep(poll);
  }
}

} // namespace

awaitable<Ending> run(asio::io_context& io, GateOptions options, base::StopSignal& stop) {
  bool joined = false;
  for (;;) {
    std::unique_ptr<Gate> gate;
    std::string problem;
    try {
      gate = std::make_unique<Gate>(io, options, stop);
      joined = true;
      if (options.joined) options.joined(gate->id());
    } catch (const base::Error& error) {
      // At the start the user needs the error; later the runner waits for its database.
      if (!joined ||
          (error.error_class() != base::ErrorClass::temporary && error.error_class() != base::ErrorClass::unavailable))
        throw;
      problem = error.what();
    }
    if (gate) {
      if (co_await gate->enter() == Gate::Entered::leads) {
        Purge purge(gate->pool(), options.archive_root, gate->collection_id());
        co_await do_maintenance(*gate, purge, options.poll, stop);
      }
      const bool stopped = stop.strength() != base::Strength::none;
      const std::string reason = stopped ? stop.reason() : gate->ending();
      co_await gate->leave(reason);
      if (stopped) co_return Ending::stopped;
      if (gate->stepped_down() && !options.standby && !options.spawns) co_return Ending::superseded;
      options.standby = true;
    } else {
      spdlog::debug("cannot join again yet: {}", problem);
    }
    gate.reset();
    asio::steady_timer timer(io, kRejoin);
    co_await timer.async_wait(asio::use_awaitable);
    if (stop.strength() != base::Strength::none) co_return Ending::stopped;
  }
}

} // namespace holdfast::runner
