// Hooks in cgroups of their own. Where this process may make none, there is nothing to test but that it says so.

#include "lib/process/cgroups.hpp"
#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kLeaf = "holdfast-hook-";

process::Cgroups usable() {
  auto cgroups = process::Cgroups::find();
  cgroups.prepare();
  return cgroups;
}

// Directories of leaves, as the shim is told.
std::vector<std::filesystem::path> leaves(process::Cgroups& cgroups) {
  std::istringstream list(cgroups.next_leaves(true));
  std::vector<std::filesystem::path> found;
  for (std::string leaf; list >> leaf;)
    if (leaf != "-") found.emplace_back(leaf);
  return found;
}

// Leaves of this process that are there.
std::vector<std::string> remaining(process::Cgroups& cgroups) {
  std::vector<std::string> names;
  const std::string own = "-" + std::to_string(::getpid()) + "-";
  for (const auto& leaf : leaves(cgroups))
    for (const auto& entry : std::filesystem::directory_iterator(leaf.parent_path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with(kLeaf) && name.find(own) != std::string::npos) names.push_back(name);
    }
  return names;
}

struct CgroupStage : Stage {
  CgroupStage() {
    launcher = std::make_unique<process::Launcher>(io.get_executor(), program("holdfast-shim"), cgroups);
    if (!cgroups.any()) MESSAGE("without cgroups, " << cgroups.describe());
  }
  ~CgroupStage() { CHECK(remaining(cgroups).empty()); }
  process::Cgroups cgroups = usable();
};

} // namespace

TEST_CASE("it is said where cgroups of hooks are, or why there are none") {
  auto cgroups = usable();
  CHECK(cgroups.describe().starts_with(cgroups.any() ? "version " : "none: "));
  CHECK((cgroups.next_leaves(true) == "-") == !cgroups.any());
  CHECK(process::Cgroups().next_leaves(true) == "-");
}

TEST_CASE("a hook and what it starts are in a cgroup of their own") {
  CgroupStage stage;
  if (!stage.cgroups.any()) return;
  auto command = stage.command({});
  command.argv = {"/bin/sh", "-c", "cat /proc/self/cgroup; setsid cat /proc/self/cgroup & wait"};
  command.limits.tree_memory_bytes = 256u << 20;
  command.limits.tree_processes = 10;
  CHECK(stage.run(command).clean());
  std::istringstream lines(stage.output());
  std::size_t inside = 0;
  for (std::string line; std::getline(lines, line);)
    inside += line.find(kLeaf) != std::string::npos;
  CHECK(inside == 2 * leaves(stage.cgroups).size());
}

TEST_CASE("in a cgroup, what cannot be started is reported as ever") {
  CgroupStage stage;
  auto command = stage.command({});
  command.argv = {"/nonexistent"};
  auto exit = stage.run(command);
  CHECK(exit.start_errno == ENOENT);
  CHECK(exit.failed_step == process::StartStep::execute);
  command.directory = "/nonexistent";
  exit = stage.run(command);
  CHECK(exit.failed_step == process::StartStep::directory);
}

TEST_CASE("in a cgroup, a fork bomb is ended") {
  CgroupStage stage;
  if (!stage.cgroups.any()) return;
  check_bomb_is_ended(stage);
}

TEST_CASE("in a cgroup, a tree that takes more memory than it may is killed as a whole") {
  CgroupStage stage;
  auto command = stage.command({});
  command.argv = {"/bin/sh", "-c", "setsid tail /dev/zero & tail /dev/zero & wait; wait; exit 0"};
  command.limits.tree_memory_bytes = 128u << 20;
  const auto exit = stage.run(command);
  CHECK(exit.exceeded == process::TreeLimit::memory);
  CHECK_FALSE(exit.describe().empty());
  CHECK(stage.survivors().empty());
}

TEST_CASE("in a cgroup, CPU time counts even for processes that were not reaped") {
  CgroupStage stage;
  if (!stage.cgroups.any()) return;
  auto command = stage.command({});
  command.argv = {"/usr/bin/perl", "-e",
                  "$SIG{CHLD} = 'IGNORE'; unless (fork) { while ((times)[0] + (times)[1] < 0.5) { $x++ for 1 .. 9999 } "
                  "exit 0 } wait;"};
  const auto exit = stage.run(command);
  CHECK(exit.clean());
  CHECK(exit.usage.user_time + exit.usage.system_time >= std::chrono::milliseconds(450));
}

TEST_CASE("in a cgroup, a daemon without a cookie is found when its shim was killed") {
  Subreaper subreaper;
  CgroupStage stage;
  if (!stage.cgroups.any()) return;
  auto command = stage.command({});
  const auto file = stage.dir / "daemon";
  command.argv = {"/bin/sh", "-c",
                  "env -i setsid sh -c 'echo $$ >" + file.string() + "; exec sleep 600' & until [ -s " + file.string() +
                      " ]; do sleep 0.02; done; kill -9 $PPID; exec sleep 600"};
  const auto exit = stage.run(command);
  CHECK(exit.shim_lost);
  CHECK_FALSE(
      process::process_alive(std::stoi(read_file(file)), process::process_start_ticks(std::stoi(read_file(file)))));
  CHECK(zombies().empty());
}

TEST_CASE("cgroups of a worker that is gone are removed with what is in them, others are left alone") {
  auto cgroups = usable();
  if (!cgroups.any()) return;
  TempDir dir;
  const auto named = [&](pid_t pid, std::uint64_t ticks) {
    return kLeaf + process::namespace_id("pid") + "-" + std::to_string(pid) + "-" + std::to_string(ticks) + "-1";
  };
  const auto base = leaves(cgroups).front().parent_path();
  const auto dead = base / named(::getpid(), 1),
             alive = base / named(::getpid(), process::process_start_ticks(::getpid()));
  std::filesystem::create_directory(dead);
  std::filesystem::create_directory(alive);
  const pid_t child = spawn({"/bin/sleep", "600"}, {}, dir / "out");
  std::ofstream(dead / "cgroup.procs") << child << std::flush;
  process::Cgroups::find().prepare();
  CHECK(WTERMSIG(reap(child)) == SIGKILL);
  process::Cgroups::find().prepare(); // it may have been on its way out
  CHECK_FALSE(std::filesystem::exists(dead));
  CHECK(std::filesystem::exists(alive));
  std::filesystem::remove(alive);
}
