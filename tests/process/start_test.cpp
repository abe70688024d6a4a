// Starting a command and learning how it ended.

#include "lib/base/error.hpp"
#include "tests/process/stage.hpp"

#include <boost/asio/co_spawn.hpp>
#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// A descriptor and a signal setting of this process that a hook must not inherit.
class Untidy {
public:
  Untidy() : fd_(::dup(1)) {
    ::signal(SIGUSR1, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~Untidy() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::signal(SIGUSR1, SIG_DFL);
    ::close(fd_);
  }
  Untidy(const Untidy&) = delete;
  Untidy& operator=(const Untidy&) = delete;

private:
  int fd_;
  sigset_t before_;
};

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    result.push_back(line);
  return result;
}

} // namespace

TEST_CASE("an exit status is reported as it is") {
  for (const int status : {0, 1, 3, 10, 127, 255}) {
    Stage stage;
    const auto exit = stage.run({"exit", std::to_string(status)});
    CHECK(exit.code == status);
    CHECK(exit.signal == 0);
    CHECK(exit.start_errno == 0);
    CHECK(exit.clean() == (status == 0));
    CHECK_FALSE(exit.terminated);
    CHECK_FALSE(exit.killed);
    CHECK(exit.leftovers == 0);
    CHECK(exit.describe() == "exit " + std::to_string(status));
  }
}

TEST_CASE("a death by signal is not an exit status") {
  for (const auto& [signal, text] : {std::pair{SIGKILL, "killed by SIGKILL"}, std::pair{SIGABRT, "killed by SIGABRT"},
                                     std::pair{SIGTERM, "killed by SIGTERM"}}) {
    Stage stage;
    const auto exit = stage.run({"die", std::to_string(signal)});
    CHECK(exit.signal == signal);
    CHECK(exit.code == -1);
    CHECK_FALSE(exit.clean());
    CHECK_FALSE(exit.terminated);
    CHECK(exit.describe() == text);
  }
}

TEST_CASE("a program that does not exist is an outcome, not an exception") {
  Stage stage;
  auto command = stage.command({});
  command.argv = {(stage.dir / "missing").string()};
  const auto exit = stage.run(command);
  CHECK(exit.start_errno == ENOENT);
  CHECK(exit.failed_step == process::StartStep::execute);
  CHECK_FALSE(exit.clean());
  CHECK(exit.describe() == "cannot execute: No such file or directory");
}

TEST_CASE("a file without the executable bit cannot be executed") {
  Stage stage;
  auto command = stage.command({});
  command.argv = {stage.dir.write("plain", "#!/bin/sh\nexit 0\n").string()};
  const auto exit = stage.run(command);
  CHECK(exit.start_errno == EACCES);
  CHECK(exit.describe() == "cannot execute: Permission denied");
}

TEST_CASE("a missing working directory is told apart from a missing program") {
  Stage stage;
  auto command = stage.command({"exit", "0"});
  command.directory = stage.dir / "nowhere";
  const auto exit = stage.run(command);
  CHECK(exit.start_errno == ENOENT);
  CHECK(exit.failed_step == process::StartStep::directory);
  CHECK(exit.describe() == "cannot enter its directory: No such file or directory");
}

TEST_CASE("arguments too long for the kernel are the command's failure") {
  Stage stage;
  const auto exit = stage.run({"say", std::string(1 << 20, 'x')});
  CHECK(exit.start_errno == E2BIG);
  CHECK_FALSE(exit.clean());
}

TEST_CASE("an argument with a zero byte is refused rather than cut short") {
  Stage stage;
  const auto exit = stage.run({"say", std::string("a\0b", 3)});
  CHECK(exit.start_errno == EINVAL);
  CHECK(stage.output().empty());
}

TEST_CASE("an output file that cannot be created is an error that names it") {
  Stage stage;
  auto command = stage.command({"exit", "0"});
  command.stdout_path = stage.dir / "no" / "such" / "directory";
  try {
    (void)stage.start(command);
    FAIL("no error");
  } catch (const base::Error& error) {
    CHECK(error.error_class() == base::ErrorClass::cannot_create);
    CHECK(std::string(error.what()).find(command.stdout_path.string()) != std::string::npos);
  }
}

