#include "lib/base/error.hpp"
#include "lib/store/live.hpp"
#include "lib/store/view.hpp"
#include "services/cli/checks.hpp"
#include "services/cli/output.hpp"
#include "services/cli/signals.hpp"
#include "services/cli/times.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <thread>

namespace holdfast::cli {

namespace {

struct EventOptions {
  bool follow{false};
  int limit{20};
  std::string crawl;
};

constexpr std::chrono::milliseconds kEventPoll{300};
constexpr std::int64_t kOverlap = 1000; // an event may become visible after a later one

int events(Context& context, const EventOptions& options) {
  auto& connection = context.connection();
  const std::string crawl = options.crawl.empty() ? "" : store::find(connection, options.crawl).crawl_id;
  const auto print = [&](const store::Event& event) {
    if (context.json()) {
      auto line = nlohmann::ordered_json{{"type", "Event"}};
      line.update(nlohmann::ordered_json::parse(event.json));
      std::cout << line.dump() << '\n';
      return;
    }
    const auto& id = event.object_id;
    std::cout << local_time(event.at) << "  " << fitted(event.lifecycle + "             ", 13) << " "
              << id.substr(id.size() - 8) << "  " << event.event << " → " << event.to_state;
    if (const auto detail = printable(with_local_times(event.detail)); !detail.empty()) std::cout << ": " << detail;
    std::cout << '\n';
  };
  store::ListQuery query;
  query.view = "events";
  query.limit = options.limit;
  if (!crawl.empty()) query.crawl_id = crawl;
  const auto last = store::last_event(connection);
  const auto recent = store::list(connection, query); // newest first
  std::set<std::int64_t> seen;
  std::int64_t newest = last;
  if (!recent.empty()) {
    const auto from = recent[recent.size() - 1].integer("id");
    const auto rows = store::events_after(connection, from - 1, options.limit, crawl);
    const auto wanted = static_cast<std::size_t>(options.limit);
    for (std::size_t i = rows.size() > wanted ? rows.size() - wanted : 0; i < rows.size(); ++i) {
      print(rows[i]);
      seen.insert(rows[i].id);
      newest = std::max(newest, rows[i].id);
    }
  }
  std::cout << std::flush;
  if (!options.follow) return base::kExitSuccess;

  // What was there before and is not wanted: all up to here that is visible now.
  {
    const auto rows = store::events_after(connection, newest - kOverlap, kOverlap * 2, crawl);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].id <= newest) seen.insert(rows[i].id);
  }
  std::unique_ptr<pg::Connection> own; // after the first one was lost
  auto* session = &connection;
  bool lost = false;
  while (!told_to_end()) {
    try {
      if (session->broken()) {
        own = std::make_unique<pg::Connection>(context.dsn());
        session = own.get();
      }
      const auto rows = store::events_after(*session, newest - kOverlap, kOverlap * 2, crawl);
      if (lost) std::cerr << "holdfast: the database is back\n";
      lost = false;
      std::int64_t told = -1;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto id = rows[i].id;
        if (id != told && !seen.insert(id).second) continue;
        told = id; // what one call did to many comes in one answer, under one id
        print(rows[i]);
        newest = std::max(newest, id);
      }
      std::cout << std::flush;
      seen.erase(seen.begin(), seen.lower_bound(newest - 2 * kOverlap));
      if (!std::cout) return base::kExitSuccess; // our reader has closed the pipe
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::temporary && error.error_class() != base::ErrorClass::unavailable)
        throw;
      if (!lost) std::cerr << "holdfast: " << error.what() << "; trying again\n";
      lost = true;
    }
    std::this_thread::sleep_for(kEventPoll);
  }
  return base::kExitInterrupted;
}

} // namespace

Action events_verb(CLI::App& command) {
  const auto options = std::make_shared<EventOptions>();
  command.add_flag("-f,--follow", options->follow, "Go on with what happens next, until interrupted");
  command.add_option("-n,--limit", options->limit, "Begin with this many of the latest (20)")
      ->check(number(0, std::optional(100000)));
  command.add_option("--crawl", options->crawl, "Only of this crawl");
  return [options](Context& context) { return events(context, *options); };
}

} // namespace holdfast::cli
