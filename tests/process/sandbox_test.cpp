// What a sandbox shows: never what a link on the way to a directory leads to. Another hook may have left it there.

#include "lib/process/hook_users.hpp"
#include "lib/process/sandbox.hpp"
#include "lib/process/shim/calls.hpp"
#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

using namespace holdfast;
using namespace holdfast::test;
namespace fs = std::filesystem;

namespace {

// As hooks have it on this machine.
process::Sandbox sandbox_at(process::SandboxLevel level) {
  static const auto user = process::HookUsers("50000-59999", process::executable_directory() / "holdfast-shim").lease();
  process::Sandbox sandbox;
  sandbox.level = level;
  if (user) sandbox.user = user->user();
  if (level == process::SandboxLevel::user) sandbox.readable = {"/usr", "/etc"};
  return sandbox;
}

process::Command shell(const Stage& stage, const std::string& script) {
  auto command = stage.command({});
  command.argv = {"/bin/sh", "-c", script};
  return command;
}

} // namespace

TEST_CASE("what a link leads to is not shown for writing") {
  for (const auto level : {process::SandboxLevel::full, process::SandboxLevel::user}) {
    CAPTURE(process::to_string(level));
    Stage stage;
    fs::create_directories(stage.dir / "mine/inner");
    fs::create_directories(stage.dir / "outside/inner");
    fs::create_directory_symlink("outside", stage.dir / "link");
    for (const char* open : {".", "mine", "outside", "mine/inner", "outside/inner"})
      fs::permissions(stage.dir / open, fs::perms::all);
    auto command = shell(stage, "echo >" + (stage.dir / "mine/inner/written").string() + " && echo >" +
                                    (stage.dir / "outside/inner/planted").string());
    command.sandbox = sandbox_at(level);
    command.sandbox.writable = {stage.dir / "mine/inner"};
    command.directory = stage.dir / "mine/inner";
    const auto usual = stage.run(command);
    const bool unknown = usual.start_errno == ENOSYS || usual.start_errno == EOPNOTSUPP || usual.start_errno == EPERM;
    if (usual.failed_step == process::StartStep::sandbox && unknown) {
      MESSAGE("skipped, there is no such sandbox here: " << usual.describe());
      continue;
    }
    CHECK(fs::exists(stage.dir / "mine/inner/written"));
    CHECK_FALSE(fs::exists(stage.dir / "outside/inner/planted"));
    for (const char* way : {"link", "link/inner"}) {
      CAPTURE(way);
      command.sandbox.writable = {stage.dir / "mine/inner", stage.dir / way};
      const auto exit = stage.run(command);
      CHECK(exit.failed_step == process::StartStep::sandbox);
      CHECK(exit.start_errno == ELOOP);
      CHECK_FALSE(fs::exists(stage.dir / "outside/inner/planted"));
    }
    command.sandbox.writable = {stage.dir / "mine/inner"};
    command.directory = stage.dir / "link/inner";
    CHECK(stage.run(command).failed_step == process::StartStep::directory);
  }
}

