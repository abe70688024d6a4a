#pragma once
// Converts failures of the database into Errors: the one table from SQLSTATE to base::ErrorClass, and the exception
// that carries the SQLSTATE along. Pure; any thread.

#include "lib/base/error.hpp"

#include <string>
#include <string_view>

namespace holdfast::pg {

// SQLSTATEs of Holdfast's own functions, raised with `using errcode = 'HF00n'`.
inline constexpr std::string_view kBrokenInvariant = "HF001"; // also an illegal transition
inline constexpr std::string_view kLeaseLapsed = "HF002";     // the process has been lost; it must join again
inline constexpr std::string_view kStaleFence = "HF003";      // another owner has what the caller names
inline constexpr std::string_view kRefused = "HF004";         // the request is refused; the message is for users

// SQLSTATEs of PostgreSQL that callers compare with.
inline constexpr std::string_view kDeadlock = "40P01";
inline constexpr std::string_view kLockTimeout = "55P03";

// A statement, or the session itself, failed. For failures that the client library noticed without a report of the
// server, sqlstate() is the nearest one of class 08 (08006 session lost, 08001 cannot connect, 08007 lost during
// COMMIT).
class DatabaseError : public base::Error {
public:
  // Each one made is counted for /metrics, but refusals and lost leases, which are answers.
  DatabaseError(base::ErrorClass error_class, std::string_view sqlstate, const std::string& message,
                std::string hint = {});

  const std::string& sqlstate() const noexcept { return sqlstate_; }

private:
  std::string sqlstate_;
};

base::ErrorClass class_of_sqlstate(std::string_view sqlstate) noexcept;

// Returns true if a session that reported this is lost, or will be.
bool ends_session(std::string_view sqlstate) noexcept;

// Report of the server, split: the text of libpq ("ERROR:  no such crawl\nHINT:  ...").
struct ServerReport {
  std::string message; // one line
  std::string detail;
  std::string hint;
};
ServerReport parse_server_report(std::string_view text);

// Makes the exception for a report of the server. The message of a refusal is for users and stays unchanged; any other
// gets its detail, the SQLSTATE and the beginning of the statement.
DatabaseError make_database_error(std::string_view sqlstate, std::string_view server_text, std::string_view statement);

} // namespace holdfast::pg
