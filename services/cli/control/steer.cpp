#include "lib/base/error.hpp"
#include "lib/store/call.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::int64_t kEveryCrawl = 1'000'000;

struct SteerOptions {
  std::vector<std::string> ids;
  std::string host, worker, why, at;
  bool all{false}, yes{false};
};

int cancel_everything(Context& context, const nlohmann::json& body) {
  std::set<std::string> seen;
  for (bool any = true; std::exchange(any, false);) // others may add crawls meanwhile
    for (const char* const status : {"queued", "started", "paused"}) {
      const auto open = context.collection().rows(catalog::ListQuery{"crawls", kEveryCrawl}.by("status", status));
      for (const auto row : open) {
        if (!row.is_null("stopping_at") || !seen.insert(row.text("id")).second) continue;
        operate(context, "cancel", "crawl", row.text("id"), body);
        any = true;
      }
    }
  return base::kExitSuccess;
}

void want_consent(const SteerOptions& options, const std::string& host) {
  if (options.yes) return;
  if (options.all)
    throw base::Error(base::ErrorClass::usage, "cancel --all ends every open crawl", "pass --yes to confirm");
  if (!host.empty())
    throw base::Error(base::ErrorClass::usage, "cancel --host ends what is open of " + host + " in every crawl",
                      "pass --yes to confirm; holdfast exclude " + host + " CRAWL for one crawl");
}

int steer(Context& context, const SteerOptions& options, const std::string& action) {
  const int targets = !options.ids.empty() + !options.host.empty() + !options.worker.empty() + options.all;
  if (targets != 1)
    throw base::Error(base::ErrorClass::usage,
                      targets == 0 ? "nothing to " + action + ": name a crawl, snapshot, host or worker, or use --all"
                                   : "name ids, --host, --worker or --all, one of them",
                      "holdfast " + action + " ID... | --host HOST | --worker ID | --all");
  auto& collection = context.collection();
  nlohmann::json body{{"why", options.why}};
  if (!options.at.empty()) {
    if (options.ids.empty()) throw base::Error(base::ErrorClass::usage, "--at is for crawls and snapshots");
    body["at"] = time_after(options.at);
  }
  const auto host = options.host.empty() ? "" : host_name(options.host);
  if (action == "cancel") want_consent(options, host);
  if (options.all && action == "cancel") return cancel_everything(context, body);
  if (options.all) {
    operate(context, action, "", "", body);
  } else if (!host.empty()) {
    operate(context, action, "host", host, body);
  } else if (!options.worker.empty()) {
    operate(context, action, "process", id_named(collection, options.worker, "process"), body);
  } else {
    const auto found_all = find_all(collection, options.ids); // before anything is done
    for (const auto& found : found_all)
      if (!options.at.empty() && found.kind == "process")
        throw base::Error(base::ErrorClass::usage, found.id + " is a worker; --at is for crawls and snapshots");
    for (const auto& found : found_all)
      operate(context, action, found.kind, found.id, body);
  }
  return base::kExitSuccess;
}

} // namespace

Action steer_verb(CLI::App& command) {
  const auto action = command.get_name();
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

Action log_level_verb(CLI::App& command) {
  command.footer(
      "The level is kept in the database and applies to later workers, too. SIGUSR1 switches debugging of one process "
      "on and off.");
  return operation_verb(command, "setLogLevel");
}

namespace {

struct DrainOptions {
  std::vector<std::string> ids;
  std::string machine, why;
  bool wait{false};
};

struct Running {
  std::string hostname, type;
};

// Processes whose leases hold, by id.
std::map<std::string, Running> running(Collection& collection) {
  std::map<std::string, Running> all;
  const auto rows = collection.rows(catalog::ListQuery{"workers", 100'000}.by("status", "running"));
  for (const auto row : rows)
    if (!row["lease_left"].value_or("").starts_with('-'))
      all.emplace(row["id"], Running{row["hostname"], row["process_type"]});
  return all;
}

int drain(Context& context, const DrainOptions& options) {
  if (options.ids.empty() == options.machine.empty())
    throw base::Error(base::ErrorClass::usage, "nothing to drain: name workers or a machine",
                      "holdfast drain WORKER... | --machine HOSTNAME");
  auto& collection = context.collection();
  std::vector<std::string> workers;
  for (const auto& given : read_ids(options.ids))
    workers.push_back(id_named(collection, given, "process"));
  if (!options.machine.empty()) {
    for (const auto& [id, row] : running(collection))
      if (row.hostname == options.machine && (row.type == "worker" || row.type == "runner")) workers.push_back(id);
    if (workers.empty())
      throw base::Error(base::ErrorClass::refused, "nothing runs on " + printable(options.machine),
                        "holdfast list workers shows the names of machines");
  }
  for (const auto& worker : workers)
    operate(context, "drain", "process", worker, {{"why", options.why}});
  std::cout.flush();
  // A live worker sends heartbeats; a dead one lapses.
  const auto any_runs = [&] {
    const auto now = running(collection);
    return std::any_of(workers.begin(), workers.end(), [&](const auto& id) { return now.contains(id); });
  };
  while (options.wait && any_runs()) {
    if (!context.remote()) store::call(context.connection(), "lapse_process");
    if (interrupted_within(std::chrono::milliseconds(500))) return base::kExitInterrupted;
  }
  return base::kExitSuccess;
}

} // namespace

Action drain_verb(CLI::App& command) {
  const auto options = std::make_shared<DrainOptions>();
  command.add_option("workers", options->ids,
                     "Workers or runners: ids, or the first or last few digits; - reads them from standard input");
  command.add_option("--machine", options->machine, "All workers and runners on the machine with this host name");
  command.add_option("--why", options->why, "A reason, shown to others");
  command.add_flag("--wait", options->wait, "Until they have ended");
  return [options](Context& context) { return drain(context, *options); };
}

} // namespace holdfast::cli
