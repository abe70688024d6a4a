#include "lib/store/session.hpp"

namespace holdfast::store {

void session_open(pg::Connection& connection, const std::string& worker, const std::string& session,
                  const std::string& crawl, const std::string& directory) {
  connection.call("select holdfast.session_open($1::uuid, $2::uuid, $3::uuid, $4)", worker, session, crawl, directory);
}

void session_set(pg::Connection& connection, const std::string& session, const std::string& status,
                 const std::string& reason, const std::string& hooks_json) {
  connection.call("select holdfast.session_set($1::uuid, $2, nullif($3, ''), $4::jsonb)", session, status, reason,
                  hooks_json);
}

std::vector<SessionLog> session_logs(pg::Connection& connection, const std::string& crawl) {
  return connection
      .call("select plugin, hook_name, worker, log from holdfast.v_session_log where crawl_id = $1::uuid "
            "order by ended_at, hook_name",
            crawl)
      .map([](const pg::Row& row) {
        return SessionLog{row["plugin"], row["hook_name"], row["worker"], row["log"]};
      });
}

} // namespace holdfast::store
