#include "services/cli/look/status.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/list.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/collection.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::cli {

pg::Result print_list(Collection& collection, const catalog::ListQuery& query, const char* title, std::ostream& out) {
  auto rows = collection.rows(query);
  if (rows.empty()) return rows;
  out << '\n' << title << '\n';
  print_table(rows, catalog::list_of(query.view).columns, out);
  return rows;
}

void print_now(Context& context, std::ostream& out) {
  auto& collection = context.collection();
  const auto now = collection.status();
  const auto count = [&](const char* name) { return now.at(name).get<std::int64_t>(); };
  const auto lapsed = count("workers_lapsed");
  print_fields(
      {{"data", context.remote()     ? context.settings().value("server").text
                : context.embedded() ? context.data_dir().string() + " (embedded PostgreSQL)"
                                     : "database.url"},
       {"archive", context.remote() ? "" : context.archive_root().string()},
       {"archived", fmt::format("{} page{}, {}, in {} crawl{}", count("archived"), count("archived") == 1 ? "" : "s",
                                base::format_size(static_cast<std::uint64_t>(count("bytes"))), count("crawls"),
                                count("crawls") == 1 ? "" : "s")},
       {"workers", fmt::format("{} running, {} slots{}", count("workers"), count("slots"),
                               lapsed == 0 ? "" : fmt::format(", {} lapsed in the last hour", lapsed))},
       {"runner",
        count("runners") > 0 ? "leads" : "none: no schedules or maintenance until one starts (holdfast runner)"},
       {"crawls", fmt::format("{} open, {} paused", count("crawls_open"), count("crawls_paused"))},
       {"snapshots", fmt::format("{} open, {} in work", count("snapshots_open"), count("snapshots_held"))},
       {"hooks", fmt::format("{} running", count("hooks_running"))},
       {"last sealed", now.at("last_sealed_at").is_null() ? "none in the last 30 days"
                                                          : local_time(base::text_at(now, "last_sealed_at"))}},
      out);
  if (const auto paused = base::text_at(now, "paused"); !paused.empty())
    out << '\n' << printable(paused) << ": holdfast resume --all\n";
  if (count("crawls_to_do") > 0 && count("workers") == 0)
    out << "\nThere is work, but no worker runs: holdfast run, or holdfast worker.\n";
  const auto stuck = collection.rows({"stuck", 3});
  for (const auto one : stuck)
    out << "\nstuck: " << printable(one["name"].value_or("")) << ": "
        << printable(with_local_times(one["reason"].value_or(""))) << '\n';
}

namespace {

struct StatusOptions {
  bool follow{false};
  double delay{1};
};

int status(Context& context, const StatusOptions& options) {
  context.diagnose();
  if (options.follow) return follow(context, options.delay);
  auto& collection = context.collection();
  if (context.json()) {
    print_record("Status", collection.status());
  } else {
    print_now(context, std::cout);
    print_list(collection, {"failures", 5}, "latest failures", std::cout);
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action status_verb(CLI::App& command) {
  const auto options = std::make_shared<StatusOptions>();
  command.add_flag("-f,--follow", options->follow, "Show again and again what runs, until interrupted");
  command.add_option("-d,--delay", options->delay, "Seconds between updates (1)")
      ->needs("--follow")
      ->check(number(0.1, std::optional(3600.0)));
  return [options](Context& context) { return status(context, *options); };
}

} // namespace holdfast::cli
