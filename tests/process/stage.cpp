#include "tests/process/stage.hpp"

#include "lib/base/file.hpp"
#include "lib/base/uuid.hpp"

#include <boost/asio/co_spawn.hpp>
#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace holdfast::test {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStep{2}; // between two looks at a condition

char state_of(const std::string& stat) {
  const auto close = stat.rfind(')');
  return close == std::string::npos || close + 2 >= stat.size() ? '?' : stat[close + 2];
}

std::vector<std::filesystem::path> process_directories() {
  std::vector<std::filesystem::path> directories;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().find_first_not_of("0123456789") == std::string::npos)
      directories.push_back(at->path());
  return directories;
}

// True if a zero-terminated string in the file starts with the text.
bool lists(const std::filesystem::path& file, const std::string& text) {
  const std::string content = read_file(file);
  for (std::size_t at = 0; at < content.size(); at = content.find('\0', at) + 1) {
    if (content.compare(at, text.size(), text) == 0) return true;
    if (content.find('\0', at) == std::string::npos) break;
  }
  return false;
}

} // namespace

std::filesystem::path program(std::string_view name) { return process::executable_directory() / name; }

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf(); // as iterators it would throw when a process ends while its /proc file is read
  return std::move(content).str();
}

std::vector<pid_t> carriers(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& directory : process_directories()) {
    const char state = state_of(read_file(directory / "stat"));
    if (state == 'Z' || state == 'X' || state == '?') continue;
    if (lists(directory / "environ", text) || lists(directory / "cmdline", text))
      found.push_back(static_cast<pid_t>(std::stol(directory.filename().string())));
  }
  std::erase(found, getpid());
  return found;
}

std::vector<pid_t> zombies() {
  std::vector<pid_t> found;
  for (const auto& directory : process_directories()) {
    const std::string stat = read_file(directory / "stat");
    if (state_of(stat) != 'Z') continue;
    if (std::stol(stat.substr(stat.rfind(')') + 4)) == getpid())
      found.push_back(static_cast<pid_t>(std::stol(directory.filename().string())));
  }
  return found;
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  for (const auto end = Clock::now() + deadline; Clock::now() < end; std::this_thread::sleep_for(kStep))
    if (condition()) return true;
  return condition();
}

pid_t spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
            const std::filesystem::path& output) {
  const auto pointers = [](const std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (const auto& string : strings)
      result.push_back(const_cast<char*>(string.c_str()));
    result.push_back(nullptr);
    return result;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments[0].c_str(), &actions, nullptr, pointers(arguments).data(),
                                pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  return pid;
}

int reap(pid_t pid, std::chrono::milliseconds deadline) {
  int status = 0;
  if (eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; }, deadline)) return status;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  throw std::runtime_error("process " + std::to_string(pid) + " did not end in time");
}

Subreaper::Subreaper() { process::become_subreaper(); }

Subreaper::~Subreaper() { prctl(PR_SET_CHILD_SUBREAPER, 0); }

Stage::Stage()
    : cookie("HOLDFAST_COOKIE=test." + base::random_hex32()),
      launcher(std::make_unique<process::Launcher>(
          io.get_executor(), program("holdfast-shim"),
          std::getenv("HOLDFAST_TEST_CGROUPS") != nullptr ? process::Cgroups::find() : process::Cgroups())) {}

Stage::~Stage() {
  // A reaped process is gone at once; a survivor stays one for much longer than this.
  CHECK(eventually([&] { return survivors().empty(); }, std::chrono::seconds(5)));
  for (const pid_t pid : survivors())
    kill(pid, SIGKILL);
}

process::Command Stage::command(std::initializer_list<std::string> arguments) const {
  process::Command command;
  command.argv = {program("misbehave").string()};
  command.argv.insert(command.argv.end(), arguments);
  command.environment = {"PATH=/usr/bin:/bin"};
  command.directory = dir.path();
  command.stdout_path = dir / "out";
  command.stderr_path = dir / "err";
  command.cookie = cookie;
  return command;
}

process::Exit Stage::finish(process::Child& child) {
  std::optional<process::Exit> exit;
  asio::co_spawn(io, child.wait(), [&](std::exception_ptr failure, process::Exit outcome) {
    if (!failure) exit = std::move(outcome);
  });
  if (!pump_until([&] { return exit.has_value(); })) throw std::runtime_error("the child did not end in time");
  return *exit;
}

bool Stage::running(process::Child& child) {
  const auto ended = std::make_shared<bool>(false);
  asio::co_spawn(io, child.wait(), [ended](std::exception_ptr, const process::Exit&) { *ended = true; });
  io.restart();
  io.poll();
  return !*ended;
}

process::Exit Stage::run(const process::Command& command) {
  const auto child = start(command);
  return finish(*child);
}

bool Stage::pump_until(const std::function<bool()>& condition) {
  for (const auto end = Clock::now() + kDeadline; Clock::now() < end;) {
    if (condition()) return true;
    io.restart();
    if (io.run_one_for(kStep) == 0) std::this_thread::sleep_for(kStep);
  }
  return condition();
}

void check_bomb_is_ended(Stage& stage, const process::Sandbox& sandbox) {
  auto command = stage.command({"bomb", "4000"}); // it stops there itself, if we do not stop it
  // One bomb at a time. Its dead count as processes until the kernel has cleared them away, so two would take all that
  // a container may have, and the neighbours fail.
  const base::Fd turn(::open(program("misbehave").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::flock(turn.get(), LOCK_EX) == 0);
  command.limits.tree_processes = 500; // as hooks have it
  command.sandbox = sandbox;
  const auto exit = stage.run(command);
  CHECK(exit.exceeded == process::TreeLimit::processes);
  CHECK(exit.signal == SIGKILL);
  CHECK(stage.survivors().empty());
}

} // namespace holdfast::test
