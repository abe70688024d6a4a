#pragma once
// Makes a session with a server that is not an old primary; see connection.hpp. Private to lib/pg. Any thread.

#include "lib/pg/connection.hpp"
#include "lib/pg/hosts.hpp"

#include <pqxx/connection>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::pg {

// SQLSTATEs of what only the client notices.
inline constexpr const char* kCannotConnect = "08001";
inline constexpr const char* kSessionLost = "08006";

struct Session {
  std::unique_ptr<pqxx::connection> connection;
  SessionTimeline timeline;
};

// Tries the hosts until one is not an old primary. Throws DatabaseError.
Session open_session(const std::string& dsn, const ConnectionOptions& options);

// Connects only to learn the server's timeline. Empty if it does not answer.
std::optional<SessionTimeline> look_at_server(const std::string& dsn, const ConnectionOptions& options);

std::string in_one_line(std::string_view text);

} // namespace holdfast::pg
