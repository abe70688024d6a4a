// The process that started hooks dies, however it dies: nothing stays. Each hook is five processes (fixture
// "everything").

#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr std::size_t kHooks = 3;
constexpr std::size_t kProcesses = 5 * kHooks;

pid_t start_supervisor(Stage& stage) {
  const pid_t pid =
      spawn({program("supervisor").string(), stage.dir.path().string(), stage.cookie, std::to_string(kHooks)},
            {"PATH=/usr/bin:/bin"}, stage.dir / "out");
  REQUIRE(eventually([&] { return stage.output().starts_with("ready"); }));
  return pid;
}

} // namespace

TEST_CASE("kill -9 of the supervisor leaves none of its hooks' processes") {
  for (int round = 0; round < 3; ++round) {
    Stage stage;
    const pid_t supervisor = start_supervisor(stage);
    CHECK(stage.survivors().size() == kProcesses + 1);
    kill(supervisor, SIGKILL);
    reap(supervisor);
    CHECK(stage.all_gone());
  }
}

TEST_CASE("a crash of the supervisor leaves none of its hooks' processes") {
  Stage stage;
  const pid_t supervisor = start_supervisor(stage);
  kill(supervisor, SIGABRT);
  (void)reap(supervisor);
  CHECK(stage.all_gone());
}

TEST_CASE("a supervisor that leaves by itself leaves none of its hooks' processes") {
  Stage stage;
  const pid_t supervisor = start_supervisor(stage);
  kill(supervisor, SIGTERM);
  const int status = reap(supervisor);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(stage.survivors().empty()); // it waited for them
}

TEST_CASE("the sweep finds what a supervisor and its shims left when all were killed") {
  Stage stage;
  const pid_t supervisor = start_supervisor(stage);
  // The order that loses most: every shim at once, then the supervisor before it can look for the rest.
  kill(supervisor, SIGSTOP);
  for (const pid_t pid : stage.survivors())
    if (read_file("/proc/" + std::to_string(pid) + "/comm") == "holdfast-shim\n") kill(pid, SIGKILL);
  kill(supervisor, SIGKILL);
  reap(supervisor);
  REQUIRE_FALSE(stage.survivors().empty());
  const auto value = stage.cookie.substr(stage.cookie.find('=') + 1);
  const int found = process::sweep("HOLDFAST_COOKIE", value.substr(0, value.size() - 4), std::chrono::seconds(5));
  CHECK(found >= static_cast<int>(kHooks));
  CHECK(stage.survivors().empty());
}
