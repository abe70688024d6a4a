#include "services/cli/add/add.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
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

namespace holdfast::cli {

namespace {

enum class Followed { to_the_end, deserted, stopped };

// Follows a crawl that others work on until it is over, or no worker is left.
Followed follow(Context& context, const std::function<bool()>& over) {
  do {
    if (over()) return Followed::to_the_end;
    if (context.collection().status().value("workers", 0) == 0) return Followed::deserted;
  } while (!interrupted_within(std::chrono::milliseconds(context.remote() ? 1000 : 200)));
  return Followed::stopped;
}

void print_archived(Context& context, const AddedCrawl& added) {
  for (const auto& seed : added.archived) {
    const auto path = context.collection().page_of_snapshot(seed.snapshot_id, seed.directory);
    if (context.json())
      print_record(
          "Archived",
          {{"url", seed.url}, {"snapshot_id", seed.snapshot_id}, {"sealed_at", seed.sealed_at}, {"path", path}});
    else
      std::cout << printable(seed.url) << ": already archived on " << local_time(seed.sealed_at) << ", " << path
                << '\n';
  }
  std::cout << std::flush;
}

pg::Result crawl_row(Context& context, const std::string& id) {
  return context.collection().rows(catalog::ListQuery{"crawls", 1}.by("crawl", id));
}

bool is_sealed(Context& context, const std::string& id) {
  return crawl_row(context, id).one().text("status") == "sealed";
}

struct AddVerbOptions : AddOptions {
  bool wait{false}, background{false};
};

// In an embedded collection, `add` does the work; a cluster has workers for that.
bool works(const AddVerbOptions& options, const Context& context) {
  return !options.background && !context.remote() && (options.wait || context.embedded());
}

// Returns false if it was interrupted.
bool follow_to_the_end(Context& context, const std::string& id, UnableWatch& unable) {
  if (context.remote()) {
    const auto followed = follow(context, [&] { return is_sealed(context, id); });
    if (followed == Followed::deserted)
      throw base::Error(base::ErrorClass::unavailable, "no worker runs there",
                        "the crawl stays queued: holdfast why " + id);
    return followed == Followed::to_the_end;
  }
  const auto over = [&](pg::Connection& own) {
    return store::crawl(own, id).status == "sealed" || unable.look(own, id);
  };
  const Progress progress(context.dsn(), id);
  // The worker that is there may be another add's, which leaves when its own crawl is done.
  const auto followed = follow(context, [&] { return over(context.connection()); });
  return followed == Followed::deserted ? !run_worker(context, over) : followed == Followed::to_the_end;
}

int add(Context& context, const AddVerbOptions& options) {
  // The progress display and the log would disturb each other on a terminal.
  if (isatty(STDERR_FILENO) != 0 && context.settings().value("log.level").origin == "default")
    spdlog::set_level(spdlog::level::warn);
  if (works(options, context)) context.guard();
  auto read = read_inputs(context, options);
  const auto left_out = read.left_out;
  const auto added = context.collection(true).add(*options.crawl, std::move(read));
  print_archived(context, added);
  if (added.id.empty()) return base::kExitSuccess;
  if (!works(options, context) && !(context.remote() && options.wait && !options.background)) {
    if (context.json())
      print_record("Crawl", {{"id", added.id}, {"status", "queued"}, {"seeds", added.seeds}, {"left_out", left_out}});
    else
      std::cout << "crawl " << added.id << ": queued, " << added.seeds << (added.seeds == 1 ? " URL" : " URLs")
                << "\n  more: holdfast show " << added.id << std::endl;
    return base::kExitSuccess;
  }
  UnableWatch unable;
  const bool finished = follow_to_the_end(context, added.id, unable);
  print_crawl_outcome(context, added.id);
  unable.check();
  const auto rows = crawl_row(context, added.id);
  const auto ended = rows.one();
  if (ended.text("status") != "sealed" && !finished) {
    std::cerr << "interrupted: the crawl stays queued; holdfast run goes on with it\n";
    return base::kExitInterrupted;
  }
  const auto outcome = ended["outcome"].value_or("");
  return outcome == "succeeded" || outcome == "partial" ? base::kExitSuccess : base::kExitFailedWork;
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
  auto& collection = context.collection();
  auto body = *options.body;
  for (const auto& found : find_all(collection, options.ids)) {
    if (found.kind == "process")
      throw base::Error(base::ErrorClass::usage, found.id + " is a worker, not a crawl or snapshot");
    body["ids"].push_back(found.id);
  }
  if (body.contains("plugins") && !context.remote())
    context.plugin_set()->select(body["plugins"]); // names that do not exist are refused here
  // A pipe may hold nothing.
  const auto answer = body.contains("ids") ? collection.run(catalog::operation("retry"), "", base::new_uuid(), body)
                                           : nlohmann::ordered_json::object();
  const auto id = base::text_at(answer, "id");
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

void print_failures(Context& context, const std::string& crawl_id, std::int64_t failed) {
  const auto rows = context.collection().rows(
      catalog::ListQuery{"snapshots", kFailuresShown}.by("crawl", crawl_id).by("outcome", "failed"));
  for (const auto row : rows)
    std::cout << "  failed: " << printable(row.text("url")) << ": " << printable(row["reason"].value_or("")) << '\n';
  if (failed > kFailuresShown)
    std::cout << "  and " << failed - kFailuresShown << " more: holdfast list snapshots --outcome failed --crawl "
              << crawl_id << '\n';
}

} // namespace

void print_crawl_outcome(Context& context, const std::string& crawl_id) {
  auto& collection = context.collection();
  if (context.json()) {
    catalog::ListQuery query;
    query.by("crawl", crawl_id);
    query.limit = 100000;
    print_records(collection.lines(query), "Snapshot");
    query.view = "crawls";
    for (const auto& line : collection.lines(query)) {
      auto json = nlohmann::ordered_json::parse(line);
      json["page"] = collection.page_of_crawl(crawl_id);
      print_record("Crawl", json);
    }
    std::cout.flush();
    return;
  }
  const auto rows = crawl_row(context, crawl_id);
  const auto crawl = rows.one();
  const bool sealed = crawl.text("status") == "sealed";
  const auto total = crawl.integer("total"), failed = crawl.integer("failed");
  std::cout << "crawl " << crawl_id << ": " << (sealed ? crawl.text("outcome") : crawl.text("status")) << ", " << total
            << (total == 1 ? " snapshot" : " snapshots") << ", " << base::format_size(crawl["bytes"]);
  for (const char* const part : {"partial", "failed", "cancelled"})
    if (crawl.integer(part) > 0) std::cout << ", " << crawl.integer(part) << ' ' << part;
  if (const auto why = crawl["stop_reason"].value_or(""); !why.empty()) std::cout << " (stopped by " << why << ")";
  std::cout << '\n';
  if (failed > 0) print_failures(context, crawl_id, failed);
  if (sealed) std::cout << "  page: " << collection.page_of_crawl(crawl_id) << '\n';
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
