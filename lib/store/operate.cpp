#include "lib/store/operate.hpp"

#include "lib/base/error.hpp"

namespace holdfast::store {

pg::Result events_after(pg::Connection& connection, std::int64_t id, std::int64_t limit, const std::string& crawl_id) {
  return connection.call("select v.*, to_jsonb(v)::text as json from holdfast.list_events_after($1::bigint, "
                         "$2::bigint, nullif($3, '')::uuid) v",
                         pg::Params::of(id, limit, crawl_id));
}

std::int64_t last_event(pg::Connection& connection) {
  const auto rows = connection.call("select id from holdfast.v_event order by id desc limit 1");
  return rows.empty() ? 0 : rows[0].integer("id");
}

pg::Result stuck(pg::Connection& connection, int limit) {
  return connection.call("select *, extract(epoch from stuck_for) as seconds from holdfast.v_stuck limit $1::integer",
                         pg::Params::of(limit));
}

pg::Result running(pg::Connection& connection, const std::string& order, int limit) {
  const std::string select = "select *, extract(epoch from running_for) as seconds from holdfast.v_running order by ";
  const std::string end = " limit $1::integer";
  if (order == "plugin") return connection.call(select + "plugin, running_for desc" + end, pg::Params::of(limit));
  if (order == "url") return connection.call(select + "url, running_for desc" + end, pg::Params::of(limit));
  if (order == "worker") return connection.call(select + "worker, running_for desc" + end, pg::Params::of(limit));
  if (order == "age") return connection.call(select + "running_for desc" + end, pg::Params::of(limit));
  throw base::Error(base::ErrorClass::bug, "running hooks are not ordered by " + order);
}

pg::Result workers(pg::Connection& connection, int limit) {
  return connection.call(
      "select *, extract(epoch from lease_left) as lease_seconds from holdfast.v_worker where status = 'running' and "
      "process_type = 'worker' order by label limit $1::integer",
      pg::Params::of(limit));
}

pg::Result open_crawls(pg::Connection& connection, int limit) {
  return connection.call(
      "select * from holdfast.v_crawl where status <> 'sealed' order by created_at desc limit $1::integer",
      pg::Params::of(limit));
}

void log_level_set(pg::Connection& connection, const std::string& process, const std::string& level) {
  pg::Params params;
  params.add(process.empty() ? std::optional<std::string>() : std::optional<std::string>(process));
  params.add(level.empty() ? std::optional<std::string>() : std::optional<std::string>(level));
  connection.call("select holdfast.log_level_set($1::uuid, $2)", params);
}

pg::Result reference(pg::Connection& connection) { return connection.call("select * from holdfast.reference()"); }

} // namespace holdfast::store
