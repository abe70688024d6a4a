#include "services/cli/add/add.hpp"

#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/maintenance/archive_maintenance.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "services/cli/add/plan.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/run/run.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/terminal/progress.hpp"

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

namespace {

struct RetryOptions {
  std::vector<std::string> ids;
  std::shared_ptr<nlohmann::json> body = std::make_shared<nlohmann::json>(nlohmann::json::object());
};

int retry(Context& context, const RetryOptions& options) {
  auto& connection = context.connection();
  auto body = *options.body;
  for (const auto& found : find_all(connection, options.ids)) {
    if (found.kind == "process")
      throw base::Error(base::ErrorClass::usage, found.id + " is a worker, not a crawl or snapshot");
    body["ids"].push_back(found.id);
  }
  if (body.contains("plugins"))
    context.plugin_set()->select(body["plugins"]); // names that do not exist are refused here
  const auto by = user_name(), id = base::new_uuid();
  // A pipe may hold nothing.
  const auto answer = body.contains("ids") ? catalog::operation("retry").run({connection, id, id, body, by})
                                           : nlohmann::ordered_json::object();
  const auto urls = answer.value("seeds", 0);
  if (context.json()) {
    nlohmann::ordered_json json{{"seeds", urls}};
    if (urls > 0) json["id"] = id;
    print_record("Crawl", json);
  } else if (urls == 0) {
    std::cout << "nothing to try again\n";
  } else {
    std::cout << "crawl " << id << ": " << urls << (urls == 1 ? " URL" : " URLs")
              << " to be tried again; what was sealed stays as it is\n  more: holdfast show " << id << '\n';
    if (context.embedded()) std::cout << "  go on: holdfast run\n";
  }
  return base::kExitSuccess;
}

} // namespace

Action retry_verb(CLI::App& command) {
  const auto options = std::make_shared<RetryOptions>();
  command.add_option("ids", options->ids, "Crawls or snapshots; - reads them from standard input")->required();
  for (const auto& field : catalog::operation("retry").body)
    if (field.name != "ids") add_field(command, field, options->body);
  return [options](Context& context) { return retry(context, *options); };
}

namespace {

constexpr std::chrono::seconds kTimeout{20};
constexpr std::chrono::seconds kSayAfter{2};

} // namespace

namespace {

constexpr std::int64_t kFailuresShown = 10;

void print_failures(pg::Connection& connection, const std::string& crawl_id, std::int64_t failed) {
  auto query = catalog::ListQuery{"snapshots", kFailuresShown}.by("crawl", crawl_id).by("outcome", "failed");
  for (const auto& row : catalog::list(connection, query))
    std::cout << "  failed: " << printable(row.text("url")) << ": " << printable(row["reason"].value_or("")) << '\n';
  if (failed > kFailuresShown)
    std::cout << "  and " << failed - kFailuresShown << " more: holdfast list snapshots --outcome failed --crawl "
              << crawl_id << '\n';
}

} // namespace

void print_crawl_outcome(Context& context, const std::string& crawl_id) {
  auto& connection = context.connection();
  if (context.json()) {
    catalog::ListQuery query;
    query.by("crawl", crawl_id);
    query.limit = 100000;
    print_records(catalog::list_json(connection, query), "Snapshot");
    query.view = "crawls";
    for (const auto& line : catalog::list_json(connection, query)) {
      auto json = nlohmann::ordered_json::parse(line);
      json["page"] = archive::shown(context.archive_root(), maintenance::crawl_page_path(crawl_id));
      print_record("Crawl", json);
    }
    std::cout.flush();
    return;
  }
  const auto crawl = store::crawl(connection, crawl_id);
  std::cout << "crawl " << crawl_id << ": " << (crawl.status == "sealed" ? crawl.outcome : crawl.status) << ", "
            << crawl.total << (crawl.total == 1 ? " snapshot" : " snapshots") << ", "
            << base::format_size(static_cast<std::uint64_t>(crawl.bytes));
  if (crawl.partial > 0) std::cout << ", " << crawl.partial << " partial";
  if (crawl.failed > 0) std::cout << ", " << crawl.failed << " failed";
  if (crawl.cancelled > 0) std::cout << ", " << crawl.cancelled << " cancelled";
  if (!crawl.stop_reason.empty()) std::cout << " (stopped by " << crawl.stop_reason << ")";
  std::cout << '\n';
  if (crawl.failed > 0) print_failures(connection, crawl_id, crawl.failed);
  if (crawl.status == "sealed")
    std::cout << "  page: " << archive::shown(context.archive_root(), maintenance::crawl_page_path(crawl_id)) << '\n';
  std::cout << "  more: holdfast show " << crawl_id << std::endl;
}

bool UnableWatch::look(pg::Connection& connection, const std::string& crawl_id) {
  auto found = store::crawl_lacks(connection, crawl_id);
  const auto now = std::chrono::steady_clock::now();
  if (found.what.empty() || lacking_.empty()) since_ = now;
  auto in_work = catalog::ListQuery{"queue", 1}.by("crawl", crawl_id).by("status", "started");
  if (!catalog::list(connection, in_work).empty()) {
    idle_since_ = now;
    said_ = false;
  } else if (!said_ && now - idle_since_ >= kSayAfter) {
    said_ = true;
    spdlog::warn("waiting: {}", store::why(connection, crawl_id).reason);
  }
  crawl_ = crawl_id;
  lacking_ = std::move(found.what);
  unable_ = !lacking_.empty() && (!found.may_pass || now - since_ >= kTimeout);
  return unable_;
}

void UnableWatch::check() const {
  if (unable_)
    throw base::Error(base::ErrorClass::unavailable, "no worker here can archive it: " + lacking_,
                      "see holdfast doctor; the crawl stays queued: holdfast why " + crawl_);
}

} // namespace holdfast::cli
