// Who we are, and who is alive.

#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("machine and boot have names that do not change") {
  CHECK(base::is_uuid(process::machine_id()));
  CHECK(process::machine_id() == process::machine_id());
  CHECK(base::is_uuid(process::boot_id()));
  CHECK(process::boot_id() == process::boot_id());
  CHECK_FALSE(process::namespace_id("pid").empty());
}

TEST_CASE("a machine id is the same with a file to keep it in") {
  TempDir dir;
  const auto id = process::machine_id(dir / "machine-id");
  CHECK(base::is_uuid(id));
  CHECK(process::machine_id(dir / "machine-id") == id);
}

TEST_CASE("a process is alive while it runs, not as a zombie, and not with another start time") {
  TempDir dir;
  const pid_t pid = spawn({program("misbehave").string(), "stay"}, {}, dir / "out");
  const auto ticks = process::process_start_ticks(pid);
  CHECK(ticks > 0);
  CHECK(process::process_alive(pid, ticks));
  CHECK_FALSE(process::process_alive(pid, ticks + 1));
  kill(pid, SIGKILL);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(process::process_alive(pid, ticks)); // a zombie
  reap(pid);
  CHECK(process::process_start_ticks(pid) == 0);
  CHECK_FALSE(process::process_alive(pid, ticks));
}

TEST_CASE("the programs of a release are found beside the running one") {
  CHECK(std::filesystem::exists(process::executable_directory() / "holdfast-shim"));
  CHECK(std::filesystem::exists(process::executable_directory() / "holdfast-guard"));
}
