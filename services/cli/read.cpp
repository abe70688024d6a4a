#include "lib/archive/root.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/store/lifecycle.hpp"
#include "lib/store/live.hpp"
#include "lib/store/view.hpp"
#include "services/cli/output.hpp"
#include "services/cli/times.hpp"
#include "services/cli/verbs.hpp"
#include "services/worker/crawl_page.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <map>

namespace holdfast::cli {

namespace {

// Columns that people see first; JSON has all of them.
const std::map<std::string, std::vector<std::string>, std::less<>>& table_columns() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> columns = {
      {"crawls", {"id", "status", "outcome", "total", "open", "failed", "cancelled", "label", "tags?", "first_url"}},
      {"snapshots", {"id", "status", "outcome", "http_status?", "depth", "tags?", "title", "url", "reason"}},
      {"results", {"plugin", "status", "wall_ms", "output", "error", "url"}},
      {"queue", {"id", "state", "retry_at", "attempts", "url"}},
      {"running", {"plugin", "running_for", "node", "pid", "url"}},
      {"nodes", {"label", "status", "held", "slots", "lease_left", "exit_reason", "started_at"}},
      {"events", {"at", "lifecycle", "object_id", "event", "to_state", "detail"}},
      {"failures", {"ended_at", "plugin", "error", "url"}},
      {"hosts", {"name", "min_delay", "max_parallel", "backoff_until", "reason"}},
      {"sessions", {"crawl_id", "status", "node", "snapshots", "running", "opened_at", "reason"}},
      {"webhooks", {"name", "url", "events", "waiting", "delivered", "given_up", "reason"}},
      {"deliveries", {"id", "webhook", "event", "status", "attempts", "last_status", "last_error", "created_at"}},
      {"binaries", {"name", "hostname", "status", "version", "path", "plugins", "error"}},
  };
  return columns;
}

// "crawls" -> "Crawl": the type of a JSON line.
std::string record_type(const std::string& list) {
  static const std::map<std::string, std::string, std::less<>> types = {
      {"crawls", "Crawl"},   {"snapshots", "Snapshot"},    {"results", "ArchiveResult"}, {"nodes", "Process"},
      {"queue", "Snapshot"}, {"running", "ArchiveResult"}, {"events", "Event"},          {"failures", "ArchiveResult"},
      {"hosts", "Host"},     {"sessions", "CrawlSession"}, {"webhooks", "Webhook"},      {"deliveries", "Delivery"},
      {"binaries", "Binary"}};
  return types.at(list);
}

void print_json(pg::Connection& connection, const store::ListQuery& query) {
  for (const auto& line : store::list_json(connection, query)) {
    auto json = nlohmann::ordered_json{{"type", record_type(query.view)}};
    json.update(nlohmann::ordered_json::parse(line));
    std::cout << json.dump() << '\n';
  }
}

std::string one_or_many(const std::string& what) {
  static const std::map<std::string, std::string, std::less<>> plural = {
      {"crawl", "crawls"},     {"snapshot", "snapshots"}, {"result", "results"},      {"node", "nodes"},
      {"event", "events"},     {"failure", "failures"},   {"host", "hosts"},          {"archiveresult", "results"},
      {"session", "sessions"}, {"webhook", "webhooks"},   {"delivery", "deliveries"}, {"binary", "binaries"}};
  const auto found = plural.find(what);
  return found == plural.end() ? what : found->second;
}

// The statuses that a list can be filtered by; empty if it has none.
std::vector<std::string> statuses(const std::string& list) {
  static const std::map<std::string, std::string, std::less<>> lifecycles = {
      {"crawls", "crawl"},  {"snapshots", "snapshot"}, {"queue", "snapshot"},      {"results", "archive_result"},
      {"nodes", "process"}, {"sessions", "session"},   {"deliveries", "delivery"}, {"binaries", "binary"}};
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

int status(Context& context) {
  auto& connection = context.connection();
  const auto now = store::status(connection);
  if (context.json()) {
    const auto or_null = [](const std::optional<std::string>& text) {
      return text ? nlohmann::ordered_json(*text) : nlohmann::ordered_json();
    };
    std::cout << nlohmann::ordered_json{{"type", "Status"},
                                        {"nodes", now.nodes},
                                        {"slots", now.slots},
                                        {"crawls_open", now.crawls_open},
                                        {"snapshots_open", now.snapshots_open},
                                        {"snapshots_held", now.snapshots_held},
                                        {"hooks_running", now.hooks_running},
                                        {"crawls_paused", now.crawls_paused},
                                        {"last_sealed_at", or_null(now.last_sealed_at)},
                                        {"crawls_to_do", now.crawls_to_do},
                                        {"paused", or_null(now.paused)},
                                        {"runners", now.runners},
                                        {"workers_lost", now.workers_lost}}
                     .dump()
              << std::endl;
    return base::kExitSuccess;
  }
  print_fields(
      {{"data", context.embedded() ? context.data_dir().string() + " (own PostgreSQL)" : "database.url"},
       {"archive", context.archive_root().string()},
       {"nodes", fmt::format("{} running, {} slots{}", now.nodes, now.slots,
                             now.workers_lost == 0 ? "" : fmt::format(", {} lost in the last hour", now.workers_lost))},
       {"runner", now.runners > 0 ? "leads" : "none: schedules and housekeeping wait for one"},
       {"crawls", fmt::format("{} open, {} paused", now.crawls_open, now.crawls_paused)},
       {"snapshots", fmt::format("{} open, {} in work", now.snapshots_open, now.snapshots_held)},
       {"hooks", fmt::format("{} running", now.hooks_running)},
       {"last sealed", now.last_sealed_at ? local_time(*now.last_sealed_at) : "none in the last 30 days"}});
  if (now.paused) std::cout << '\n' << printable(*now.paused) << ": holdfast resume --all\n";
  if (now.crawls_to_do > 0 && now.nodes == 0)
    std::cout << "\nThere is work, but no node runs: holdfast run, or holdfast worker.\n";
  store::ListQuery failures;
  failures.view = "failures";
  failures.limit = 5;
  const auto recent = store::list(connection, failures);
  if (!recent.empty()) {
    std::cout << "\nlatest failures\n";
    print_table(recent, table_columns().at("failures"));
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

int list(Context& context, const ListOptions& options) {
  store::ListQuery query;
  query.view = one_or_many(options.what);
  query.limit = options.limit;
  check_status(query.view, options.status);
  auto& connection = context.connection();
  if (!options.crawl.empty()) query.crawl_id = id_of(connection, "crawl", options.crawl);
  if (!options.snapshot.empty()) query.snapshot_id = id_of(connection, "snapshot", options.snapshot);
  if (!options.status.empty()) query.status = options.status;
  if (!options.url.empty()) query.url_contains = options.url;
  if (!options.tag.empty()) query.tag = options.tag;
  if (!options.plugin.empty()) query.plugin = options.plugin;
  if (!options.plugin.empty() && store::list(connection, query).empty()) check_plugin(context, options.plugin);
  if (options.csv) {
    print_csv(store::list(connection, query));
  } else if (context.json()) {
    print_json(connection, query);
  } else {
    const auto rows = store::list(connection, query);
    if (rows.empty())
      std::cout << "none\n";
    else
      print_table(rows, table_columns().at(query.view));
    if (static_cast<std::int64_t>(rows.size()) == query.limit)
      std::cout << "(the first " << query.limit << "; --limit shows more)\n";
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

int show(Context& context, const std::string& id) {
  auto& connection = context.connection();
  const auto found = store::find(connection, id);
  store::ListQuery object, parts;
  if (found.kind == "crawl") {
    object.view = "crawls";
    object.crawl_id = found.id;
    parts.view = "snapshots";
    parts.crawl_id = found.id;
  } else if (found.kind == "snapshot") {
    object.snapshot_id = found.id;
    object.crawl_id = found.crawl_id;
    parts.view = "results";
    parts.snapshot_id = found.id;
    parts.crawl_id = found.crawl_id;
  } else {
    object.view = "nodes";
    object.limit = 100000;
  }
  if (context.json()) {
    print_json(connection, object);
    if (found.kind != "process") print_json(connection, parts);
    std::cout << std::flush;
    return base::kExitSuccess;
  }
  const auto rows = store::list(connection, object);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].text("id") != found.id) continue;
    std::vector<std::pair<std::string, std::string>> fields;
    for (std::size_t column = 0; column < rows.columns().size(); ++column)
      fields.emplace_back(rows.columns()[column], shown_cell(rows, i, column));
    if (found.kind == "crawl")
      fields.emplace_back("page", archive::shown(context.archive_root(), worker::crawl_page_path(found.id)));
    else if (found.kind == "snapshot" && !rows[i].is_null("directory"))
      fields.emplace_back("page", archive::shown(context.archive_root(), rows[i].text("directory") + "/index.html"));
    print_fields(fields);
  }
  if (found.kind != "process") {
    const auto list_of_parts = store::list(connection, parts);
    if (!list_of_parts.empty()) {
      std::cout << '\n';
      print_table(list_of_parts, table_columns().at(parts.view));
    }
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace holdfast::cli