TEST_CASE("system calls that no hook needs are refused, those of a browser's own sandbox are not") {
  for (const auto level : {process::SandboxLevel::full, process::SandboxLevel::user}) {
    CAPTURE(process::to_string(level));
    Stage stage;
    fs::permissions(stage.dir.path(), fs::perms::all);
    std::string numbers;
    for (const auto call : process::shim::kRefusedCalls)
      numbers += std::to_string(call) + ",";
    auto command = stage.command({});
    command.argv = {"/usr/bin/python3", "-c",
                    "import ctypes, os\n"
                    "kernel = ctypes.CDLL(None, use_errno=True)\n"
                    "def answer(number, *arguments):\n"
                    "  return ctypes.get_errno() if kernel.syscall(number, *arguments) < 0 else 0\n"
                    "for number in (" +
                        numbers +
                        "):\n"
                        "  if answer(number, 0, 0, 0, 0, 0, 0) != 1: print('allowed:', number)\n" // EPERM
                        "if answer(" +
                        std::to_string(SYS_seccomp) +
                        ", 0, 1, 0) == 1: print('no filter of its own')\n"
                        "import socket\n"
                        "def opens(*kind):\n"
                        "  try: socket.socket(*kind).close()\n"
                        "  except OSError as error: return error.errno != 1\n"
                        "  return True\n"
                        // of the kernel: crypto, virtual machines, packets, nftables, rules of IPsec
                        "for kind in (38, 5), (40, 1), (17, 2), (16, 3, 12), (16, 3, 6), (29, 3), (21, 5), (44, 3):\n"
                        "  if opens(*kind): print('opened:', kind)\n"
                        "for kind in (1, 1), (2, 1), (10, 2), (16, 3, 0), (16, 2, 15):\n"
                        "  if not opens(*kind): print('closed:', kind)\n"
                        "socket.socketpair()\n"
                        "os.close(os.open('.', os.O_RDONLY))\n"
                        "print('done')"};
    command.directory = stage.dir.path();
    command.sandbox = sandbox_at(level);
    command.sandbox.readable.push_back(stage.dir.path());
    command.sandbox.writable = {stage.dir.path()};
    const auto exit = stage.run(command);
    if (exit.failed_step == process::StartStep::sandbox) {
      MESSAGE("skipped, there is no such sandbox here: " << exit.describe());
      continue;
    }
    CHECK(stage.output() == "done\n");
  }
}

TEST_CASE("what is started in a scope signals what is in it, and nothing else") {
  constexpr long kWithScopes = 6;
  if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < kWithScopes) {
    MESSAGE("skipped: Linux 6.12 has what it takes");
    return;
  }
  const auto scope = process::SignalScope::make();
  REQUIRE(scope);
  Stage stage;
  const auto outside = stage.start({"stay"});
  auto second = stage.command({"stay"});
  second.stdout_path = stage.dir / "second";
  second.sandbox.signals = scope;
  const auto inside = stage.start(second);
  REQUIRE(stage.pump_until([&] { return outside->pid() > 0 && inside->pid() > 0; }));
  const auto may_signal = [&](const process::Child& child) {
    auto command =
        shell(stage, "kill -STOP " + std::to_string(child.pid()) + " && kill -CONT " + std::to_string(child.pid()));
    command.sandbox.signals = scope;
    return stage.run(command).clean();
  };
  CHECK(may_signal(*inside));
  CHECK_FALSE(may_signal(*outside));
  for (auto* child : {inside.get(), outside.get()}) {
    child->kill();
    stage.finish(*child);
  }
}

TEST_CASE("hooks with the same lists share their rules, and hooks with other lists do not") {
  Stage stage;
  for (const char* name : {".", "one", "two"}) {
    fs::create_directories(stage.dir / name);
    fs::permissions(stage.dir / name, fs::perms::all);
  }
  const auto write = [&](const fs::path& file, const fs::path& allowed) {
    auto command = shell(stage, "echo >" + file.string());
    command.sandbox = sandbox_at(process::SandboxLevel::user);
    command.sandbox.writable = {allowed};
    command.directory = allowed;
    return stage.run(command);
  };
  const auto first = write(stage.dir / "one/a", stage.dir / "one");
  if (first.failed_step == process::StartStep::sandbox && first.start_errno != ELOOP) {
    MESSAGE("skipped, there is no such sandbox here: " << first.describe());
    return;
  }
  CHECK(first.clean());
  for (int round = 0; round < 40; ++round) { // more than are kept
    const auto name = "page" + std::to_string(round);
    fs::create_directories(stage.dir / name);
    fs::permissions(stage.dir / name, fs::perms::all);
    CHECK(write(stage.dir / name / "file", stage.dir / name).clean());
    CHECK(write(stage.dir / "two/b", stage.dir / "two").clean());
    CHECK_FALSE(write(stage.dir / "two/c", stage.dir / "one").clean());
  }
  CHECK(write(stage.dir / "one/d", stage.dir / "one").clean());
  CHECK_FALSE(fs::exists(stage.dir / "two/c"));
}
