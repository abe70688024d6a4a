#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/collection.hpp"
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

using Event = Collection::Json;

constexpr std::chrono::milliseconds kEventPoll{300}, kRemotePoll{1000};
constexpr std::int64_t kOverlap = 1000; // an event may become visible after a later one

void print(const Context& context, const Event& event) {
  if (context.json()) return print_record("Event", event);
  const auto text = [&](const char* name) { return base::text_at(event, name); };
  const auto id = text("object_id");
  std::cout << local_time(text("at")) << "  " << fitted(text("lifecycle") + "             ", 13) << " "
            << id.substr(id.size() - std::min<std::size_t>(id.size(), 8)) << "  " << text("event") << " → "
            << text("to_state");
  if (const auto detail = printable(with_local_times(text("detail"))); !detail.empty()) std::cout << ": " << detail;
  std::cout << '\n';
}

std::int64_t id_of(const Event& event) { return event.at("id").get<std::int64_t>(); }

// Ids that have been printed, or existed before and are skipped.
struct Seen {
  std::set<std::int64_t> ids;
  std::int64_t newest{0};
};

Seen print_recent(Context& context, const EventOptions& options, const std::string& crawl) {
  auto& collection = context.collection();
  Seen seen;
  for (const auto& newest : collection.last_events(1, ""))
    seen.newest = id_of(newest);
  for (const auto& event : collection.last_events(options.limit, crawl)) {
    print(context, event);
    seen.ids.insert(id_of(event));
    seen.newest = std::max(seen.newest, id_of(event));
  }
  return seen;
}

void print_new(Context& context, const std::string& crawl, Seen& seen) {
  std::int64_t told = -1;
  for (const auto& event : context.collection().events_after(seen.newest - kOverlap, kOverlap * 2, crawl)) {
    const auto id = id_of(event);
    if (id != told && !seen.ids.insert(id).second) continue;
    told = id; // what one call did to many comes in one answer, under one id
    print(context, event);
    seen.newest = std::max(seen.newest, id);
  }
  std::cout << std::flush;
  seen.ids.erase(seen.ids.begin(), seen.ids.lower_bound(seen.newest - 2 * kOverlap));
}

int follow(Context& context, const std::string& crawl, Seen seen) {
  bool lost = false;
  for (const auto& event : context.collection().events_after(seen.newest - kOverlap, kOverlap * 2, crawl))
    if (id_of(event) <= seen.newest) seen.ids.insert(id_of(event));
  while (!interrupted()) {
    try {
      print_new(context, crawl, seen);
      if (lost) std::cerr << "holdfast: the " << (context.remote() ? "server" : "database") << " is back\n";
      lost = false;
      if (!std::cout) return base::kExitSuccess; // our reader has closed the pipe
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::temporary && error.error_class() != base::ErrorClass::unavailable)
        throw;
      if (!lost) std::cerr << "holdfast: " << error.what() << "; trying again\n";
      lost = true;
    }
    interrupted_within(context.remote() ? kRemotePoll : kEventPoll);
  }
  return base::kExitInterrupted;
}

int events(Context& context, const EventOptions& options) {
  const std::string crawl = options.crawl.empty() ? "" : context.collection().find(options.crawl).crawl_id;
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
