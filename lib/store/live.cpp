#include "lib/store/live.hpp"

#include "lib/base/error.hpp"

namespace holdfast::store {

namespace {

Crawl crawl_of(const pg::Row& row) {
  return {.id = row["id"],
          .label = row["label"],
          .status = row["status"],
          .outcome = row["outcome"].value_or(""),
          .stop_reason = row["stop_reason"].value_or(""),
          .first_url = row["first_url"],
          .notes = row["notes"],
          .created_by = row["created_by"],
          .created_at = row["created_at"],
          .sealed_at = row["sealed_at"].value_or(""),
          .tags = row["tags"],
          .total = row["total"],
          .open = row["open"],
          .succeeded = row["succeeded"],
          .partial = row["partial"],
          .failed = row["failed"],
          .cancelled = row["cancelled"],
          .seeds_left = row["seeds_left"],
          .bytes = row["bytes"],
          .max_urls = row["max_urls"],
          .max_depth = row["max_depth"]};
}

RunningHook running_hook_of(const pg::Row& row) {
  return {row["snapshot_id"], row["url"], row["plugin"], row["hook_name"], row["worker"], row["seconds"]};
}

std::vector<RunningHook> hooks(pg::Connection& connection, const std::string& rest, const pg::Params& params) {
  return connection.call("select *, extract(epoch from running_for) as seconds from holdfast.v_running " + rest, params)
      .map(&running_hook_of);
}

Event event_of(const pg::Row& row) {
  return {row["id"],    row["at"],       row["lifecycle"],           row["object_id"],
          row["event"], row["to_state"], row["detail"].value_or(""), ""};
}

base::Sample sample_of(const pg::Row& row) {
  base::Sample sample{row["name"], row["name"], row["type"], row["help"], {}, row["value"]};
  const auto labels = nlohmann::json::parse(row.text("labels")); // named: a loop would not keep it
  for (const auto& [name, value] : labels.items())
    sample.labels[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return sample;
}

} // namespace

Status status(pg::Connection& connection) {
  const auto result = connection.call("select * from holdfast.v_status");
  const auto row = result.one();
  return {.workers = row["workers"],
          .slots = row["slots"],
          .crawls_open = row["crawls_open"],
          .snapshots_open = row["snapshots_open"],
          .snapshots_held = row["snapshots_held"],
          .hooks_running = row["hooks_running"],
          .crawls_paused = row["crawls_paused"],
          .crawls_to_do = row["crawls_to_do"],
          .runners = row["runners"],
          .workers_lapsed = row["workers_lapsed"],
          .last_sealed_at = row["last_sealed_at"].optional<std::string>(),
          .paused = row["paused"].optional<std::string>()};
}

Totals totals(pg::Connection& connection) {
  const auto result = connection.call("select * from holdfast.v_total");
  const auto row = result.one();
  return {row["crawls"], row["snapshots"], row["archived"], row["failed"], row["bytes"]};
}

nlohmann::ordered_json status_json(pg::Connection& connection) {
  const std::string text = connection
                               .call("select row_to_json(x)::text from (select * from holdfast.v_total cross "
                                     "join holdfast.v_status) x")
                               .value();
  return nlohmann::ordered_json::parse(text);
}

std::optional<Crawl> find_crawl(pg::Connection& connection, const std::string& id) {
  const auto rows = connection.call("select * from holdfast.v_crawl where id = $1::uuid", id);
  return rows.empty() ? std::nullopt : std::optional(crawl_of(rows[0]));
}

Crawl crawl(pg::Connection& connection, const std::string& id) {
  auto found = find_crawl(connection, id);
  if (!found) throw base::Error(base::ErrorClass::refused, "there is no crawl " + id, "holdfast list crawls");
  return std::move(*found);
}

std::vector<Crawl> latest_crawls(pg::Connection& connection, int limit) {
  // Open ones first: those are few, and an index finds them.
  return connection
      .call("(select * from holdfast.v_crawl where status <> 'sealed' order by created_at desc limit $1::integer) "
            "union all "
            "(select * from holdfast.v_crawl where status = 'sealed' order by created_at desc limit $1::integer)",
            limit)
      .map(&crawl_of);
}

std::optional<Snapshot> find_snapshot(pg::Connection& connection, const std::string& id) {
  const auto rows = connection.call("select * from holdfast.v_snapshot where id = $1::uuid", id);
  if (rows.empty()) return std::nullopt;
  const auto row = rows[0];
  return Snapshot{.id = row["id"],
                  .crawl_id = row["crawl_id"],
                  .url = row["url"],
                  .title = row["title"].value_or(""),
                  .status = row["status"],
                  .outcome = row["outcome"].value_or(""),
                  .directory = row["directory"].value_or(""),
                  .mime = row["mime"].value_or(""),
                  .owner = row["owner"].value_or(""),
                  .created_at = row["created_at"],
                  .sealed_at = row["sealed_at"].value_or(""),
                  .manifest_sha256 = row["manifest_sha256"].value_or(""),
                  .tags = row["tags"],
                  .thumbnail = "",
                  .depth = row["depth"],
                  .http_status = row["http_status"].value_or(0),
                  .bytes = row["bytes"].value_or<std::int64_t>(0),
                  .files = row["files"].value_or<std::int64_t>(0),
                  .attempts = row["attempts"].value_or<std::int64_t>(0),
                  .lapses = row["lapses"].value_or<std::int64_t>(0),
                  .resources = row["resources"].optional<int>(),
                  .resources_missing = row["resources_missing"].value_or(0)};
}

namespace {

Snapshot listed_snapshot(const pg::Row& row) {
  Snapshot snapshot;
  snapshot.id = row.text("id");
  snapshot.url = row.text("url");
  snapshot.title = row["title"].value_or("");
  snapshot.status = row.text("status");
  snapshot.outcome = row["outcome"].value_or("");
  snapshot.directory = row["directory"].value_or("");
  snapshot.thumbnail = row["thumbnail"].value_or("");
  return snapshot;
}

} // namespace

std::vector<Snapshot> crawl_snapshots(pg::Connection& connection, const std::string& crawl,
                                      const std::optional<std::string>& before, int limit) {
  return connection.call("select * from holdfast.crawl_snapshots($1::uuid, $2::uuid, $3::bigint)", crawl, before, limit)
      .map(&listed_snapshot);
}

std::map<std::string, std::string> thumbnails(pg::Connection& connection, const std::vector<std::string>& ids) {
  const auto rows = connection.call(
      "select s.id::text, holdfast.thumbnail(s.id, s.crawl_id, s.fence) as thumbnail from holdfast.v_snapshot s "
      "where s.id = any ($1::uuid[])",
      ids);
  std::map<std::string, std::string> found;
  for (const auto row : rows)
    found.emplace(row.text("id"), row["thumbnail"].value_or(""));
  return found;
}

namespace {

std::optional<std::string> window_end(pg::Connection& connection, const std::optional<std::string>& before,
                                      int window) {
  return connection.call("select holdfast.search_window($1::uuid, $2::bigint)::text", before, window)
      .value()
      .optional<std::string>();
}

} // namespace

SearchPage search_names(pg::Connection& connection, const std::string& text, const std::optional<std::string>& before,
                        int window, int limit) {
  SearchPage page;
  page.found = connection
                   .call("select s.*, holdfast.thumbnail(s.id, s.crawl_id, s.fence) as thumbnail "
                         "from holdfast.search_names($1, $2::uuid, $3::bigint, $4::bigint) s",
                         text, before, window, limit)
                   .map(&listed_snapshot);
  if (page.found.size() == static_cast<std::size_t>(limit))
    page.next = page.found.back().id;
  else if (const auto oldest = window_end(connection, before, window); oldest && window_end(connection, oldest, 1))
    page.next = *oldest;
  return page;
}

std::vector<ShownResult> results(pg::Connection& connection, const std::string& snapshot) {
  return connection
      .call("select *, output_files::text as files_json from holdfast.v_result where snapshot_id = $1::uuid "
            "and counts order by started_at",
            snapshot)
      .map([](const pg::Row& row) {
        ShownResult result{
            row["plugin"], row["hook_name"], row["status"], row["output"], row["error"], row["files_json"], {}, 0, 0};
        if (!row.is_null("wall_ms")) result.wall = std::chrono::milliseconds(row.integer("wall_ms"));
        result.peak_memory_bytes = row["peak_memory_bytes"].value_or<std::int64_t>(0);
        result.output_bytes = row["output_bytes"].value_or<std::int64_t>(0);
        return result;
      });
}

std::vector<RunningHook> running_in_front(pg::Connection& connection, int limit) {
  return hooks(connection, "where not background order by running_for desc limit $1::integer", pg::Params::of(limit));
}

std::vector<RunningHook> running_of(pg::Connection& connection, const std::string& crawl, int limit) {
  return hooks(connection, "where crawl_id = $1::uuid order by running_for desc limit $2::integer",
               pg::Params::of(crawl, limit));
}

pg::Result stuck(pg::Connection& connection, int limit) {
  return connection.call("select *, extract(epoch from stuck_for) as seconds from holdfast.v_stuck limit $1::integer",
                         limit);
}

pg::Result running_processes(pg::Connection& connection, int limit) {
  return connection.call(
      "select n.*, extract(epoch from n.lease_left) as lease_seconds, w.reason as why from holdfast.v_worker n "
      "cross join lateral holdfast.why(n.id) w where n.status = 'running' order by n.started_at limit $1::integer",
      limit);
}

pg::Result process_tree(pg::Connection& connection, int limit) {
  return connection.call("select *, extract(epoch from age) as seconds from holdfast.v_process limit $1::integer",
                         limit);
}

pg::Result limited_hosts(pg::Connection& connection, int limit) {
  return connection.call(
      "select h.name, coalesce(extract(epoch from greatest(h.min_delay, h.robots_delay)), 0) as delay_seconds, "
      "h.max_parallel, h.paused, w.reason from holdfast.v_host h cross join lateral holdfast.why(h.name) w "
      "order by h.backoff_until desc nulls last, h.paused desc, h.name limit $1::integer",
      limit);
}

std::vector<Event> events_after(pg::Connection& connection, std::int64_t id, std::int64_t limit,
                                const std::string& crawl_id) {
  return connection
      .call("select v.*, to_jsonb(v)::text as json from holdfast.list_events_after($1::bigint, $2::bigint, "
            "nullif($3, '')::uuid) v",
            id, limit, crawl_id)
      .map([](const pg::Row& row) {
        auto event = event_of(row);
        event.json = row.text("json");
        return event;
      });
}

std::int64_t last_event(pg::Connection& connection) {
  return connection.call("select coalesce((select id from holdfast.v_event order by id desc limit 1), 0)").value();
}

std::vector<base::Sample> metrics(pg::Connection& connection) {
  return connection.call("select * from holdfast.metrics() order by name, labels::text").map(&sample_of);
}

std::vector<base::Sample> worker_metrics(pg::Connection& connection, const std::string& hostname, int pid) {
  return connection
      .call("select * from holdfast.worker_metrics($1, $2::integer) order by name, labels::text", hostname, pid)
      .map(&sample_of);
}

void ping(pg::Connection& connection) { connection.call("select 1"); }

} // namespace holdfast::store
