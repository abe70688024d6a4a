#include "lib/base/error.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/worker.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/run/run.hpp"
#include "services/serve/endpoint.hpp"
#include "services/worker/worker.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>

namespace holdfast::cli {

namespace {

// A worker that a runner started may end: when the database is back, a runner starts another. Without this it would
// wait for ever for a deleted database, if its runner has died.
constexpr int kLeasesAway = 10;

awaitable<void> incarnations(asio::io_context& io, Context& context, base::StopSignal& stop,
                             const std::function<bool(pg::Connection&)>& done, const WorkerOptions& given) {
  auto pause = std::chrono::milliseconds(500);
  auto was_there = std::chrono::steady_clock::now();
  std::string told; // the last problem in the log
  for (;;) {
    auto options = context.worker_options();
    const auto timeout = kLeasesAway * options.lease;
    if (!given.kind.empty()) options.kind = given.kind;
    options.parent_id = given.parent;
    options.only_crawls = given.only_crawls;
    options.only_snapshots = given.only_snapshots;
    const auto gone = worker::collect_leftovers(options, process::machine_id(options.data_dir / "machine-id"));
    bool again = false;
    std::string problem;
    try {
      if (!gone.empty()) {
        // Seen dead on this very machine: their work need not wait for their leases to run out.
        pg::Connection connection(options.dsn);
        for (const auto& process : gone)
          if (store::process_gone(connection, process, "found dead"))
            spdlog::info("took over from worker {}, which died on this machine", process.id);
      }
      worker::Worker worker(io, std::move(options), stop, done);
      again = co_await worker.run() == worker::Worker::Ending::lost_trust;
      was_there = std::chrono::steady_clock::now();
      pause = std::chrono::milliseconds(500);
    } catch (const base::Error& error) {
      // Once started, a worker waits for its database; before that, the user who starts it needs the error.
      if (!again && pause == std::chrono::milliseconds(500)) throw;
      // A full disk is waited out as well.
      if (error.error_class() != base::ErrorClass::unavailable && error.error_class() != base::ErrorClass::temporary &&
          error.error_class() != base::ErrorClass::cannot_create)
        throw;
      problem = error.what();
      again = true;
    }
    if (!again || stop.strength() != base::Strength::none) co_return;
    if (!problem.empty() && problem != told) spdlog::warn("cannot join again yet: {}", problem);
    told = problem;
    if (!given.parent.empty() && std::chrono::steady_clock::now() - was_there > timeout) {
      spdlog::warn("the database was unreachable for too long; a runner starts another worker when it is back");
      co_return;
    }
    asio::steady_timer timer(io, pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(5000)) + std::chrono::milliseconds(1);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

} // namespace

bool run_worker(Context& context, const std::function<bool(pg::Connection&)>& done, const WorkerOptions& worker) {
  process::become_subreaper();
  process::forbid_inspection();
  process::allow_open_files();
  asio::io_context io;
  base::StopSignal stop(io.get_executor());
  Signals signals(io, stop);
  const auto deliverer = context.deliverer("worker");
  run_to_end(io, incarnations(io, context, stop, done, worker));
  // No other process may be there to send what the last snapshot caused.
  if (deliverer && !signals.received()) deliverer->flush(std::chrono::seconds(5));
  return signals.received();
}

namespace {

int work(Context& context, const WorkerOptions& options) {
  context.guard();
  context.connection(true);
  context.disconnect();
  std::unique_ptr<serve::WorkerEndpoint> endpoint;
  if (const auto& listen = context.settings().text("http.listen"); !listen.empty()) {
    try {
      endpoint = std::make_unique<serve::WorkerEndpoint>(listen, context.dsn());
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::unavailable) throw;
      spdlog::warn("no /metrics of this worker: {}",
                   error.what()); // several workers of one machine may share their settings
    }
  }
  run_worker(context, {}, options);
  return base::kExitSuccess;
}

} // namespace

Action worker_verb(CLI::App& command) {
  const auto options = std::make_shared<WorkerOptions>();
  command.add_option("--kind", options->kind, "Only turn seeds into snapshots (crawl), or only work on snapshots")
      ->check(CLI::IsMember({"all", "crawl", "snapshot"}));
  command.add_option("--parent", options->parent)->group(""); // given by `holdfast run`
  return [options](Context& context) { return work(context, *options); };
}

} // namespace holdfast::cli
