#pragma once
// Crawl sessions: the crawl hooks that a worker keeps running for a crawl. One free function per SQL function
// (migrations/functions/60_session.sql). Blocking; call on the thread that owns the connection. All may be repeated.

#include "lib/pg/connection.hpp"

#include <string>
#include <vector>

namespace holdfast::store {

// Errors: lease_lost if the worker has lapsed.
void session_open(pg::Connection& connection, const std::string& worker, const std::string& session,
                  const std::string& crawl, const std::string& directory);
// status: ready, draining, closed or failed. `hooks_json`: [{plugin, hook_name, status, ...}], keys as the columns of
// holdfast.session_hook.
void session_set(pg::Connection& connection, const std::string& session, const std::string& status,
                 const std::string& reason, const std::string& hooks_json);

// The end of what a crawl hook wrote to stderr, and where it ran.
struct SessionLog {
  std::string plugin, hook_name, worker, log;
};
std::vector<SessionLog> session_logs(pg::Connection& connection, const std::string& crawl);

} // namespace holdfast::store
