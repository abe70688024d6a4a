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

// What a program leaves in the background beside a file that names a process.
class Spared {
public:
  ~Spared() {
    for (const pid_t pid : stage.survivors())
      kill(pid, SIGKILL);
  }

  // Runs the script below the guard to its end; what it leaves in the background meets the guard's mercy.
  void run(const std::string& script, const std::vector<std::string>& at_end = {}) {
    std::vector<std::string> words{program("holdfast-guard").string(),
                                   "--spare=" + (stage.dir / "server.process").string()};
    for (const auto& word : at_end)
      words.push_back("--at-end=" + word);
    words.insert(words.end(), {"--", "/bin/sh", "-c", "cd \"$0\"; " + script, stage.dir.path().string()});
    const pid_t guard = spawn(words, {"PATH=/usr/bin:/bin", stage.cookie}, stage.dir / "out");
    CHECK(WEXITSTATUS(reap(guard)) == 0);
  }

  Stage stage;
};

// $0 is the directory. The server starts one child, which must live as well.
constexpr const char* kServer = "/bin/sh -c 'sleep 600; :' & ";
constexpr const char* kFile = "printf '%s %s\\n' $! \"$(cut -d ' ' -f 22 /proc/$!/stat)\" >server.process";

TEST_CASE("the guard spares the process that a file names, with its children") {
  Spared spared;
  spared.run(std::string(kServer) + kFile +
             "; sleep 600 & while ! pgrep -P \"$(cut -d ' ' -f 1 server.process)\" >/dev/null; do sleep 0.01; done");
  CHECK(spared.stage.survivors().size() == 2);
}

TEST_CASE("a file that names anything but a process of the program's protects none") {
  for (const std::string& script : {
           std::string(kServer) + "printf '%s 4711\\n' $! >server.process", // another got the pid
           std::string(kServer) + "printf '%s\\n' $! >server.process",      // cut short
           std::string(kServer) + "printf '%s %s' $! 1 >server.process",    // cut short
           std::string(kServer) + "cut -d ' ' -f 22 /proc/1/stat | sed 's/^/1 /' >server.process", // not below us
           std::string(kServer) + "printf -- '-1 1\\n' >server.process",                           // everybody
           std::string(kServer) + "printf 'x' >server.process", std::string(kServer) + ":",        // garbage; none
       }) {
    Spared spared;
    CAPTURE(script);
    spared.run(script);
    CHECK(spared.stage.survivors().empty());
  }
}

TEST_CASE("the guard runs its last command only if the spared process still lives") {
  const std::vector<std::string> stop{"/bin/sh", "-c",
                                      "echo at end; kill -9 \"$(cut -d ' ' -f 1 \"$0/server.process\")\""};
  Spared spared;
  auto words = stop;
  words.push_back(spared.stage.dir.path().string());
  spared.run("exec 2>&1; sleep 600 & " + std::string(kFile), words);
  CHECK(spared.stage.output() == "at end\n");
  CHECK(
      spared.stage.pump_until([&] { return spared.stage.survivors().empty(); })); // what was killed ends a moment later

  Spared ended;
  words.back() = ended.stage.dir.path().string();
  ended.run("sleep 600 & " + std::string(kFile) + "; kill -9 $!; wait", words);
  CHECK(ended.stage.output() == "");
}
