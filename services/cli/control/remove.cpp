#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "lib/maintenance/archive_maintenance.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "lib/store/runner.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

constexpr int kDirectoriesAtOnce = 500; // directories

struct RemoveOptions {
  std::vector<std::string> ids;
  bool expired{false}, unchanged{false}, yes{false};
};

struct Targets {
  std::vector<std::string> crawls, snapshots;
  std::vector<std::string> says; // of each snapshot: more than its id; empty: nothing more
  bool empty() const { return crawls.empty() && snapshots.empty(); }
};

// Adds the captures without a change that the rule in the settings removes.
void add_unchanged(Context& context, Targets& targets) {
  const auto rule = config::keep_rule(context.settings());
  if (rule.empty())
    throw base::Error(base::ErrorClass::configuration, "no setting says which captures without a change are removed",
                      "holdfast remove --unchanged --set 'archive.keep_unchanged=1 per 7d after 30d'");
  for (const auto row : store::call(context.connection(), "unchanged_spare", rule)) {
    targets.snapshots.push_back(row.text("snapshot_id"));
    targets.says.push_back(": " + row.text("sealed_at").substr(0, 16) + ", " +
                           base::format_size(static_cast<std::uint64_t>(row.integer("bytes"))) + ", " +
                           printable(row.text("url")) + " (" + row.text("reason") + ")");
  }
}

Targets resolve_ids(Context& context, const RemoveOptions& options) {
  Targets targets;
  for (const auto& given : read_ids(options.ids)) {
    const auto found = context.collection().find(given);
    if (found.kind == "process") throw base::Error(base::ErrorClass::usage, given + " is a process; nothing to remove");
    (found.kind == "crawl" ? targets.crawls : targets.snapshots).push_back(found.id);
  }
  if (options.expired) {
    const auto expired = store::call_list(context.connection(), "crawls_expired", 1000);
    targets.crawls.insert(targets.crawls.end(), expired.begin(), expired.end());
  }
  if (options.unchanged) add_unchanged(context, targets);
  if (options.ids.empty() && !options.expired && !options.unchanged)
    throw base::Error(base::ErrorClass::usage,
                      "nothing to remove: name crawls or snapshots, or use --expired or --unchanged",
                      "holdfast remove CRAWL... | SNAPSHOT... | --expired | --unchanged");
  return targets;
}

// Names what would be deleted, and refuses.
[[noreturn]] void ask_for_consent(Collection& collection, const Targets& targets) {
  const auto unnamed = targets.snapshots.size() - targets.says.size(); // named by the user
  for (std::size_t i = 0; i < targets.snapshots.size(); ++i)
    std::cerr << "snapshot " << targets.snapshots[i] << (i < unnamed ? "" : targets.says[i - unnamed]) << '\n';
  for (const auto& id : targets.crawls) {
    const auto rows = collection.rows(catalog::ListQuery{"crawls", 1}.by("crawl", id));
    const auto crawl = rows.one();
    std::cerr << "crawl " << id << ": " << crawl.text("total")
              << (crawl.integer("total") == 1 ? " snapshot, " : " snapshots, ") << base::format_size(crawl["bytes"])
              << ", " << printable(crawl.text("first_url")) << '\n';
  }
  throw base::Error(base::ErrorClass::usage, "this deletes them for ever, files and all", "pass --yes to confirm");
}

// The directories and pages of what has been removed.
void remove_files(Context& context) {
  auto& connection = context.connection();
  const auto now = std::chrono::milliseconds(0);
  store::call(connection, "purge_fill");
  if (store::call_list(connection, "purge_list", 1).empty() && store::crawl_pages_stale(connection, 1, now, {}).empty())
    return;
  const auto root = archive::Root::open(context.archive_root(), store::collection_id(connection), false);
  for (auto directories = store::call_list(connection, "purge_list", kDirectoriesAtOnce); !directories.empty();
       directories = store::call_list(connection, "purge_list", kDirectoriesAtOnce)) {
    maintenance::keep_captures(connection, root, directories);
    for (const auto& directory : directories)
      archive::remove_snapshot(root, directory);
    store::call(connection, "purge_done", directories);
    store::call(connection, "purge_fill");
  }
  while (maintenance::refresh_crawl_pages(connection, root, now) > 0) {
  }
}

// Rows first, then files: a directory without a row is found by holdfast verify, a row without files would be a lie.
int remove(Context& context, const RemoveOptions& options) {
  const auto targets = resolve_ids(context, options);
  if (!options.yes && !targets.empty()) ask_for_consent(context.collection(), targets);
  for (const auto& id : targets.crawls)
    operate(context, "remove", "crawl", id);
  for (const auto& id : targets.snapshots)
    operate(context, "remove", "snapshot", id);
  if (!context.remote()) remove_files(context); // else the runner does
  return base::kExitSuccess;
}

} // namespace

Action remove_verb(CLI::App& command) {
  const auto options = std::make_shared<RemoveOptions>();
  command.add_option("ids", options->ids,
                     "Crawls, or snapshots of crawls that have ended; - reads them from standard input");
  command.add_flag("--expired", options->expired, "Crawls whose --keep time has passed");
  command.add_flag("--unchanged", options->unchanged,
                   "Captures that found no change, by archive.keep_unchanged and archive.max_bytes");
  command.add_flag("--yes", options->yes, "Confirm; without this, the command only shows what it would do, or refuses");
  return [options](Context& context) { return remove(context, *options); };
}

} // namespace holdfast::cli
