#pragma once
// Calls of the database that fail until something outside is mended: a disk is full, a lock is held, the server is read
// only. One warning in the log when a call begins to fail, one when it works again, whichever connection makes it.
// State of the process; any thread.

#include "lib/pg/sqlstate.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::pg {

inline constexpr std::string_view kConnect = "connect"; // stands for the statement where a session is opened
inline constexpr std::string_view kPing = "select 1"; // asks whether a session lives; where it fails, another is opened

// `statement` failed. Logs it when the call begins to fail; `blockers` then returns the waits of the database, or
// nothing. Errors that waiting does not mend do not count.
void call_failed(std::string_view statement, const DatabaseError& error, const std::function<std::string()>& blockers);
// `statement` worked; logs the end of its failures, if it failed.
void call_worked(std::string_view statement);
// Returns true if the process has called this function of ours before with success.
bool has_worked(std::string_view statement);

struct FailingCall {
  std::string call; // the function of the database
  std::chrono::seconds age;
  std::string text, way_out;
};
// Returns the calls that still fail, of those in the log. Forgets those that are no longer made, and logs that.
std::vector<FailingCall> failing_calls();

} // namespace holdfast::pg
