// The guard: passes signals on, reports the end, leaves nothing.

#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>

#include <sstream>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kGuardedHooks = "3";
constexpr std::size_t kGuardedProcesses = 5 * 3;

struct Guarded {
  pid_t guard;
  pid_t supervisor;
};

pid_t start_guard(Stage& stage, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {program("holdfast-guard").string(), "--"});
  return spawn(arguments, {"PATH=/usr/bin:/bin", stage.cookie}, stage.dir / "out");
}

Guarded start_guarded(Stage& stage) {
  const pid_t guard =
      start_guard(stage, {program("supervisor").string(), stage.dir.path().string(), stage.cookie, kGuardedHooks});
  REQUIRE(eventually([&] { return stage.output().starts_with("ready") && stage.output().ends_with("\n"); }));
  std::istringstream text(stage.output());
  std::string word;
  pid_t supervisor = 0;
  text >> word >> supervisor;
  CHECK(stage.survivors().size() == kGuardedProcesses + 2);
  return {guard, supervisor};
}

int guard_exit(Stage& stage, std::vector<std::string> arguments) {
  const int status = reap(start_guard(stage, std::move(arguments)));
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

} // namespace

TEST_CASE("the guard ends with its program's status") {
  const std::string misbehave = program("misbehave").string();
  Stage stage;
  CHECK(guard_exit(stage, {misbehave, "exit", "0"}) == 0);
  CHECK(guard_exit(stage, {misbehave, "exit", "75"}) == 75);
  CHECK(guard_exit(stage, {misbehave, "die", "9"}) == 128 + SIGKILL);
  CHECK(guard_exit(stage, {misbehave, "die", "15"}) == 128 + SIGTERM);
  CHECK(guard_exit(stage, {(stage.dir / "missing").string()}) == 127);
  CHECK(guard_exit(stage, {stage.dir.write("plain", "not a program").string()}) == 126);
}

TEST_CASE("the guard finds a program on the path and passes its arguments") {
  Stage stage;
  CHECK(guard_exit(stage, {"sh", "-c", "echo \"$1 $2\"", "sh", "one", "two three"}) == 0);
  CHECK(stage.output() == "one two three\n");
}

TEST_CASE("the guard passes signals on") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    Stage stage;
    const pid_t guard =
        start_guard(stage, {"/bin/sh", "-c",
                            "trap 'exit 9' " + std::to_string(signal) + "; echo ready; while :; do sleep 0.01; done"});
    REQUIRE(eventually([&] { return stage.output() == "ready\n"; }));
    kill(guard, signal);
    const int status = reap(guard);
    CAPTURE(signal);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 9);
  }
}

TEST_CASE("the guard ends a daemon that its program leaves") {
  Stage stage;
  CHECK(guard_exit(stage, {program("misbehave").string(), "leave-daemon"}) == 0);
  CHECK(stage.survivors().empty());
}

TEST_CASE("kill -9 of a guarded supervisor leaves nothing") {
  for (int round = 0; round < 3; ++round) {
    Stage stage;
    const auto pids = start_guarded(stage);
    kill(pids.supervisor, SIGKILL);
    const int status = reap(pids.guard);
    CHECK(WEXITSTATUS(status) == 128 + SIGKILL);
    CHECK(stage.survivors().empty()); // when the guard ends, all is done
  }
}

TEST_CASE("kill -9 of the guard leaves nothing") {
  for (int round = 0; round < 3; ++round) {
    Stage stage;
    const auto pids = start_guarded(stage);
    kill(pids.guard, SIGKILL);
    reap(pids.guard);
    CHECK(stage.all_gone());
  }
}

TEST_CASE("kill -9 of guard and supervisor at once leaves nothing") {
  for (int round = 0; round < 10; ++round) {
    Stage stage;
    const auto pids = start_guarded(stage);
    if (round % 2 == 0) {
      kill(pids.guard, SIGKILL);
      kill(pids.supervisor, SIGKILL);
    } else {
      kill(pids.supervisor, SIGKILL);
      kill(pids.guard, SIGKILL);
    }
    reap(pids.guard);
    CHECK(stage.all_gone());
  }
}

TEST_CASE("TERM to the guard lets the supervisor leave in order") {
  Stage stage;
  const auto pids = start_guarded(stage);
  kill(pids.guard, SIGTERM);
  const int status = reap(pids.guard);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(stage.survivors().empty());
}

// A program named postgres with a data directory among its arguments, and a postmaster.pid that names a process.
class Spared {
public:
  Spared() {
    std::filesystem::copy_file("/bin/sh", stage.dir / "postgres");
    std::filesystem::permissions(stage.dir / "postgres", std::filesystem::perms::owner_all);
  }
  ~Spared() {
    for (const pid_t pid : stage.survivors())
      kill(pid, SIGKILL);
  }

  // Runs the script below the guard to its end; what it leaves in the background meets the guard's mercy.
  void run(const std::string& script) {
    const pid_t guard = spawn({program("holdfast-guard").string(), "--spare=" + (stage.dir / "postmaster.pid").string(),
                               "--", "/bin/sh", "-c", "cd \"$0\"; " + script, stage.dir.path().string()},
                              {"PATH=/usr/bin:/bin", stage.cookie}, stage.dir / "out");
    CHECK(WEXITSTATUS(reap(guard)) == 0);
  }

  Stage stage;
};

// $0 is the directory. The script of the server starts one child, which must live as well.
constexpr const char* kServer = "./postgres -c 'sleep 600; :' -D \"$0\" & ";
constexpr const char* kPidFile = "printf '%s\\n%s\\n1234\\n' $! \"$0\" >postmaster.pid";

TEST_CASE("the guard spares the database server of the pid file, with its children") {
  Spared spared;
  spared.run(std::string(kServer) + kPidFile +
             "; sleep 600 & while ! pgrep -P \"$(head -n 1 postmaster.pid)\" "
             ">/dev/null; do sleep 0.01; done");
  CHECK(spared.stage.survivors().size() == 2);
}

TEST_CASE("a pid file that names anything but that server protects no process") {
  for (const std::string& script : {
           std::string("sleep 600 & ") + kPidFile,                                          // a hook got the old pid
           "ln -s /bin/sleep sleeper; ./sleeper 600 & " + std::string(kPidFile),            // another program
           "/bin/sh -c 'sleep 600; :' -D \"$0\" & " + std::string(kPidFile),                // with the right arguments
           std::string(kServer) + "printf '%s\\n/elsewhere\\n' $! >postmaster.pid",         // the server of others
           std::string(kServer) + "printf '%s\\n' $! >postmaster.pid",                      // cut short
           std::string(kServer) + "printf '1\\n%s\\n' \"$0\" >postmaster.pid",              // not below us
           std::string(kServer) + "printf -- '-1\\n%s\\n' \"$0\" >postmaster.pid",          // everybody
           std::string(kServer) + "printf 'x' >postmaster.pid", std::string(kServer) + ":", // garbage; none
       }) {
    Spared spared;
    CAPTURE(script);
    spared.run(script);
    CHECK(spared.stage.survivors().empty());
  }
}