TEST_CASE("a launcher without its shim is an error at once") {
  asio::io_context io;
  try {
    (void)process::Launcher(io.get_executor(), "/nonexistent/holdfast-shim");
    FAIL("no error");
  } catch (const base::Error& error) {
    CHECK(error.error_class() == base::ErrorClass::unavailable);
    CHECK(std::string(error.what()).find("/nonexistent/holdfast-shim") != std::string::npos);
    CHECK_FALSE(error.hint().empty());
  }
}

TEST_CASE("output is appended to files that exist and goes to separate files") {
  Stage stage;
  stage.dir.write("out", "before\n");
  auto command = stage.command({});
  command.argv = {"/bin/sh", "-c", "echo one; echo two >&2"};
  CHECK(stage.run(command).clean());
  CHECK(stage.run(command).clean());
  CHECK(stage.output() == "before\none\none\n");
  CHECK(read_file(stage.dir / "err") == "two\ntwo\n");
}

TEST_CASE("the environment is exactly the one given, plus the cookie") {
  Stage stage;
  auto command = stage.command({"environment"});
  command.environment = {"A=1", "B=two words", "EMPTY=", "HOLDFAST_COOKIE=stale"};
  CHECK(stage.run(command).clean());
  auto seen = lines(stage.output());
  std::ranges::sort(seen);
  std::vector<std::string> expected{"A=1", "B=two words", "EMPTY=", stage.cookie};
  std::ranges::sort(expected);
  CHECK(seen == expected);
}

TEST_CASE("a hook starts in its directory") {
  Stage stage;
  CHECK(stage.run({"directory"}).clean());
  CHECK(stage.output() == std::filesystem::canonical(stage.dir.path()).string() + "\n");
}

TEST_CASE("a hook sees three descriptors, default signals and a session of its own") {
  Stage stage;
  Untidy untidy;
  CHECK(stage.run({"surroundings"}).clean());
  CHECK(stage.output() == "descriptors: 0 1 2\nblocked:\nhandled:\nleads its session: yes\nleads its group: yes\n"
                          "death signal: 9\ninput: /dev/null\n");
}

TEST_CASE("the process is identified while it runs") {
  Stage stage;
  const auto child = stage.start({"stay"});
  REQUIRE(stage.wait_ready());
  REQUIRE(stage.pump_until([&] { return child->pid() != 0; }));
  CHECK(stage.running(*child));
  CHECK(child->shim_pid() > 0);
  CHECK(child->shim_pid() != child->pid());
  CHECK(child->start_ticks() == process::process_start_ticks(child->pid()));
  CHECK(process::process_alive(child->pid(), child->start_ticks()));
  const pid_t pid = child->pid();
  child->kill();
  (void)stage.finish(*child);
  CHECK_FALSE(stage.running(*child));
  CHECK_FALSE(process::process_alive(pid, child->start_ticks()));
}

TEST_CASE("several waiters get the same outcome, early and late ones") {
  Stage stage;
  const auto child = stage.start({"exit", "5"});
  std::vector<int> codes;
  for (int i = 0; i < 3; ++i)
    asio::co_spawn(stage.io, child->wait(),
                   [&](std::exception_ptr, process::Exit exit) { codes.push_back(exit.code); });
  CHECK(stage.finish(*child).code == 5);
  CHECK(stage.pump_until([&] { return codes.size() == 3; }));
  CHECK(codes == std::vector<int>{5, 5, 5});
  CHECK(stage.finish(*child).code == 5);
}

TEST_CASE("usage covers the hook and what it started") {
  {
    Stage stage;
    const auto exit = stage.run({"burn", "200"});
    CHECK(exit.usage.user_time + exit.usage.system_time >= std::chrono::milliseconds(190));
    CHECK(exit.wall_time >= std::chrono::milliseconds(190));
  }
  {
    Stage stage;
    const auto exit = stage.run({"burn-in-child", "200"});
    CHECK(exit.usage.user_time + exit.usage.system_time >= std::chrono::milliseconds(190));
  }
}

TEST_CASE("peak memory is the hook's own, not that of a large parent") {
  std::vector<char> ballast(256u << 20, 'x'); // the kernel would carry this peak into a direct child
  Stage small, large;
  CHECK(small.run({"exit", "0"}).usage.peak_memory_bytes < 64u << 20);
  CHECK(large.run({"eat", "100"}).usage.peak_memory_bytes >= 100u << 20);
  CHECK(ballast[ballast.size() / 2] == 'x');
}
