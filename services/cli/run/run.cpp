// The verbs `runner` (maintenance tasks only) and `run` (all in one).
#include "services/cli/run/run.hpp"

#include "lib/base/error.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/catalog/list.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/call.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "lib/store/runner.hpp"
#include "services/cli/add/add.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/runner/maintenance.hpp"
#include "services/runner/spawner.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

namespace holdfast::cli {

std::vector<std::string> own_command(const Context& context) {
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string()};
  const auto& global = context.global();
  if (!global.config_file.empty()) command.insert(command.end(), {"--config", global.config_file});
  for (const auto& [key, value] : global.overrides)
    command.insert(command.end(), {"--set", key + "=" + value});
  return command;
}

namespace {

runner::GateOptions gate_options(Context& context, bool standby) {
  const auto& settings = context.settings();
  config::check_lease_rule(settings);
  runner::GateOptions options;
  options.dsn = context.dsn();
  options.version = HOLDFAST_VERSION;
  options.data_dir = context.data_dir();
  options.archive_root = context.archive_root();
  options.standby = standby;
  options.keep = config::keep_rule(settings);
  options.lease = settings.duration("runner.lease");
  options.heartbeat = settings.duration("runner.heartbeat");
  options.poll = settings.duration("runner.poll_interval");
  options.graceful_timeout = settings.duration("runner.graceful_timeout");
  return options;
}

runner::SpawnerOptions spawner_options(Context& context, bool stay) {
  const auto& settings = context.settings();
  runner::SpawnerOptions options;
  options.command = own_command(context);
  options.slots = static_cast<int>(settings.integer("worker.snapshots"));
  options.max_per_type = static_cast<int>(settings.integer("runner.max_workers_per_type"));
  if (settings.value("runner.max_workers_per_type").origin == "default")
    options.max_per_type =
        runner::limit_by_processors(options.max_per_type, static_cast<int>(std::thread::hardware_concurrency()));
  options.split = settings.boolean("runner.split_workers");
  options.max_crawl_workers = static_cast<int>(settings.integer("runner.max_crawl_workers"));
  options.max_total = static_cast<int>(settings.integer("runner.max_total_workers"));
  options.idle_timeout = static_cast<int>(settings.integer("runner.idle_timeout"));
  options.stay = stay;
  options.poll = settings.duration("runner.poll_interval");
  options.drain_timeout = settings.duration("drain_timeout");
  options.stop_timeout = settings.duration("stop_timeout");
  return options;
}

awaitable<void> lead(asio::io_context& io, runner::GateOptions options, base::StopSignal& stop,
                     runner::Ending& ending) {
  ending = co_await runner::run(io, std::move(options), stop);
}

// Workers and maintenance tasks side by side. The work goes on without the gate: another runner may keep the house.
awaitable<void> all_in_one(asio::io_context& io, runner::GateOptions gate, runner::Spawner& spawner,
                           base::StopSignal& stop) {
  base::StopSignal stop_gate(io.get_executor());
  bool gate_open = true;
  std::exception_ptr gate_failure;
  auto ending = runner::Ending::stopped;
  asio::steady_timer changed(io, asio::steady_timer::time_point::max());
  asio::co_spawn(io, lead(io, std::move(gate), stop_gate, ending), [&](std::exception_ptr error) {
    gate_open = false;
    gate_failure = error;
    changed.cancel();
  });
  // A stop of the work also stops the maintenance tasks, but the gate is left only when the workers have ended or
  // drain.
  std::exception_ptr failure;
  try {
    co_await spawner.run();
  } catch (...) {
    failure = std::current_exception();
  }
  stop_gate.raise(base::Strength::drain, stop.reason().empty() ? "done" : stop.reason());
  while (gate_open)
    co_await changed.async_wait(asio::as_tuple(asio::use_awaitable));
  if (failure) std::rethrow_exception(failure);
  if (gate_failure) std::rethrow_exception(gate_failure);
}

// Runs maintenance only. `standby`: waits until the leading runner has left.
int run_maintenance(Context& context, bool standby) {
  note_signals();
  process::forbid_inspection();
  context.connection(true);
  context.disconnect();
  asio::io_context io;
  base::StopSignal stop(io.get_executor());
  Signals signals(io, stop);
  const auto deliverer = context.deliverer("runner");
  auto ending = runner::Ending::stopped;
  run_to_end(io, lead(io, gate_options(context, standby), stop, ending));
  if (ending == runner::Ending::superseded)
    std::cerr << "a newer runner has taken over; holdfast runner --standby would wait for its turn instead\n";
  return base::kExitSuccess;
}

// Prints the leader, waiting runners, and the results of maintenance tasks. Returns 1 if no healthy runner leads.
int runner_status(Context& context) {
  auto& collection = context.collection();
  const catalog::ListQuery all{"runners", 100}, done{"maintenance", 100};
  const auto runners = collection.rows(all);
  const bool healthy = !runners.empty() && runners[0].text("state") == "leads" && runners[0].boolean("healthy");
  if (context.json()) {
    print_json(collection, all);
    print_json(collection, done);
  } else {
    if (runners.empty())
      std::cout << "no runner: adding and archiving go on, schedules and cleaning up wait\n";
    else
      print_table(runners, catalog::list_of("runners").columns);
    std::cout << '\n';
    print_table(collection.rows(done), catalog::list_of("maintenance").columns);
  }
  std::cout.flush();
  return healthy ? base::kExitSuccess : base::kExitFailedWork;
}

// All in one: maintenance tasks and local workers, until nothing is left to do, or for ever.
int run(Context& context, bool daemon) {
  context.guard();
  process::forbid_inspection();
  context.connection(true);
  context.disconnect();
  asio::io_context io;
  base::StopSignal stop(io.get_executor());
  Signals signals(io, stop);
  const auto runner = std::make_shared<std::string>();
  auto gate = gate_options(context, false);
  gate.spawns = true;
  gate.joined = [runner](const std::string& id) { *runner = id; };
  auto workers = spawner_options(context, daemon);
  workers.runner = runner;
  runner::Spawner spawner(io, context.dsn(), std::move(workers), stop);
  const auto deliverer = context.deliverer("runner");
  run_to_end(io, all_in_one(io, std::move(gate), spawner, stop));
  if (deliverer && !signals.received()) deliverer->flush(std::chrono::seconds(5));
  return base::kExitSuccess;
}

} // namespace

