#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "lib/store/catalog/view.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/live.hpp"
#include "services/cli/add/crawl_outcome.hpp"
#include "services/cli/add/plan.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/run/run_worker.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/terminal/progress.hpp"
#include "services/cli/terminal/times.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <set>

namespace holdfast::cli {

namespace {

enum class Followed { to_the_end, deserted, stopped };

// Follows a crawl that others work on until it is over, or no worker is left.
Followed follow(pg::Connection& connection, const std::function<bool(pg::Connection&)>& over) {
  do {
    if (over(connection)) return Followed::to_the_end;
    if (store::status(connection).one().integer("workers") == 0) return Followed::deserted;
  } while (!interrupted_within(std::chrono::milliseconds(200)));
  return Followed::stopped;
}

// Returns true if every seed is archived already; then it prints each.
bool all_archived(Context& context, pg::Connection& connection, const store::PlannedCrawl& planned) {
  if (!planned.crawl.options["only_new"].get<bool>()) return false;
  const auto archived = store::seeds_archived(connection, planned.crawl, planned.seeds);
  for (const auto& seed : archived) {
    const auto path = archive::shown(context.archive_root(), seed.directory + "/index.html");
    if (context.json())
      print_record(
          "Archived",
          {{"url", seed.url}, {"snapshot_id", seed.snapshot_id}, {"sealed_at", seed.sealed_at}, {"path", path}});
    else
      std::cout << printable(seed.url) << ": already archived on " << local_time(seed.sealed_at) << ", " << path
                << '\n';
  }
  std::cout << std::flush;
  std::set<std::string> urls;
  for (const auto& seed : planned.seeds)
    urls.insert(seed.url);
  return archived.size() == urls.size();
}

struct AddVerbOptions : AddOptions {
  bool wait{false}, background{false};
};

bool works(const AddVerbOptions& options, const Context& context) {
  // In an embedded collection, `add` does the work; a cluster has workers for that.
  return !options.background && (options.wait || context.embedded());
}

int add(Context& context, const AddVerbOptions& options) {
  // The progress display and the log would disturb each other on a terminal.
  if (isatty(STDERR_FILENO) != 0 && context.settings().value("log.level").origin == "default")
    spdlog::set_level(spdlog::level::warn);
  if (works(options, context)) context.guard();
  const auto planned = plan_crawl(context, options);
  const auto& crawl = planned.crawl;
  const auto& seeds = planned.seeds;
  auto& connection = context.connection(true);
  if (all_archived(context, connection, planned)) return base::kExitSuccess;
  store::crawl_add(connection, crawl, seeds);
  if (!works(options, context)) {
    if (context.json())
      print_record("Crawl",
                   {{"id", crawl.id}, {"status", "queued"}, {"seeds", seeds.size()}, {"left_out", planned.left_out}});
    else
      std::cout << "crawl " << crawl.id << ": queued, " << seeds.size() << (seeds.size() == 1 ? " URL" : " URLs")
                << "\n  more: holdfast show " << crawl.id << std::endl;
    return base::kExitSuccess;
  }

  bool finished = true;
  UnableWatch unable;
  const auto over = [&](pg::Connection& own) {
    if (store::crawl(own, crawl.id).status == "sealed") return true;
    return unable.look(own, crawl.id);
  };
  {
    const Progress progress(context.dsn(), crawl.id);
    // The worker that is there may be another add's, which leaves when its own crawl is done.
    const auto followed = follow(connection, over);
    if (followed == Followed::deserted)
      finished = !run_worker(context, over);
    else
      finished = followed == Followed::to_the_end;
  }
  print_crawl_outcome(context, crawl.id);
  unable.check();
  const auto ended = store::crawl(connection, crawl.id);
  if (ended.status != "sealed" && !finished) {
    std::cerr << "interrupted: the crawl stays queued; holdfast run goes on with it\n";
    return base::kExitInterrupted;
  }
  return ended.outcome == "succeeded" || ended.outcome == "partial" ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace

Action add_verb(CLI::App& command) {
  const auto given = std::make_shared<AddVerbOptions>();
  add_crawl_options(command, *given);
  command.add_flag("--wait", given->wait, "Wait until everything is archived; archive it here if no worker runs");
  command.add_flag("--bg", given->background, "Only queue it");
  return [given](Context& context) { return add(context, *given); };
}

} // namespace holdfast::cli
