#include "lib/catalog/list.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/lifecycle.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

namespace holdfast::catalog {

namespace {

constexpr std::string_view kChange =
    R"({"type":"string","enum":["text","look","links","title","status","gone","back"]})";
constexpr std::string_view kKind = R"({"type":"string","enum":["worker","runner","serve","command"]})";

// clang-format off
constexpr Filter kFilters[] = {
    {{"crawl", schema::kId, "Only of this crawl"}, "uuid"},
    {{"snapshot", schema::kId, "Only of this snapshot"}, "uuid"},
    {{"status", schema::kWord, "Only with this status"}, "text"},
    {{"outcome", schema::kWord, "Only with this outcome"}, "text"},
    {{"host", schema::kWord, "Only of this host"}, "text"},
    {{"since", schema::kTime, "Only added, or failed, since this time: 2026-11-22T14:00:00Z"},
     "timestamptz",
     "% >= $",
     ", 2h, 7d, 2026-11-22, \"2026-11-22 14:00\""},
    {{"until", schema::kTime, "Only added, or failed, before this time"}, "timestamptz", "% < $"},
    {{"at", schema::kTime, "Of one URL, only what it was at this time: the last capture until then, or the first"},
     "timestamptz",
     "% = $",
     ", --url https://example.org/ --at 2026-03-01"},
    {{"url", schema::kWords, "Only if the URL or name contains this"}, "text", "holdfast.has_part(%, $)"},
    {{"exact_url", schema::kWords, "Only of this URL"}, "text", "% = $"},
    {{"tag", schema::kWord, "Only with this tag"}, "text", "$ = any (%)"},
    {{"kind", kKind, "Only of this kind: worker, runner, serve, command"}, "text"},
    {{"change", kChange, "Only changes of this kind: text, look, links, title, status, gone, back"}, "text"},
    {{"plugin", schema::kWord, "Only of this plugin"}, "text"},
    {{"persona", schema::kWord, "Only this persona"}, "text"},
    {{"schedule", schema::kId, "Only this schedule"}, "uuid"},
    {{"shelf", schema::kId, "Only this shelf"}, "uuid"},
    {{"min", schema::kWord, "Only changes of at least this share: 5%, 0.05"}, "text", "% >= holdfast.share_of($)"},
    {{"before", schema::kId, "Only with a smaller id"}, "uuid", "% < $"},
};

} // namespace

const std::vector<List>& lists() {
  static const std::vector<List> all = {
      {"crawls", "crawl", "Crawl", "Crawls, newest first", "crawl", "v_crawl", "id desc",
       {{"crawl", "id"}, {"status"}, {"outcome"}, {"url", "first_url"}, {"tag", "tags"}, {"since", "created_at"},
        {"until", "created_at"}, {"before", "id"}},
       {"id", "status", "outcome?", "total", "open?", "partial?", "failed?", "cancelled?", "bytes", "age", "label?",
        "tags?", "first_url"},
       "id label status total open succeeded partial failed seeds_left bytes max_depth max_urls max_bytes "
       "max_time tags plugins priority created_by created_at first_url notes scope refused excluded "
       "cancelled"},
      {"snapshots", "snapshot", "Snapshot", "Snapshots, newest first", "snapshot", "list_snapshots", "",
       {{"crawl"}, {"snapshot"}, {"status"}, {"outcome"}, {"url"}, {"exact_url", "url"}, {"tag"}, {"host"}, {"since"},
        {"until"}, {"at"}, {"before"}},
       {"id", "status", "outcome?", "http_status?", "depth?", "tags?", "title?", "url", "reason?"},
       "id crawl_id url host depth status fence attempts lapses tags created_at notes"},
      {"results", "result", "ArchiveResult", "Results of hooks, newest first", "archive_result", "list_results", "",
       {{"crawl"}, {"snapshot"}, {"status"}, {"url"}},
       {"plugin", "status", "wall_ms", "output", "error?", "url"},
       "snapshot_id crawl_id url fence plugin hook_name status output error output_bytes files started_at "
       "output_files counts process_id"},
      {"queue", "queue", "Snapshot", "Open snapshots, next first", "snapshot", "list_queue", "",
       {{"crawl"}, {"snapshot"}, {"status"}, {"url"}},
       {"id", "state", "retry_at", "attempts", "url"},
       "id crawl_id url status retry_at state attempts lapses"},
      {"running", "running", "ArchiveResult", "Running hooks, longest first", "", "v_running", "running_for desc",
       {{"crawl", "crawl_id"}, {"snapshot", "snapshot_id"}, {"url"}, {"plugin"}},
       {"plugin", "running_for", "worker", "pid", "url"},
       "snapshot_id crawl_id url plugin hook_name background running_for worker fence started_at process_id"},
      {"workers", "worker", "Process", "Workers, runners and other processes, newest first", "process", "v_worker",
       "started_at desc",
       {{"status"}, {"kind", "process_type"}},
       {"label", "status", "held", "slots", "lease_left", "exit_reason?", "started_at"},
       "id label process_type worker_type hostname pid status draining slots held version stats started_at "
       "capabilities login state"},
      {"events", "event", "Event", "Changes of state, newest first", "", "list_events", "",
       {{"crawl"}, {"snapshot"}},
       {"at", "lifecycle", "object_id", "event", "to_state", "detail"},
       "at lifecycle object_id event to_state"},
      {"failures", "failure", "ArchiveResult", "Failed hooks, newest first", "", "list_failures", "",
       {{"crawl"}, {"snapshot"}, {"url"}, {"plugin"}, {"host"}, {"since"}, {"until"}},
       {"ended_at", "plugin", "error", "url"},
       "ended_at url plugin error snapshot_id crawl_id hook_name fence host"},
      {"hosts", "host", "Host", "Hosts with their limits", "", "v_host", "name",
       {{"url", "name"}},
       {"name", "min_delay", "max_parallel", "held?", "robots_delay?", "last_at?", "backoff_until", "paused",
        "reason"},
       "name robots_delay backoff_level paused updated_by updated_at held"},
      {"sites", "site", "Site", "Hosts with archived pages, the last captured first", "", "list_sites", "",
       {{"url", "host"}},
       {"host", "pages", "captures", "failed?", "bytes", "last_at", "changed_at?", "trouble?"},
       "host pages captures failed bytes last_at"},
      {"periods", "period", "Period", "Sums of hours and days, the latest first", "", "v_period", "at desc, grain",
       {},
       {"grain", "at", "succeeded", "partial", "failed", "changed", "bytes", "seconds_a_page?", "queue"},
       "grain at succeeded partial failed changed bytes queue"},
      {"sessions", "session", "CrawlSession", "Sessions of crawls, newest first", "session", "v_session",
       "opened_at desc",
       {{"crawl", "crawl_id"}, {"status"}},
       {"crawl_id", "status", "worker", "snapshots", "running", "opened_at", "reason"},
       "id crawl_id first_url status worker hostname directory opened_at snapshots process_id"},
      {"logs", "log", "SessionLog", "Output of crawl hooks that failed, newest first", "", "v_session_log",
       "ended_at desc, hook_name",
       {{"crawl", "crawl_id"}, {"plugin"}},
       {"ended_at", "plugin", "hook_name", "worker", "error?", "log"},
       "crawl_id session_id plugin hook_name log worker"},
      {"stuck", "stuck", "Stuck", "What has been due or running for much too long; first, what concerns all crawls", "",
       "v_stuck", "crawl_id is not null, since",
       {},
       {"kind", "name?", "what", "stuck_for", "reason"},
       "kind what reason"},
      {"personas", "persona", "Persona", "Personas, without secrets", "", "v_persona", "name",
       {{"persona", "name"}},
       {"name", "version", "hosts?", "worker_label?", "options?", "signed_out_at?", "signed_out_reason?", "changed_at",
        "changed_by", "notes?"},
       "name version options hosts checks notes created_at changed_at changed_by"},
      {"webhooks", "webhook", "Webhook", "Webhooks", "", "v_webhook", "name",
       {},
       {"name", "url", "events", "waiting", "delivered", "given_up", "reason"},
       "name url events enabled waiting delivered given_up failures changed_by created_at"},
      {"deliveries", "delivery", "Delivery", "Deliveries of webhooks, newest first", "delivery", "v_delivery",
       "id desc",
       {{"status"}},
       {"id", "webhook", "event", "status", "attempts", "last_status", "last_error", "created_at"},
       "id webhook event status created_at attempts payload"},
      {"schedules", "schedule", "Schedule", "Schedules, with next and last run", "", "v_schedule",
       "created_at, id",
       {{"schedule", "id"}, {"url", "first_url"}},
       {"id", "label", "every", "time_zone", "state", "next_run", "runs", "skipped", "last_outcome", "first_url",
        "note"},
       "id label every time_zone state runs skipped urls crawl created_at first_url"},
      {"watches", "watch", "Watch", "Watches: schedules with a condition", "", "v_watch", "created_at, id",
       {{"schedule", "id"}, {"url"}},
       {"id", "label?", "every", "when", "select?", "state", "next_run", "matched_at?", "said?", "url", "note?"},
       "id label url every time_zone when select ignore notify state last created_at"},
      {"notices", "notice", "Notice", "Notices of watches, newest first", "", "v_notice", "id desc",
       {{"schedule", "schedule_id"}, {"url"}, {"since", "at"}, {"until", "at"}},
       {"at", "label?", "said", "snapshot_id", "url"},
       "id at schedule_id label url said snapshot_id crawl_id"},
      {"shelves", "shelf", "Shelf", "Shelves: sets of pages", "", "v_shelf", "lower(name), id",
       {{"shelf", "id"}, {"url", "name"}},
       {"name", "pages", "rule?", "description?", "changed_at", "changed_by", "id"},
       "id name description version created_at created_by changed_at changed_by"},
      {"shares", "share", "Share", "Links that share pages and shelves, newest first; the links are not stored", "",
       "v_share", "created_at desc, id",
       {{"url", "target"}},
       {"id", "kind", "target", "state", "expires_at", "created_at", "created_by", "revoked_by?"},
       "id kind state created_at created_by expires_at"},
      {"tokens", "token", "Token", "Tokens: names, roles and states; the tokens are not stored", "", "v_token",
       "created_at",
       {},
       {"name", "role", "state", "created_at", "created_by", "account?", "expires_at?", "revoked_at?", "revoked_by?"},
       "",
       false},
      {"accounts", "account", "Account", "Accounts: names that sign in with a password", "", "v_account", "name",
       {},
       {"name", "role", "sessions", "created_at", "created_by", "changed_at"},
       "",
       false},
      {"runners", "runner", "Runner", "Runners, the leader first", "", "v_runner",
       "state = 'leads' desc, started_at desc, id desc",
       {},
       {"label", "state", "epoch", "lease_left", "request?"},
       "label state"},
      {"maintenance", "task", "MaintenanceTask",
       "Maintenance tasks: last run, duration and number of changes", "", "v_maintenance",
       "name",
       {},
       {"name", "every", "keep", "enabled", "last_run_at", "last_duration", "last_count", "total_count", "error?"},
       "name about every enabled next_at total_count runs batch"},
      {"binaries", "binary", "Binary", "Binaries that plugins need, by machine", "binary", "v_binary", "hostname, name",
       {{"status"}, {"url", "name"}},
       {"name", "hostname", "status", "version", "path", "plugins", "error?"},
       "name hostname status provider plugins failures providers machine_id id"},
      {"robots", "robots", "Robots", "robots.txt of sites, as last fetched", "", "v_robots", "origin",
       {{"url", "origin"}},
       {"origin", "state", "status?", "size?", "error?", "fetched_at?", "expires_at?"},
       "origin state"},
      {"commands", "command", "Command", "Commands given to the collection, newest first", "", "v_control", "id desc",
       {{"crawl", "crawl_id"}},
       {"at", "action", "kind", "target", "by_whom", "detail?", "held?"},
       "id at action kind target by_whom held"},
      {"costs", "cost", "HookCost", "Cost of each plugin on each machine, the most CPU time first", "", "v_hook_cost",
       "cpu_ms_total desc, plugin, hostname",
       {{"plugin"}},
       {"plugin", "hostname", "runs", "failed", "wall_ms_median", "wall_ms_p95", "cpu_ms_total", "peak_memory_max"},
       "plugin hostname runs failed"},
      {"throughput", "minute", "Minute", "Snapshots sealed in each of the last fifteen minutes", "", "v_throughput",
       "minute desc",
       {},
       {"minute", "sealed", "succeeded", "partial", "failed", "bytes"},
       "minute sealed succeeded partial failed bytes"},
      {"resources", "resource", "CaptureQuality", "Resources of pages, and how many their records lack", "",
       "v_capture_quality", "snapshot_id desc",
       {{"crawl", "crawl_id"}, {"snapshot", "snapshot_id"}, {"url"}, {"host"}},
       {"snapshot_id", "resources", "resources_missing", "missing_reasons?", "outcome", "url"},
       "snapshot_id crawl_id url host outcome sealed_at"},
      {"replays", "replay", "ReplayQuality", "Snapshots that verify --replay opened, the worst first", "",
       "v_replay_quality", "score, snapshot_id desc",
       {{"crawl", "crawl_id"}, {"snapshot", "snapshot_id"}, {"url"}},
       {"snapshot_id", "score", "screenshot?", "text?", "resources?", "problem?", "url"},
       "snapshot_id crawl_id url"},
      {"changes", "change", "Change", "Changes of pages, newest first", "", "v_change", "sealed_at desc, id desc",
       {{"crawl", "crawl_id"}, {"snapshot", "id"}, {"url"}, {"host"}, {"tag", "tags"}, {"since", "sealed_at"},
        {"until", "sealed_at"}, {"change"}, {"min", "share"}},
       {"id", "sealed_at", "change", "share", "words_added?", "words_removed?", "look_share?", "title?", "url"},
       "id crawl_id url host tags change sealed_at"},
      {"partitions", "partition", "Partition", "Partitions of the tables that only grow", "", "v_partition",
       "table_name, name",
       {},
       {"table_name", "name", "holds", "rows_estimated", "bytes"},
       "table_name name"},
      {"states", "state", "State", "Number of snapshots in each state", "", "v_state", "status",
       {},
       {"status", "snapshots"},
       "status snapshots"},
  };
  return all;
}
// clang-format on

const List& list_of(std::string_view name) {
  std::string known;
  for (const auto& list : lists()) {
    if (name == list.name || name == list.one) return list;
    known += (known.empty() ? "" : ", ") + std::string(list.name);
  }
  if (name == "archiveresult") return list_of("results");
  throw base::Error(base::ErrorClass::usage, "nothing called \"" + std::string(name) + "\" can be listed",
                    "one of: " + known);
}

std::span<const Filter> filters() { return kFilters; }

std::string List::view() const { return source.starts_with("v_") ? std::string(source) : "v_" + std::string(one); }

bool List::knows(std::string_view filter) const noexcept {
  return std::any_of(filters.begin(), filters.end(), [&](const auto& known) { return known.name == filter; });
}

const Filter& filter_of(std::string_view name) {
  for (const auto& filter : kFilters)
    if (filter.field.name == name) return filter;
  throw base::Error(base::ErrorClass::bug, "no list can be filtered by " + std::string(name));
}

std::vector<std::string> lists_by(std::string_view filter) {
  std::vector<std::string> names;
  for (const auto& list : lists())
    if (list.knows(filter)) names.emplace_back(list.name);
  return names;
}

std::vector<std::string> values_of(const List& list, std::string_view filter) {
  std::vector<std::string> known;
  if (const auto& schema = schema_of(filter_of(filter).field); schema.contains("enum")) return schema["enum"];
  if (filter == "outcome") known = {"succeeded", "partial", "failed", "cancelled"};
  if (filter == "outcome" && list.name == "crawls") known.emplace_back("empty");
  if (filter == "outcome" && list.name == "snapshots") known.insert(known.end(), {"refused", "quarantined"});
  for (const auto& edge : store::kEdges)
    for (const auto state : {edge.from, edge.to})
      if (filter == "status" && edge.lifecycle == list.lifecycle && !(list.name == "queue" && state == "sealed") &&
          std::find(known.begin(), known.end(), state) == known.end())
        known.emplace_back(state);
  return known;
}

void check_filter(const List& list, std::string_view filter, const std::string& value) {
  if (filter == "min" && (value.find_first_not_of("0123456789.%") != std::string::npos || value.empty()))
    throw base::Error(base::ErrorClass::usage, "invalid share: \"" + base::one_line(value, 200) + "\"",
                      "for example 5% or 0.05");
  const auto known = values_of(list, filter);
  if (known.empty() || std::find(known.begin(), known.end(), value) != known.end()) return;
  throw base::Error(base::ErrorClass::usage,
                    "no " + std::string(list.name) + " have the " + std::string(filter) + " \"" +
                        base::one_line(value, 200) + "\"",
                    "one of: " + base::join(known, ", "));
}

ListQuery& ListQuery::by(std::string_view filter, const std::optional<std::string>& value) {
  if (!value) return *this;
  const auto url = filter == "exact_url" ? base::try_parse_url(*value) : std::nullopt;
  filters.insert_or_assign(std::string(filter), url ? url->text : *value);
  return *this;
}

std::optional<std::string> ListQuery::filter(std::string_view name) const {
  const auto found = filters.find(name);
  return found == filters.end() ? std::nullopt : std::optional(found->second);
}

namespace {

std::string replaced(std::string text, char mark, std::string_view by) { return text.replace(text.find(mark), 1, by); }

// Returns the call for a list, with its parameters; throws Error(usage) for an unknown list or filter.
std::pair<std::string, pg::Params> list_call(const ListQuery& query) {
  const auto& list = list_of(query.view);
  for (const auto& [name, value] : query.filters)
    if (!list.knows(name)) throw base::Error(base::ErrorClass::usage, query.view + " cannot be filtered by " + name);
  const bool view = list.source.starts_with("v_");
  const auto source = "holdfast." + std::string(list.source);
  pg::Params params;
  std::string arguments, conditions;
  int number = 0;
  for (const auto& [name, column] : list.filters) {
    const auto& filter = filter_of(name);
    auto value = query.filter(name);
    if (const auto url = value && name == "url" && query.filter("at") ? base::try_parse_url(*value) : std::nullopt)
      value = url->text; // as exact_url
    if (view && !value) continue;
    params.add(value);
    const auto given = "$" + std::to_string(++number) + "::" + std::string(filter.type);
    arguments += "p_" + std::string(name) + " => " + given + ", ";
    if (name == "before" && !query.most.empty()) {
      conditions += (conditions.empty() ? " where (" : " and (") + query.most + ", id) < (select " + query.most +
                    ", id from " + source + " where id = " + given + ")";
      continue;
    }
    conditions += (conditions.empty() ? " where " : " and ") +
                  replaced(replaced(std::string(filter.condition), '$', given), '%', column.empty() ? name : column);
  }
  params.add(query.limit);
  const auto limit = "$" + std::to_string(++number) + "::bigint";
  params.add(query.offset);
  const auto offset = "$" + std::to_string(++number) + "::bigint";
  if (!view)
    return {"(select * from " + source + "(" + arguments + "p_limit => " + limit + " + " + offset + ") offset " +
                offset + ") v",
            params};
  const auto order = (query.most.empty() ? "" : query.most + " desc, ") + std::string(list.order);
  return {"(select * from " + source + conditions + " order by " + order + " limit " + limit + " offset " + offset +
              ") v",
          params};
}

} // namespace

pg::Result list(pg::Connection& connection, const ListQuery& query) {
  const auto [call, params] = list_call(query);
  return connection.call("select * from " + call, params);
}

std::optional<std::string> snapshot_number(pg::Connection& connection, std::int64_t number, const ListQuery& query) {
  return connection
      .call("select holdfast.snapshot_number($1::bigint, $2, $3, $4, $5::timestamptz, $6)::text as id", number,
            query.filter("status"), query.filter("url"), query.filter("tag"), query.filter("since"),
            query.filter("exact_url"))
      .value()
      .optional<std::string>();
}

std::vector<std::string> list_json(pg::Connection& connection, const ListQuery& query) {
  const auto [call, params] = list_call(query);
  return connection.call("select to_jsonb(v)::text as json from " + call, params).column("json");
}

std::string written_interval(std::string_view interval) {
  // [-]N day[s] [-]HH:MM:SS[.ffffff], the days and the time each optional; months do not come from differences of
  // times.
  if (interval.empty()) return {};
  double seconds = 0;
  auto rest = interval;
  if (const auto day = rest.find(" day"); day != std::string_view::npos) {
    const auto days = base::parse_number<int>(rest.substr(0, day));
    if (!days) return std::string(interval);
    seconds = *days * 86400.0;
    const auto blank = rest.find(' ', day + 1);
    rest = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
  }
  if (!rest.empty()) {
    const bool negative = rest.front() == '-';
    if (negative) rest.remove_prefix(1);
    int hours = 0, minutes = 0, read = 0;
    double second = 0;
    if (rest.empty() || !base::is_digit(rest.front()) ||
        std::sscanf(std::string(rest).c_str(), "%d:%2d:%lf%n", &hours, &minutes, &second, &read) != 3 ||
        static_cast<std::size_t>(read) != rest.size())
      return std::string(interval);
    const double time = hours * 3600.0 + minutes * 60.0 + second;
    seconds += negative ? -time : time;
  }
  return base::format_duration(std::chrono::milliseconds(std::llround(seconds * 1000)));
}

} // namespace holdfast::catalog
