#pragma once
// The one list of failures and exit codes. An Error is thrown; the catcher decides by its class, never by its
// text. A hook that fails is data (lib/hooks/outcome), not an Error. Thread-safe: values only.

#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::base {

// Classes of errors, by what the catcher can do. The numbers are the process exit codes (those of sysexits.h where it
// has one).
enum class ErrorClass : int {
  usage = 64,           // the command line is wrong: print it, point to --help
  refused = 65,         // the request makes no sense here (unknown id, sealed crawl, unusable URL): print it
  unavailable = 69,     // something outside is missing at start: database, archive root, server programs
  bug = 70,             // an invariant of ours is broken: log everything, stop the process
  system = 71,          // the operating system refused: no more processes, no more files
  cannot_create = 73,   // a directory or file cannot be created or written: full disk, wrong owner
  input_output = 74,    // reading or writing failed half-way
  temporary = 75,       // try again: lost connection, serialisation failure, lost trust
  schema_mismatch = 76, // the schema is newer than this binary understands, or the data directory is of another version
  lease_lost = 77,      // the row is no longer ours: drop the job, write nothing
  configuration = 78,   // a setting is wrong: the message names file and line, or the environment variable
};

// Exit codes of success, of an interrupt by SIGINT, and of `add --wait`, `run` and others when the work itself ended
// with failed snapshots.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailedWork = 1;
inline constexpr int kExitInterrupted = 130;

// Spelling of a class in logs and JSON ("schema_mismatch").
std::string_view to_string(ErrorClass error_class) noexcept;

// An error that ends an operation. `what()` names the problem and its place in one line; `hint()` says how to mend it,
// or is empty.
class Error : public std::runtime_error {
public:
  Error(ErrorClass error_class, const std::string& message, std::string hint = {})
      : std::runtime_error(message), class_(error_class), hint_(std::move(hint)) {}

  ErrorClass error_class() const noexcept { return class_; }
  const std::string& hint() const noexcept { return hint_; }
  int exit_code() const noexcept { return static_cast<int>(class_); }

private:
  ErrorClass class_;
  std::string hint_;
};

// Text of an errno value, thread-safe ("No space left on device").
std::string errno_text(int error_number);

} // namespace holdfast::base
