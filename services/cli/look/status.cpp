#include "lib/archive/root.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/store/catalog/view.hpp"
#include "lib/store/live.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/terminal/times.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace holdfast::cli {

namespace {

// "2026-11-22 02:48:46.123+00", as rows have it, in the form of all other JSON: "2026-11-22T02:48:46.123+00:00".
std::string iso_time(std::string text) {
  if (text.size() > 10 && text[10] == ' ') text[10] = 'T';
  return text.ends_with("+00") ? text + ":00" : text;
}

int status(Context& context) {
  auto& connection = context.diagnosis();
  const auto now = store::status(connection);
  const auto total = store::totals(connection);
  if (context.json()) {
    const auto or_null = [](const std::optional<std::string>& text) {
      return text ? nlohmann::ordered_json(*text) : nlohmann::ordered_json();
    };
    std::cout << nlohmann::ordered_json{{"type", "Status"},
                                        {"crawls", total.crawls},
                                        {"snapshots", total.snapshots},
                                        {"archived", total.archived},
                                        {"failed", total.failed},
                                        {"bytes", total.bytes},
                                        {"workers", now.workers},
                                        {"slots", now.slots},
                                        {"crawls_open", now.crawls_open},
                                        {"snapshots_open", now.snapshots_open},
                                        {"snapshots_held", now.snapshots_held},
                                        {"hooks_running", now.hooks_running},
                                        {"crawls_paused", now.crawls_paused},
                                        {"last_sealed_at", now.last_sealed_at
                                                               ? nlohmann::ordered_json(iso_time(*now.last_sealed_at))
                                                               : nlohmann::ordered_json()},
                                        {"crawls_to_do", now.crawls_to_do},
                                        {"paused", or_null(now.paused)},
                                        {"runners", now.runners},
                                        {"workers_lapsed", now.workers_lapsed}}
                     .dump()
              << std::endl;
    return base::kExitSuccess;
  }
  print_fields(
      {{"data", context.embedded() ? context.data_dir().string() + " (own PostgreSQL)" : "database.url"},
       {"archive", context.archive_root().string()},
       {"archived", fmt::format("{} page{}, {}, in {} crawl{}", total.archived, total.archived == 1 ? "" : "s",
                                base::format_size(static_cast<std::uint64_t>(total.bytes)), total.crawls,
                                total.crawls == 1 ? "" : "s")},
       {"workers",
        fmt::format("{} running, {} slots{}", now.workers, now.slots,
                    now.workers_lapsed == 0 ? "" : fmt::format(", {} lapsed in the last hour", now.workers_lapsed))},
       {"runner", now.runners > 0 ? "leads" : "none: schedules and housekeeping wait for one"},
       {"crawls", fmt::format("{} open, {} paused", now.crawls_open, now.crawls_paused)},
       {"snapshots", fmt::format("{} open, {} in work", now.snapshots_open, now.snapshots_held)},
       {"hooks", fmt::format("{} running", now.hooks_running)},
       {"last sealed", now.last_sealed_at ? local_time(*now.last_sealed_at) : "none in the last 30 days"}});
  if (now.paused) std::cout << '\n' << printable(*now.paused) << ": holdfast resume --all\n";
  if (now.crawls_to_do > 0 && now.workers == 0)
    std::cout << "\nThere is work, but no worker runs: holdfast run, or holdfast worker.\n";
  const auto recent = store::list(connection, {"failures", 5});
  if (!recent.empty()) {
    std::cout << "\nlatest failures\n";
    print_table(recent, store::list_of("failures").columns);
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action status_verb(CLI::App&) { return &status; }

} // namespace holdfast::cli
