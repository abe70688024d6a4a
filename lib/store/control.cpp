#include "lib/store/control.hpp"

namespace holdfast::store {

std::vector<std::string> crawls_to_stop(pg::Connection& connection, int limit) {
  return connection
      .call("select id from holdfast.v_crawl where status <> 'sealed' and stopping_at is null limit $1::integer", limit)
      .column("id");
}

std::vector<std::string> workers_running(pg::Connection& connection, const std::vector<std::string>& ids) {
  return connection.call("select id from holdfast.v_worker where id = any($1::uuid[]) and status = 'running'", ids)
      .column("id");
}

std::vector<StalePage> crawl_pages_stale(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age,
                                         const std::optional<std::string>& crawl) {
  return connection
      .call("select * from holdfast.crawl_pages_stale($1::bigint, $2::interval, $3::uuid)", limit, age, crawl)
      .map([](const pg::Row& row) {
        return StalePage{row["crawl_id"], row["since"], row["there"]};
      });
}

bool may_act_as(pg::Connection& connection, const std::string& role) {
  return connection
      .call("select case when to_regrole($1::text) is not null then pg_has_role($1::name, case "
            "when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end) "
            "else false end",
            role)
      .value();
}

} // namespace holdfast::store
