#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/runner_files.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace holdfast::hooks;
using holdfast::process::Exit;

namespace {

Exit code(int value) {
  Exit exit;
  exit.code = value;
  return exit;
}
Exit signalled(int signal) {
  Exit exit;
  exit.code = -1;
  exit.signal = signal;
  return exit;
}
Exit not_started() {
  Exit exit;
  exit.code = -1;
  exit.start_errno = 2;
  return exit;
}
std::optional<ResultRecord> record(Status status) { return ResultRecord{status, "", "", ""}; }

struct Row {
  const char* story;
  Exit exit;
  std::optional<ResultRecord> record;
  bool outputs, polite, timed_out;
  Status expected;
};

} // namespace

TEST_SUITE("outcome") {
  TEST_CASE("the status follows the contract's table, row by row") {
    const auto none = std::optional<ResultRecord>();
    const Row rows[] = {
        {"exit 0 with outputs", code(0), none, true, false, false, Status::succeeded},
        {"exit 0 without outputs", code(0), none, false, false, false, Status::noresults},
        {"exit 10 is skipped", code(10), none, false, false, false, Status::skipped},
        {"exit 10 is skipped whatever it left", code(10), none, true, false, false, Status::skipped},
        {"exit 1", code(1), none, true, false, false, Status::failed},
        {"exit 127", code(127), none, false, false, false, Status::failed},
        {"exit 143 of its own accord", code(143), none, true, false, false, Status::failed},
        {"crash", signalled(SIGSEGV), none, true, false, false, Status::failed},
        {"killed by a stranger", signalled(SIGTERM), none, true, false, false, Status::failed},
        {"not executable", not_started(), none, true, false, false, Status::failed},
        {"timeout", signalled(SIGTERM), none, true, false, true, Status::failed},
        {"timeout, left with exit 0", code(0), none, true, false, true, Status::failed},
        {"record succeeded, exit 0", code(0), record(Status::succeeded), false, false, false, Status::succeeded},
        {"record failed, exit 0", code(0), record(Status::failed), true, false, false, Status::failed},
        {"record skipped, exit 0", code(0), record(Status::skipped), true, false, false, Status::skipped},
        {"record noresults, exit 0", code(0), record(Status::noresults), true, false, false, Status::noresults},
        {"record succeeded, exit 1", code(1), record(Status::succeeded), true, false, false, Status::succeeded},
        {"record failed, exit 10", code(10), record(Status::failed), true, false, false, Status::failed},
        {"record succeeded, then a crash", signalled(SIGSEGV), record(Status::succeeded), true, false, false,
         Status::failed},
        {"record succeeded, then a timeout", signalled(SIGKILL), record(Status::succeeded), true, false, true,
         Status::failed},
        {"record succeeded, killed by a stranger", signalled(SIGKILL), record(Status::succeeded), true, false, false,
         Status::failed},
        {"polite end by TERM, outputs", signalled(SIGTERM), none, true, true, false, Status::succeeded},
        {"polite end by TERM, no outputs", signalled(SIGTERM), none, false, true, false, Status::noresults},
        {"polite end, exit 143", code(143), none, true, true, false, Status::succeeded},
        {"polite end, exit 130", code(130), none, false, true, false, Status::noresults},
        {"polite end, exit 0", code(0), none, true, true, false, Status::succeeded},
        {"polite end, yet it fails", code(1), none, true, true, false, Status::failed},
        {"polite end, yet it crashes", signalled(SIGSEGV), none, true, true, false, Status::failed},
        {"polite end was not enough", signalled(SIGKILL), none, true, true, false, Status::failed},
        {"polite end was not enough, though it claimed success", signalled(SIGKILL), record(Status::succeeded), true,
         true, false, Status::failed},
        {"polite end by TERM after a record", signalled(SIGTERM), record(Status::succeeded), true, true, false,
         Status::succeeded},
        {"polite end by TERM after a record of failure", signalled(SIGTERM), record(Status::failed), true, true, false,
         Status::failed},
    };
    for (const Row& row : rows) {
      CAPTURE(row.story);
      CHECK(to_string(decide_status(row.exit, row.record, row.outputs, row.polite, row.timed_out)) ==
            to_string(row.expected));
    }
  }

  TEST_CASE("the telling line of stderr is the message, not the tail of a trace") {
    CHECK(telling_line("") == "");
    CHECK(telling_line("\n \n") == "");
    CHECK(telling_line("one\ntwo\n\n") == "two");
    CHECK(telling_line(
              "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nValueError: no page\n") ==
          "ValueError: no page");
    CHECK(telling_line("/x.js:1\nthrow new Error()\n^\n\nError: no page\n    at Object.<anonymous> (/x.js:1:7)\n    at "
                       "node:internal/main:1:1 {\n}\n\nNode.js v20.20.0\n") == "Error: no page");
    CHECK(telling_line("\x1b[31mred\x1b[0m") == "red");
    CHECK(telling_line("---\n") == "---");
    CHECK(telling_line(std::string(5000, 'x')).size() <= 500);
  }

  TEST_CASE("durations read as they are configured") {
    CHECK(in_seconds(std::chrono::seconds(60)) == "60s");
    CHECK(in_seconds(std::chrono::milliseconds(1500)) == "1.5s");
    CHECK(in_seconds(std::chrono::milliseconds(200)) == "0.2s");
  }
}
