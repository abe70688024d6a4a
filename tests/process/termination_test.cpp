// TERM, a grace, KILL.

#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

using namespace holdfast;
using namespace holdfast::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kShort{100};
constexpr seconds kLong{600}; // far beyond the deadline of the test: never to be waited for

std::unique_ptr<process::Child> start_ready(Stage& stage, std::initializer_list<std::string> arguments) {
  auto child = stage.start(arguments);
  REQUIRE(stage.wait_ready());
  return child;
}

} // namespace

TEST_CASE("a hook that obeys TERM ends by itself") {
  Stage stage;
  const auto child = start_ready(stage, {"obey"});
  child->terminate(kLong);
  const auto exit = stage.finish(*child);
  CHECK(exit.code == 7);
  CHECK(exit.terminated);
  CHECK_FALSE(exit.killed);
}

TEST_CASE("a hook without a handler dies of TERM") {
  Stage stage;
  const auto child = start_ready(stage, {"stay"});
  child->terminate(kLong);
  const auto exit = stage.finish(*child);
  CHECK(exit.signal == SIGTERM);
  CHECK(exit.terminated);
  CHECK_FALSE(exit.killed);
}

TEST_CASE("a hook that ignores TERM is killed after the grace") {
  Stage stage;
  const auto child = start_ready(stage, {"deaf"});
  child->terminate(kShort);
  const auto exit = stage.finish(*child);
  CHECK(exit.signal == SIGKILL);
  CHECK(exit.terminated);
  CHECK(exit.killed);
  CHECK(exit.wall_time >= kShort);
}

TEST_CASE("kill does not ask") {
  Stage stage;
  const auto child = start_ready(stage, {"obey"});
  child->kill();
  const auto exit = stage.finish(*child);
  CHECK(exit.signal == SIGKILL);
  CHECK(exit.terminated);
  CHECK(exit.killed);
}

TEST_CASE("a later call shortens the grace") {
  Stage stage;
  const auto child = start_ready(stage, {"deaf"});
  child->terminate(kLong);
  child->terminate(kShort);
  CHECK(stage.finish(*child).signal == SIGKILL);
}

TEST_CASE("a later call does not lengthen the grace") {
  Stage stage;
  const auto child = start_ready(stage, {"deaf"});
  child->terminate(kShort);
  child->terminate(kLong);
  CHECK(stage.finish(*child).signal == SIGKILL);
}

TEST_CASE("kill overtakes a grace that is running") {
  Stage stage;
  const auto child = start_ready(stage, {"deaf"});
  child->terminate(kLong);
  child->kill();
  CHECK(stage.finish(*child).signal == SIGKILL);
}

TEST_CASE("a hook gets TERM once, however often it is asked") {
  Stage stage;
  const auto child = start_ready(stage, {"count-terms"});
  child->terminate(kLong);
  child->terminate(kLong / 2);
  child->terminate(kLong / 4);
  CHECK(stage.finish(*child).clean());
  CHECK(stage.output() == "ready\nterms: 1\n");
}

TEST_CASE("TERM right after the start ends a hook that may not even run yet") {
  for (int i = 0; i < 20; ++i) {
    Stage stage;
    const auto child = stage.start({"stay"});
    child->terminate(kLong);
    const auto exit = stage.finish(*child);
    CHECK(exit.signal == SIGTERM);
    CHECK(exit.terminated);
  }
}

TEST_CASE("ending a child that has ended changes nothing") {
  Stage stage;
  const auto child = stage.start({"exit", "4"});
  CHECK(stage.finish(*child).code == 4);
  child->terminate(kShort);
  child->kill();
  const auto exit = stage.finish(*child);
  CHECK(exit.code == 4);
  CHECK_FALSE(exit.terminated);
}

TEST_CASE("TERM wakes a stopped hook, which then obeys") {
  Stage stage;
  const auto child = stage.start({"stop-itself"});
  REQUIRE(stage.wait_ready());
  REQUIRE(stage.pump_until([&] { return child->pid() != 0; }));
  const auto stat = "/proc/" + std::to_string(child->pid()) + "/stat";
  REQUIRE(stage.pump_until([&] { return read_file(stat).find(") T ") != std::string::npos; }));
  child->terminate(kLong);
  const auto exit = stage.finish(*child);
  CHECK(exit.code == 7);
  CHECK_FALSE(exit.killed);
}

TEST_CASE("a hook that closed its output is still supervised") {
  Stage stage;
  const auto child = start_ready(stage, {"close-output"});
  CHECK(stage.running(*child));
  child->terminate(kLong);
  CHECK(stage.finish(*child).signal == SIGTERM);
}

TEST_CASE("TERM and KILL reach every descendant wherever it went") {
  Stage stage;
  const auto child = start_ready(stage, {"everything"});
  CHECK(stage.survivors().size() == 5); // shim, hook, child, session child, daemon
  child->terminate(kShort);
  const auto exit = stage.finish(*child);
  CHECK(exit.signal == SIGKILL);
  CHECK(stage.survivors().empty());
}

TEST_CASE("a long chain of processes is ended from top to bottom") {
  Stage stage;
  const auto child = start_ready(stage, {"chain", "200"});
  child->kill();
  CHECK(stage.finish(*child).signal == SIGKILL);
  CHECK(stage.survivors().empty());
}

TEST_CASE("a child that is destroyed takes its processes along and is reaped") {
  Stage stage;
  pid_t shim = 0;
  {
    const auto child = start_ready(stage, {"everything"});
    shim = child->shim_pid();
  }
  CHECK(stage.pump_until([&] { return stage.survivors().empty() && process::process_start_ticks(shim) == 0; }));
  CHECK(zombies().empty());
}

TEST_CASE("a shim that its hook has stopped still ends it") {
  Stage stage;
  const auto child = start_ready(stage, {"stop-shim"});
  child->terminate(kLong);
  CHECK(stage.finish(*child).signal == SIGTERM);
}
