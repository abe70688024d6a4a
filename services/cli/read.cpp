#include "lib/archive/root.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/store/lifecycle.hpp"
#include "lib/store/view.hpp"
#include "services/cli/input.hpp"
#include "services/cli/output.hpp"
#include "services/cli/times.hpp"
#include "services/cli/verbs.hpp"
#include "services/worker/crawl_page.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <map>

namespace holdfast::cli {

namespace {

// Columns that people see first; JSON has all of them.
const std::map<std::string, std::vector<std::string>, std::less<>>& table_columns() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> columns = {
      {"crawls",
       {"id", "status", "outcome?", "total", "open?", "partial?", "failed?", "cancelled?", "bytes", "age", "label?",
        "tags?", "first_url"}},
      {"snapshots", {"id", "status", "outcome?", "http_status?", "depth?", "tags?", "title?", "url", "reason?"}},
      {"results", {"plugin", "status", "wall_ms", "output", "error", "url"}},
      {"queue", {"id", "state", "retry_at", "attempts", "url"}},
      {"running", {"plugin", "running_for", "worker", "pid", "url"}},
      {"workers", {"label", "status", "held", "slots", "lease_left", "exit_reason", "started_at"}},
      {"events", {"at", "lifecycle", "object_id", "event", "to_state", "detail"}},
      {"failures", {"ended_at", "plugin", "error", "url"}},
      {"hosts", {"name", "min_delay", "max_parallel", "backoff_until", "reason"}},
      {"sessions", {"crawl_id", "status", "worker", "snapshots", "running", "opened_at", "reason"}},
      {"webhooks", {"name", "url", "events", "waiting", "delivered", "given_up", "reason"}},
      {"deliveries", {"id", "webhook", "event", "status", "attempts", "last_status", "last_error", "created_at"}},
      {"binaries", {"name", "hostname", "status", "version", "path", "plugins", "error"}},
  };
  return columns;
}

// "crawls" -> "Crawl": the type of a JSON line.
std::string record_type(const std::string& list) {
  static const std::map<std::string, std::string, std::less<>> types = {
      {"crawls", "Crawl"},   {"snapshots", "Snapshot"},    {"results", "ArchiveResult"}, {"workers", "Process"},
      {"queue", "Snapshot"}, {"running", "ArchiveResult"}, {"events", "Event"},          {"failures", "ArchiveResult"},
      {"hosts", "Host"},     {"sessions", "CrawlSession"}, {"webhooks", "Webhook"},      {"deliveries", "Delivery"},
      {"binaries", "Binary"}};
  return types.at(list);
}

// `columns`: only these; empty: all.
void print_json(pg::Connection& connection, const store::ListQuery& query,
                const std::vector<std::string>& columns = {}) {
  for (const auto& line : store::list_json(connection, query)) {
    auto json = nlohmann::ordered_json{{"type", record_type(query.view)}};
    const auto row = nlohmann::ordered_json::parse(line);
    for (const auto& column : columns)
      json[column] = row.at(column);
    if (columns.empty()) json.update(row);
    std::cout << json.dump() << '\n';
  }
}

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

namespace {

// "2026-11-22 02:48:46.123+00", as rows have it, in the form of all other JSON: "2026-11-22T02:48:46.123+00:00".
std::string iso_time(std::string text) {
  if (text.size() > 10 && text[10] == ' ') text[10] = 'T';
  return text.ends_with("+00") ? text + ":00" : text;
}

} // namespace

int status(Context& context) {
  auto& connection = context.connection();
  const auto result = store::status(connection);
  const auto row = result.one();
  const auto totals = store::totals(connection);
  const auto total = totals.one();
  if (context.json()) {
    nlohmann::ordered_json json{{"type", "Status"}};
    for (const auto& column : totals.columns())
      json[column] = total.integer(column);
    for (const auto& column : result.columns())
      if (column == "last_sealed_at" || column == "paused")
        json[column] = row.is_null(column)          ? nlohmann::ordered_json()
                       : column == "last_sealed_at" ? nlohmann::ordered_json(iso_time(row.text(column)))
                                                    : nlohmann::ordered_json(row.text(column));
      else
        json[column] = row.integer(column);
    std::cout << json.dump() << std::endl;
    return base::kExitSuccess;
  }
  print_fields({{"data", context.embedded() ? context.data_dir().string() + " (own PostgreSQL)" : "database.url"},
                {"archive", context.archive_root().string()},
                {"archived", total.text("archived") + (total.integer("archived") == 1 ? " page, " : " pages, ") +
                                 base::format_size(static_cast<std::uint64_t>(total.integer("bytes"))) + ", in " +
                                 total.text("crawls") + (total.integer("crawls") == 1 ? " crawl" : " crawls")},
                {"workers", row.text("workers") + " running, " + row.text("slots") + " slots" +
                                (row.integer("workers_lapsed") == 0
                                     ? std::string()
                                     : ", " + row.text("workers_lapsed") + " lapsed in the last hour")},
                {"runner", row.integer("runners") > 0 ? "leads" : "none: schedules and housekeeping wait for one"},
                {"crawls", row.text("crawls_open") + " open, " + row.text("crawls_paused") + " paused"},
                {"snapshots", row.text("snapshots_open") + " open, " + row.text("snapshots_held") + " in work"},
                {"hooks", row.text("hooks_running") + " running"},
                {"last sealed",
                 row.is_null("last_sealed_at") ? "none in the last 30 days" : local_time(row.text("last_sealed_at"))}});
  if (!row.is_null("paused")) std::cout << '\n' << printable(row.text("paused")) << ": holdfast resume --all\n";
  if (row.integer("crawls_to_do") > 0 && row.integer("workers") == 0)
    std::cout << "\nThere is work, but no worker runs: holdfast run, or holdfast worker.\n";
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
      print_table(rows, options.columns.empty() ? table_columns().at(query.view) : options.columns);
    if (static_cast<std::int64_t>(rows.size()) == query.limit)
      std::cout << "(the first " << query.limit << "; -n NUMBER shows more)\n";
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

int show(Context& context, const std::string& id) {
  auto& connection = context.connection();
  const auto found = store::find_newest(connection, id);
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
    object.view = "workers";
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
