#include "lib/base/error.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

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

} // namespace holdfast::cli
