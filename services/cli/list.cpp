#include "services/cli/list.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/store/lifecycle.hpp"
#include "lib/store/view.hpp"
#include "services/cli/checks.hpp"
#include "services/cli/input.hpp"
#include "services/cli/lists.hpp"
#include "services/cli/output.hpp"
#include "services/cli/times.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

namespace holdfast::cli {

namespace {

void check_columns(pg::Connection& connection, store::ListQuery query, const std::vector<std::string>& columns) {
  if (columns.empty()) return;
  query.limit = 0;
  const auto rows = store::list(connection, query);
  for (const auto& column : columns)
    if (std::find(rows.columns().begin(), rows.columns().end(), column) == rows.columns().end())
      throw base::Error(base::ErrorClass::usage, query.view + " have no column \"" + printable(column) + "\"",
                        "one of: " + base::join(rows.columns(), ", "));
}

std::string one_or_many(const std::string& what) {
  static const std::map<std::string, std::string, std::less<>> plural = {
      {"crawl", "crawls"},     {"snapshot", "snapshots"}, {"result", "results"},      {"worker", "workers"},
      {"event", "events"},     {"failure", "failures"},   {"host", "hosts"},          {"archiveresult", "results"},
      {"session", "sessions"}, {"webhook", "webhooks"},   {"delivery", "deliveries"}, {"binary", "binaries"}};
  const auto found = plural.find(what);
  return found == plural.end() ? what : found->second;
}

// The statuses that a list can be filtered by; empty if it has none.
std::vector<std::string> statuses(const std::string& list) {
  static const std::map<std::string, std::string, std::less<>> lifecycles = {
      {"crawls", "crawl"},    {"snapshots", "snapshot"}, {"queue", "snapshot"},      {"results", "archive_result"},
      {"workers", "process"}, {"sessions", "session"},   {"deliveries", "delivery"}, {"binaries", "binary"}};
  const auto lifecycle = lifecycles.find(list);
  std::vector<std::string> names;
  if (lifecycle == lifecycles.end()) return names;
  for (const auto& edge : store::kEdges)
    for (const auto state : {edge.from, edge.to})
      if (edge.lifecycle == lifecycle->second && std::find(names.begin(), names.end(), state) == names.end() &&
          !(list == "queue" && state == "sealed"))
        names.emplace_back(state);
  return names;
}

void check_status(const std::string& list, const std::string& status) {
  const auto known = statuses(list);
  if (status.empty() || known.empty() || std::find(known.begin(), known.end(), status) != known.end()) return;
  throw base::Error(base::ErrorClass::usage, "no " + list + " have the status \"" + printable(status) + "\"",
                    "one of: " + base::join(known, ", "));
}

void check_outcome(const std::string& list, const std::string& outcome) {
  std::vector<std::string> known = {"succeeded", "partial", "failed", "cancelled"};
  if (list == "crawls") known.emplace_back("empty");
  if (list == "snapshots") known.insert(known.end(), {"refused", "quarantined"});
  if (outcome.empty() || std::find(known.begin(), known.end(), outcome) != known.end()) return;
  throw base::Error(base::ErrorClass::usage, "no " + list + " have the outcome \"" + printable(outcome) + "\"",
                    "one of: " + base::join(known, ", "));
}

// The id that --crawl or --snapshot names.
std::string id_of(pg::Connection& connection, const std::string& kind, const std::string& given) {
  const auto found = store::find(connection, given);
  if (found.kind != kind)
    throw base::Error(base::ErrorClass::usage, "--" + kind + " " + printable(given) + " names a " + found.kind);
  return found.id;
}

// No rows, because no plugin has that name?
void check_plugin(Context& context, const std::string& plugin) {
  const auto catalog = context.catalog();
  if (catalog->plugins().empty() || catalog->find(plugin) != nullptr) return;
  std::vector<std::string> names;
  for (const auto& [name, one] : catalog->plugins())
    names.push_back(name);
  throw base::Error(base::ErrorClass::usage, "there is no plugin \"" + printable(plugin) + "\"",
                    "one of: " + base::join(names, ", "));
}

} // namespace

int list(Context& context, const ListOptions& options) {
  for (const std::string one : {"schedule", "persona"})
    if (options.what == one || options.what == one + "s")
      throw base::Error(base::ErrorClass::usage, "list does not show " + one + "s", "holdfast " + one + " list");
  store::ListQuery query;
  query.view = one_or_many(options.what);
  query.limit = options.limit;
  check_status(query.view, options.status);
  check_outcome(query.view, options.outcome);
  auto& connection = context.connection();
  if (!options.crawl.empty()) query.crawl_id = id_of(connection, "crawl", options.crawl);
  if (!options.snapshot.empty()) query.snapshot_id = id_of(connection, "snapshot", options.snapshot);
  if (!options.status.empty()) query.status = options.status;
  if (!options.outcome.empty()) query.outcome = options.outcome;
  if (!options.host.empty()) query.host = host_name(options.host);
  if (!options.since.empty()) query.since = time_before(options.since);
  if (!options.url.empty()) query.url_contains = options.url;
  if (!options.tag.empty()) query.tag = options.tag;
  if (!options.plugin.empty()) query.plugin = options.plugin;
  if (!options.kind.empty()) query.kind = options.kind;
  if (!options.plugin.empty() && store::list(connection, query).empty()) check_plugin(context, options.plugin);
  check_columns(connection, query, options.columns);
  if (options.csv) {
    print_csv(store::list(connection, query), options.columns);
  } else if (context.json()) {
    print_json(connection, query, options.columns);
  } else {
    const auto rows = store::list(connection, query);
    if (rows.empty())
      std::cout << "none\n";
    else
      print_table(rows, options.columns.empty() ? table_columns(query.view) : options.columns);
    if (static_cast<std::int64_t>(rows.size()) == query.limit)
      std::cout << "(the first " << query.limit << "; -n NUMBER shows more)\n";
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

Action list_verb(CLI::App& command) {
  const auto options = std::make_shared<ListOptions>();
  command.add_option("what", options->what, "What to list (default: snapshots)");
  command.add_option("--crawl", options->crawl, "Only of this crawl");
  command.add_option("--snapshot", options->snapshot, "Only of this snapshot");
  command.add_option("--status", options->status, "Only with this status");
  command.add_option("--outcome", options->outcome, "Only with this outcome (crawls, snapshots)");
  command.add_option("--host", options->host, "Only pages of this host (snapshots, failures)");
  command.add_option("--since", options->since,
                     "Only what was added (failures: what ended) since: 2h, 7d, 2026-11-22, \"2026-11-22 14:00\"");
  command.add_option("--url", options->url, "Only URLs that contain this");
  command.add_option("--tag", options->tag, "Only with this tag");
  command.add_option("--kind", options->kind, "Only processes of this kind (workers)")
      ->check(CLI::IsMember({"worker", "runner", "serve", "command"}));
  command.add_option("--plugin", options->plugin, "Only hooks of this plugin (failures, running)");
  command.add_flag("--csv", options->csv, "All columns as CSV, with a header line");
  command.add_option("--columns", options->columns, "Only these columns: id,url,bytes,...; --csv has all of them")
      ->delimiter(',');
  command.add_option("-n,--limit", options->limit, "At most this many (50)")->check(number<std::int64_t>(1));
  return [options](Context& context) { return list(context, *options); };
}

} // namespace holdfast::cli
