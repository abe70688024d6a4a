#include "lib/store/session.hpp"

namespace holdfast::store {

void session_open(pg::Connection& connection, const std::string& worker, const std::string& session,
                  const std::string& crawl, const std::string& directory) {
  connection.call("select holdfast.session_open($1::uuid, $2::uuid, $3::uuid, $4)",
                  pg::Params::of(worker, session, crawl, directory));
}

void session_set(pg::Connection& connection, const std::string& session, const std::string& status,
                 const std::string& reason, const std::string& hooks_json) {
  connection.call("select holdfast.session_set($1::uuid, $2, nullif($3, ''), $4::jsonb)",
                  pg::Params::of(session, status, reason, hooks_json));
}

} // namespace holdfast::store
