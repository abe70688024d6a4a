// Limits are set before the hook runs.

#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("a file larger than its limit ends the hook with SIGXFSZ") {
  Stage stage;
  auto command = stage.command({"write-much", "64"});
  command.limits.file_bytes = 65536;
  const auto exit = stage.run(command);
  CHECK(exit.signal == SIGXFSZ);
  CHECK(std::filesystem::file_size(stage.dir / "out") == 65536);
}

TEST_CASE("without a limit the same file is written whole") {
  Stage stage;
  CHECK(stage.run({"write-much", "64"}).clean());
  CHECK(std::filesystem::file_size(stage.dir / "out") == 64 * 4096);
}

TEST_CASE("open files are limited") {
  Stage stage;
  auto command = stage.command({"open-many"});
  command.limits.open_files = 20;
  CHECK(stage.run(command).clean());
  CHECK(stage.output() == "descriptors: 20\n");
}

TEST_CASE("core files are off") {
  Stage stage;
  CHECK(stage.run({"core-limit"}).clean());
  CHECK(stage.output() == "core: 0\n");
}

TEST_CASE("a limit above the inherited one stays at the inherited one") {
  Stage stage;
  auto command = stage.command({"open-many"});
  command.argv = {"/bin/sh", "-c", "ulimit -Hn"};
  CHECK(stage.run(command).clean());
  const auto inherited = stage.output();
  std::filesystem::remove(stage.dir / "out");
  command.limits.open_files = std::uint64_t{1} << 40;
  CHECK(stage.run(command).clean());
  CHECK(stage.output() == inherited);
}

TEST_CASE("a tree that takes more memory than it may is killed as a whole") {
  Stage stage;
  auto command = stage.command({});
  command.argv = {"/bin/sh", "-c", "setsid tail /dev/zero & tail /dev/zero & wait"};
  command.limits.tree_memory_bytes = 128u << 20;
  const auto exit = stage.run(command);
  CHECK(exit.exceeded == process::TreeLimit::memory);
  CHECK(exit.signal == SIGKILL);
  CHECK(exit.terminated);
  CHECK(exit.usage.peak_memory_bytes < 4ull << 30);
  CHECK(stage.survivors().empty());
}

TEST_CASE("memory that processes share counts once") {
  Stage stage;
  auto command = stage.command({"share", "64"}); // eight processes look at the same 64 MiB
  command.limits.tree_memory_bytes = 256u << 20;
  CHECK(stage.run(command).clean());
}

TEST_CASE("a tree of more processes than it may have is killed as a whole") {
  if (::geteuid() == 0) {
    MESSAGE("skipped: the kernel's limit does not hold for root; hook_users_test.cpp has hooks of a root worker");
    return;
  }
  Stage stage;
  check_bomb_is_ended(stage);
}

TEST_CASE("below its limits a tree is left alone") {
  Stage stage;
  auto command = stage.command({"burn-in-child", "600"});
  command.limits.tree_memory_bytes = 256u << 20;
  command.limits.tree_processes = 10;
  const auto exit = stage.run(command);
  CHECK(exit.clean());
  CHECK(exit.exceeded == process::TreeLimit::none);
}
