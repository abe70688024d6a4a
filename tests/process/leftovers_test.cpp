// What hooks leave behind.

#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("a child left in the hook's group is ended and counted") {
  Stage stage;
  const auto exit = stage.run({"leave-child"});
  CHECK(exit.clean());
  CHECK(exit.leftovers == 1);
  CHECK_FALSE(exit.terminated);
  CHECK(stage.survivors().empty());
}

TEST_CASE("a detached daemon that ignores TERM is ended and counted") {
  Stage stage;
  const auto exit = stage.run({"leave-daemon"});
  CHECK(exit.clean());
  CHECK(exit.leftovers == 1);
  CHECK(stage.survivors().empty());
}

TEST_CASE("a daemon that dropped the cookie cannot leave its shim") {
  Stage stage;
  const auto exit = stage.run({"leave-clean-daemon"});
  CHECK(exit.clean());
  CHECK(exit.leftovers == 1);
  CHECK(stage.survivors().empty());
}

TEST_CASE("a shim killed by its own hook is reported, and the hook's daemon is found") {
  Subreaper subreaper;
  Stage stage;
  const auto child = stage.start({"kill-shim"});
  const auto exit = stage.finish(*child);
  CHECK(exit.shim_lost);
  CHECK(exit.signal == SIGKILL);
  CHECK_FALSE(exit.clean());
  CHECK_FALSE(exit.terminated);
  CHECK(exit.leftovers >= 1);
  CHECK(exit.describe() == "lost: its shim was killed by SIGKILL");
  CHECK(stage.survivors().empty());
  CHECK(zombies().empty());
}

// The same with cgroups is in cgroup_test.cpp. Here the daemon is known only by whose child it has become.
TEST_CASE("without cgroups, a daemon without cookie and session is found when its hook has killed the shim") {
  Subreaper subreaper;
  Stage stage;
  auto command = stage.command({});
  const auto file = stage.dir / "daemon";
  command.argv = {"/bin/sh", "-c",
                  "env -i setsid sh -c 'env -i setsid sh -c \"echo \\$\\$ >" + file.string() +
                      "; exec sleep 600\" &' & until [ -s " + file.string() +
                      " ]; do sleep 0.02; done; kill -9 $PPID; exec sleep 600"};
  const auto child = stage.start(command);
  const auto exit = stage.finish(*child);
  CHECK(exit.shim_lost);
  const pid_t daemon = std::stoi(read_file(file));
  CHECK_FALSE(process::process_alive(daemon, process::process_start_ticks(daemon)));
  CHECK(zombies().empty());
}

TEST_CASE("a shim killed from outside is reported, and nothing of its tree survives") {
  Subreaper subreaper;
  Stage stage;
  const auto child = stage.start({"everything"});
  REQUIRE(stage.wait_ready());
  kill(child->shim_pid(), SIGKILL);
  const auto exit = stage.finish(*child);
  CHECK(exit.shim_lost);
  CHECK(stage.survivors().empty());
  CHECK(zombies().empty());
}

TEST_CASE("hunting the tree of a killed shim spares other hooks, even with the same cookie") {
  Subreaper subreaper;
  Stage stage;
  const auto spared = stage.start({"obey"});
  REQUIRE(stage.wait_ready());
  const auto lost = stage.start({"kill-shim"});
  CHECK(stage.finish(*lost).shim_lost);
  CHECK(stage.running(*spared));
  spared->terminate(std::chrono::seconds(600));
  CHECK(stage.finish(*spared).code == 7);
}

TEST_CASE("TERM to a shim ends its hook and its descendants") {
  Stage stage;
  const auto child = stage.start({"everything"});
  REQUIRE(stage.wait_ready());
  kill(child->shim_pid(), SIGTERM);
  const auto exit = stage.finish(*child);
  CHECK(exit.signal == SIGKILL);
  CHECK_FALSE(exit.shim_lost);
  CHECK(stage.survivors().empty());
}
