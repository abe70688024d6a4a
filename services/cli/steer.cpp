#include "lib/base/error.hpp"
#include "lib/store/control.hpp"
#include "lib/store/host.hpp"
#include "lib/store/view.hpp"
#include "services/cli/input.hpp"
#include "services/cli/targets.hpp"
#include "services/cli/times.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace holdfast::cli {

namespace {

constexpr int kCrawlsAtOnce = 500; // crawls

struct SteerOptions {
  std::vector<std::string> ids;
  std::string host, worker, why, at;
  bool all{false}, yes{false};
};

int steer_everything(Context& context, const SteerOptions& options, const std::string& action,
                     const store::Command& command) {
  auto& connection = context.connection();
  if (action == "pause") {
    print_change(context, action, "everything", "", store::collection_pause(connection, command));
  } else if (action == "resume") {
    print_change(context, action, "everything", "", store::collection_resume(connection, command));
  } else {
    if (!options.yes)
      throw base::Error(base::ErrorClass::usage, "cancel --all ends every open crawl", "pass --yes to confirm");
    for (auto open = store::crawls_to_stop(connection, kCrawlsAtOnce); !open.empty();
         open = store::crawls_to_stop(connection, kCrawlsAtOnce))
      for (const auto& id : open)
        print_change(context, action, "crawl", id, store::crawl_cancel(connection, id, command, {}));
  }
  return base::kExitSuccess;
}

int steer_host(Context& context, const SteerOptions& options, const std::string& action,
               const store::Command& command) {
  auto& connection = context.connection();
  const auto host = host_name(options.host);
  if (action == "cancel" && !options.yes)
    throw base::Error(base::ErrorClass::usage, "cancel --host ends what is open of " + host + " in every crawl",
                      "pass --yes to confirm; holdfast exclude " + host + " CRAWL for one crawl");
  print_change(context, action, "host", host,
               action == "pause"    ? store::host_pause(connection, host, command)
               : action == "resume" ? store::host_resume(connection, host, command)
                                    : store::host_cancel(connection, host, command) > 0);
  return base::kExitSuccess;
}

bool steer_worker(pg::Connection& connection, const std::string& id, const std::string& action,
                  const store::Command& command) {
  return action == "pause"    ? store::worker_pause(connection, id, command)
         : action == "resume" ? store::worker_resume(connection, id, command)
                              : store::worker_cancel(connection, id, command);
}

bool steer_crawl(pg::Connection& connection, const std::string& id, const std::string& action,
                 const store::Command& command) {
  return action == "pause"    ? store::crawl_pause(connection, id, command)
         : action == "resume" ? store::crawl_resume(connection, id, command)
                              : store::crawl_cancel(connection, id, command, {});
}

int steer(Context& context, const SteerOptions& options, const std::string& action) {
  const int targets = !options.ids.empty() + !options.host.empty() + !options.worker.empty() + options.all;
  if (targets != 1)
    throw base::Error(base::ErrorClass::usage,
                      targets == 0 ? "nothing to " + action + ": name a crawl, snapshot, host or worker, or use --all"
                                   : "name ids, --host, --worker or --all, one of them",
                      "holdfast " + action + " ID... | --host HOST | --worker ID | --all");
  auto& connection = context.connection();
  store::Command command{user_name(), options.why};
  if (!options.at.empty()) {
    if (options.ids.empty()) throw base::Error(base::ErrorClass::usage, "--at is for crawls and snapshots");
    command.at = time_after(options.at);
  }
  if (options.all) return steer_everything(context, options, action, command);
  if (!options.host.empty()) return steer_host(context, options, action, command);
  if (!options.worker.empty()) {
    const auto id = worker_id(connection, options.worker);
    print_change(context, action, "worker", id, steer_worker(connection, id, action, command));
    return base::kExitSuccess;
  }
  std::vector<store::Found> found_all; // all of them before anything is done
  for (const auto& given : read_ids(options.ids))
    found_all.push_back(store::find(connection, given));
  for (const auto& found : found_all)
    if (!command.at.empty() && found.kind == "process")
      throw base::Error(base::ErrorClass::usage, found.id + " is a worker; --at is for crawls and snapshots");
  for (const auto& found : found_all)
    print_change(context, action, found.kind, found.id,
                 found.kind == "crawl"      ? steer_crawl(connection, found.id, action, command)
                 : found.kind == "snapshot" ? store::snapshot_command(connection, found.id, action, command)
                                            : steer_worker(connection, found.id, action, command));
  return base::kExitSuccess;
}

Action steering(CLI::App& command, const std::string& action) {
  const auto options = std::make_shared<SteerOptions>();
  command.add_option("ids", options->ids, kIdsHelp);
  command.add_option("--host", options->host, "A host");
  command.add_option("--worker", options->worker, "A worker");
  command.add_flag("--all", options->all, "Everything");
  command.add_option("--why", options->why, "A reason, shown to others");
  if (action == "resume")
    command.add_option("--at", options->at, "Not before this time: 2h, \"2026-11-22 14:00\" (crawls and snapshots)");
  command.add_flag("--yes", options->yes, "Confirm; without this, the command only shows what it would do, or refuses");
  return [options, action](Context& context) { return steer(context, *options, action); };
}

} // namespace

Action pause_verb(CLI::App& command) { return steering(command, "pause"); }
Action resume_verb(CLI::App& command) { return steering(command, "resume"); }
Action cancel_verb(CLI::App& command) { return steering(command, "cancel"); }

} // namespace holdfast::cli
