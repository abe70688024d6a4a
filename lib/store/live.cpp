#include "lib/store/live.hpp"

#include "lib/base/error.hpp"
#include "lib/pg/failing_calls.hpp"
#include "lib/store/call.hpp"

#include <nlohmann/json.hpp>

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

base::Sample sample_of(const pg::Row& row) {
  return {row["name"], row["name"], row["type"], row["help"], texts_of(nlohmann::json::parse(row.text("labels"))),
          row["value"]};
}

} // namespace

pg::Result status(pg::Connection& connection) {
  return connection.call("select * from holdfast.v_total cross join holdfast.v_status");
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

pg::Result latest_crawls(pg::Connection& connection, int limit) {
  // Open ones first: those are few, and an index finds them.
  return connection.call(
      "(select * from holdfast.v_crawl where status <> 'sealed' order by created_at desc limit $1::integer) "
      "union all "
      "(select * from holdfast.v_crawl where status = 'sealed' order by created_at desc limit $1::integer)",
      limit);
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
  page.found = connection.call("select s.*, holdfast.thumbnail(s.id, s.crawl_id, s.fence) as thumbnail "
                               "from holdfast.search_names($1, $2::uuid, $3::bigint, $4::bigint) s",
                               text, before, window, limit);
  if (page.found.size() == static_cast<std::size_t>(limit))
    page.next = page.found[page.found.size() - 1].text("id");
  else if (const auto oldest = window_end(connection, before, window); oldest && window_end(connection, oldest, 1))
    page.next = *oldest;
  return page;
}

pg::Result results(pg::Connection& connection, const std::string& snapshot) {
  return connection.call("select *, output_files::text as files_json from holdfast.v_result "
                         "where snapshot_id = $1::uuid and counts order by started_at",
                         snapshot);
}

pg::Result running_in_front(pg::Connection& connection, int limit) {
  return connection.call(
      "select * from holdfast.v_running where not background order by running_for desc limit $1::integer", limit);
}

pg::Result running_processes(pg::Connection& connection, int limit) {
  return connection.call(
      "select n.*, w.reason as why from (select * from holdfast.v_worker where status = 'running' "
      "order by started_at limit $1::integer) n cross join lateral holdfast.why_of('process', n.id, null) w "
      "order by n.started_at",
      limit);
}

pg::Result process_tree(pg::Connection& connection, int limit) {
  return connection.call("select * from holdfast.v_process limit $1::integer", limit);
}

pg::Result limited_hosts(pg::Connection& connection, int limit) {
  return connection.call(
      "select h.name, coalesce(extract(epoch from greatest(h.min_delay, h.robots_delay)), 0) as delay_seconds, "
      "h.max_parallel, h.paused, holdfast.why_host(h.name) as reason from (select * from holdfast.v_host "
      "order by backoff_until desc nulls last, paused desc, name limit $1::integer) h "
      "order by h.backoff_until desc nulls last, h.paused desc, h.name",
      limit);
}

pg::Result events_after(pg::Connection& connection, std::int64_t id, std::int64_t limit, const std::string& crawl_id) {
  return connection.call(
      "select v.*, to_jsonb(v)::text as json from holdfast.list_events_after($1::bigint, $2::bigint, "
      "nullif($3, '')::uuid) v",
      id, limit, crawl_id);
}

std::int64_t last_event(pg::Connection& connection) {
  return connection.call("select coalesce((select id from holdfast.v_event order by id desc limit 1), 0)").value();
}

std::vector<std::string> last_events(pg::Connection& connection, std::int64_t limit, const std::string& crawl_id) {
  auto lines = connection
                   .call("select to_jsonb(v)::text as json from holdfast.list_events_after((select coalesce(min(e.id), "
                         "0) - 1 from holdfast.list_events(nullif($2, '')::uuid, null, $1::bigint) e), $1::bigint, "
                         "nullif($2, '')::uuid) v",
                         limit, crawl_id)
                   .column("json");
  const auto most = static_cast<std::size_t>(limit); // the first id may have more rows than that
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
  return lines;
}

std::vector<base::Sample> metrics(pg::Connection& connection) {
  return connection.call("select * from holdfast.metrics() order by name, labels::text").map(&sample_of);
}

std::vector<base::Sample> worker_metrics(pg::Connection& connection, const std::string& hostname, int pid) {
  return connection
      .call("select * from holdfast.worker_metrics($1, $2::integer) order by name, labels::text", hostname, pid)
      .map(&sample_of);
}

void ping(pg::Connection& connection) { connection.call(std::string(pg::kPing)); }

} // namespace holdfast::store
