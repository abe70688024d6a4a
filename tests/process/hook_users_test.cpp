// Users that are numbers: what runs as one ends with its lease, and nothing else does.

#include "lib/base/error.hpp"
#include "lib/process/hook_users.hpp"
#include "lib/process/launcher.hpp"
#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

using namespace holdfast;
using namespace holdfast::test;
using process::HookUsers;

namespace {

// No hooks of others use these.
HookUsers some_users(const std::string& range = "59000-59009") {
  return HookUsers(range, process::executable_directory() / "holdfast-shim");
}

// A process of that user, in a session of its own, that no shim and no cookie leads to.
pid_t sleeper(uid_t uid) {
  const pid_t pid = ::fork();
  if (pid > 0) {
    REQUIRE(eventually([&] {
      std::string name;
      return std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name && name == "sleep";
    }));
    return pid;
  }
  ::setsid();
  if (::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) ::_exit(1);
  ::execl("/bin/sleep", "sleep", "600", nullptr);
  ::_exit(1);
}

bool ended_by_kill(pid_t pid) {
  int status = 0;
  return eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }) && WIFSIGNALED(status) &&
         WTERMSIG(status) == SIGKILL;
}

} // namespace

TEST_CASE("numbers of users are read with care") {
  for (const char* wrong : {"", "0", "0-9", "9-1", "a", "1-", "-1", "1-2-3", "1 - 2", "99999999999"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(some_users(wrong), base::Error);
  }
}

TEST_CASE("each lease is another user, until all are taken") {
  const auto users = some_users("59020-59021");
  if (!users.any()) {
    MESSAGE("skipped: this process cannot become another user");
    CHECK(users.lease() == nullptr);
    return;
  }
  auto first = users.lease();
  const auto second = users.lease();
  CHECK(first->user().uid != second->user().uid);
  CHECK_THROWS_AS(users.lease(), base::Error);
  const auto uid = first->user().uid;
  first.reset();
  CHECK(users.lease()->user().uid == uid);
}

TEST_CASE("what runs as a user ends with its lease, or when its worker is found dead") {
  const auto users = some_users();
  if (!users.any()) {
    MESSAGE("skipped: this process cannot become another user");
    return;
  }
  Stage stage;
  auto user = users.lease();
  const auto other = users.lease();
  const pid_t mine = sleeper(user->user().uid), another = sleeper(other->user().uid);
  const auto uid = user->user().uid;
  user.reset();
  CHECK(ended_by_kill(mine));
  CHECK(::kill(another, 0) == 0);

  const pid_t left = sleeper(uid); // as if its worker had been killed
  std::filesystem::create_directories(stage.dir / "session");
  REQUIRE(::chown((stage.dir / "session").c_str(), uid, uid) == 0);
  users.end_owner_of(stage.dir / "session");
  CHECK(ended_by_kill(left));

  REQUIRE(::chown((stage.dir / "session").c_str(), other->user().uid, other->user().uid) == 0);
  users.end_owner_of(stage.dir / "session"); // which is handed out
  CHECK(::kill(another, 0) == 0);
  ::kill(another, SIGKILL);
  CHECK(ended_by_kill(another));
}

TEST_CASE("a bomb of a user of its own leaves that user's other processes alone") {
  const auto users = some_users();
  if (!users.any()) {
    MESSAGE("skipped: this process cannot become another user");
    return;
  }
  for (const auto level : {process::SandboxLevel::full, process::SandboxLevel::user}) {
    CAPTURE(process::to_string(level));
    Stage stage;
    const auto user = users.lease();
    process::Sandbox sandbox;
    sandbox.level = level;
    sandbox.user = user->user();
    if (level == process::SandboxLevel::user)
      for (const auto& shown : {std::filesystem::path("/usr"), process::executable_directory()})
        sandbox.readable.push_back(shown);
    sandbox.writable.push_back(stage.dir / "");
    REQUIRE(::chown((stage.dir / "").c_str(), user->user().uid, user->user().gid) == 0);
    if (const auto problem = process::sandbox_problem(process::executable_directory() / "holdfast-shim", sandbox);
        !problem.empty()) {
      MESSAGE("skipped, there is no such sandbox here: " << problem);
      continue;
    }
    const pid_t beside = sleeper(user->user().uid);
    check_bomb_is_ended(stage, sandbox);
    CHECK(::kill(beside, 0) == 0);
    ::kill(beside, SIGKILL);
    CHECK(ended_by_kill(beside));
  }
}
