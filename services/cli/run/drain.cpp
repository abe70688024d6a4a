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

namespace holdfast::cli {

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
