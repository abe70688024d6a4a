// holdfast run --crawl, --snapshot: one worker in this process, which works on nothing else and ends.

#include "services/cli/run/run_some.hpp"

#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/call.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "lib/store/runner.hpp"
#include "services/cli/add/crawl_outcome.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/run/run_worker.hpp"
#include "services/cli/terminal/output.hpp"

#include <nlohmann/json.hpp>

#include <iostream>
#include <set>

namespace holdfast::cli {

namespace {

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

} // namespace

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

} // namespace holdfast::cli