Action runner_verb(CLI::App& command) {
  const auto standby = std::make_shared<bool>(false), status = std::make_shared<bool>(false);
  command.add_flag("--standby", *standby, "Stand by until no other runner leads; step down for a newer one");
  command.add_flag("--status", *status, "Only show the leader and the maintenance tasks; exit code 1 without a leader");
  return [standby, status](Context& context) {
    return *status ? runner_status(context) : run_maintenance(context, *standby);
  };
}

// holdfast run --crawl, --snapshot: one worker in this process, which works on nothing else and ends.

namespace {

// Names what to work on, as given; one of them is empty.
struct SomeWork {
  std::vector<std::string> crawls, snapshots;
};

std::vector<store::Found> found_of(pg::Connection& connection, const std::vector<std::string>& given,
                                   const std::string& kind) {
  std::vector<store::Found> all;
  for (const auto& one : read_ids(given)) {
    const auto found = store::find(connection, one);
    if (found.kind != kind) throw base::Error(base::ErrorClass::usage, one + " is a " + found.kind + ", not a " + kind);
    all.push_back(found);
  }
  return all;
}

bool is_archived(const std::string& outcome) { return outcome == "succeeded" || outcome == "partial"; }

// Says what became of a snapshot; returns whether it is archived.
bool print_snapshot_outcome(Context& context, const std::string& id) {
  const auto rows = catalog::list(context.connection(), catalog::ListQuery{"snapshots", 1}.by("snapshot", id));
  if (rows.empty()) throw base::Error(base::ErrorClass::refused, "snapshot " + id + " was removed meanwhile");
  const auto snapshot = rows.one();
  const std::string url = snapshot["url"], status = snapshot["status"], outcome = snapshot["outcome"].value_or("");
  if (context.json())
    print_record("Snapshot", {{"id", id}, {"url", url}, {"status", status}, {"outcome", outcome}});
  else
    std::cout << "snapshot " << id << ": " << (outcome.empty() ? status : outcome) << ", " << printable(url)
              << "\n  more: holdfast show " << id << std::endl;
  return is_archived(outcome);
}

// Works on these until only paused pages of them are left, or a signal arrives. Waits for those that other workers
// hold. Returns the exit code: 1 if one of them is not archived.
int run_some(Context& context, const SomeWork& work) {
  context.guard();
  auto& connection = context.connection(true);
  std::vector<std::string> crawls, snapshots;
  std::set<std::string> touched;
  for (const auto& found : found_of(connection, work.crawls, "crawl")) {
    crawls.push_back(found.id);
    touched.insert(found.id);
  }
  for (const auto& found : found_of(connection, work.snapshots, "snapshot")) {
    snapshots.push_back(found.id);
    touched.insert(found.crawl_id);
  }
  WorkerOptions options;
  options.only_crawls.assign(touched.begin(), touched.end());
  options.only_snapshots = snapshots;
  bool interrupted = false;
  UnableWatch unable;
  const auto over = [&](pg::Connection& own) {
    if (!store::call_for<bool>(own, "work_left", crawls, snapshots)) return true;
    bool stuck = false;
    for (const auto& crawl : touched) {
      if (store::crawl(own, crawl).status == "sealed") continue;
      stuck = unable.look(own, crawl);
      if (!stuck) break; // this one can go on
    }
    return stuck;
  };
  if (store::call_for<bool>(connection, "work_left", crawls, snapshots))
    interrupted = run_worker(context, over, options);
  bool all = true;
  for (const auto& id : crawls) {
    print_crawl_outcome(context, id);
    all = is_archived(store::crawl(connection, id).outcome) && all;
  }
  for (const auto& id : snapshots)
    all = print_snapshot_outcome(context, id) && all;
  unable.check();
  if (interrupted && store::call_for<bool>(connection, "work_left", crawls, snapshots)) return base::kExitInterrupted;
  return all ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace

Action run_verb(CLI::App& command) {
  const auto daemon = std::make_shared<bool>(false);
  const auto some = std::make_shared<SomeWork>();
  auto* const stay = command.add_flag("--daemon", *daemon, "Keep running and wait for more");
  auto* const crawl = command.add_option("--crawl", some->crawls, "Work only on this crawl, then exit; - reads ids")
                          ->allow_extra_args(false)
                          ->excludes(stay);
  command.add_option("--snapshot", some->snapshots, "Work only on this snapshot, then exit; - reads ids")
      ->allow_extra_args(false)
      ->excludes(stay)
      ->excludes(crawl);
  return [daemon, some](Context& context) {
    return some->crawls.empty() && some->snapshots.empty() ? run(context, *daemon) : run_some(context, *some);
  };
}

} // namespace holdfast::cli
