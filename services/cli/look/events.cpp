#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

namespace holdfast::cli {

namespace {

struct EventOptions {
  bool follow{false};
  int limit{20};
  std::string crawl;
};

constexpr std::chrono::milliseconds kEventPoll{300};
constexpr std::int64_t kOverlap = 1000; // an event may become visible after a later one

void print(const Context& context, const pg::Row& event) {
  if (context.json()) return print_record("Event", nlohmann::ordered_json::parse(event.text("json")));
  const auto& id = event.text("object_id");
  std::cout << local_time(event.text("at")) << "  " << fitted(event.text("lifecycle") + "             ", 13) << " "
            << id.substr(id.size() - 8) << "  " << event.text("event") << " → " << event.text("to_state");
  if (const auto detail = printable(with_local_times(event["detail"].value_or(""))); !detail.empty())
    std::cout << ": " << detail;
  std::cout << '\n';
}

// Ids that have been printed, or existed before and are skipped.
struct Seen {
  std::set<std::int64_t> ids;
  std::int64_t newest{0};
};

Seen print_recent(Context& context, const EventOptions& options, const std::string& crawl) {
  auto& connection = context.connection();
  catalog::ListQuery query{"events", options.limit};
  if (!crawl.empty()) query.by("crawl", crawl);
  Seen seen;
  seen.newest = store::last_event(connection);
  const auto recent = catalog::list(connection, query); // newest first
  if (recent.empty()) return seen;
  const auto from = recent[recent.size() - 1].integer("id");
  const auto rows = store::events_after(connection, from - 1, options.limit, crawl);
  const auto wanted = static_cast<std::size_t>(options.limit);
  for (std::size_t i = rows.size() > wanted ? rows.size() - wanted : 0; i < rows.size(); ++i) {
    print(context, rows[i]);
    seen.ids.insert(rows[i].integer("id"));
    seen.newest = std::max(seen.newest, rows[i].integer("id"));
  }
  return seen;
}

void print_new(Context& context, pg::Connection& connection, const std::string& crawl, Seen& seen) {
  std::int64_t told = -1;
  for (const auto event : store::events_after(connection, seen.newest - kOverlap, kOverlap * 2, crawl)) {
    const auto id = event.integer("id");
    if (id != told && !seen.ids.insert(id).second) continue;
    told = id; // what one call did to many comes in one answer, under one id
    print(context, event);
    seen.newest = std::max(seen.newest, id);
  }
  std::cout << std::flush;
  seen.ids.erase(seen.ids.begin(), seen.ids.lower_bound(seen.newest - 2 * kOverlap));
}

int follow(Context& context, const std::string& crawl, Seen seen) {
  auto* session = &context.connection();
  std::unique_ptr<pg::Connection> own; // after the first one was lost
  bool lost = false;
  for (const auto event : store::events_after(*session, seen.newest - kOverlap, kOverlap * 2, crawl))
    if (event.integer("id") <= seen.newest) seen.ids.insert(event.integer("id"));
  while (!interrupted()) {
    try {
      if (session->broken()) {
        own = std::make_unique<pg::Connection>(context.dsn());
        session = own.get();
      }
      print_new(context, *session, crawl, seen);
      if (lost) std::cerr << "holdfast: the database is back\n";
      lost = false;
      if (!std::cout) return base::kExitSuccess; // our reader has closed the pipe
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::temporary && error.error_class() != base::ErrorClass::unavailable)
        throw;
      if (!lost) std::cerr << "holdfast: " << error.what() << "; trying again\n";
      lost = true;
    }
    interrupted_within(kEventPoll);
  }
  return base::kExitInterrupted;
}

int events(Context& context, const EventOptions& options) {
  const std::string crawl = options.crawl.empty() ? "" : store::find(context.connection(), options.crawl).crawl_id;
  auto seen = print_recent(context, options, crawl);
  std::cout << std::flush;
  return options.follow ? follow(context, crawl, std::move(seen)) : base::kExitSuccess;
}

} // namespace

Action events_verb(CLI::App& command) {
  const auto options = std::make_shared<EventOptions>();
  command.add_flag("-f,--follow", options->follow, "Keep printing new events until interrupted");
  command.add_option("-n,--limit", options->limit, "Start with this many of the latest events (20)")
      ->check(number(0, std::optional(100000)));
  command.add_option("--crawl", options->crawl, "Only of this crawl");
  return [options](Context& context) { return events(context, *options); };
}

} // namespace holdfast::cli
