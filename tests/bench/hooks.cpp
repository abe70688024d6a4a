// Starts short programs as fast as it goes: bench-hooks spawn|supervise|sandbox|rules HOOKS AT-ONCE SECONDS
// PROGRAM [ARGUMENT...]. Prints one JSON object.
//
//   spawn      the floor: posix_spawn with two output files, nothing else
//   supervise  lib/process: a shim for each, limits, pidfd, exact usage
//   sandbox    the same, each in a sandbox of level full
//   rules      the same, of level user, with a rule for each directory of /usr, /etc and /var
//   hold       supervises HOOKS programs at once that last, and tells what memory stands behind each
//
// One thread, as in a worker.

#include "lib/process/hook_users.hpp"
#include "lib/process/launcher.hpp"
#include "lib/process/sandbox.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <list>

using namespace holdfast;
using Clock = std::chrono::steady_clock;

namespace {

std::vector<std::string> program;
std::vector<std::filesystem::path> shown; // at level user
std::filesystem::path directory;
process::SandboxLevel level = process::SandboxLevel::none;
int hooks = 0, at_once = 0;
Clock::time_point end;
extern "C" char** environ;

double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

pid_t spawn_one(int number) {
  const std::string name = (directory / std::to_string(number)).string();
  std::vector<char*> arguments;
  for (auto& word : program)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, (name + ".out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, (name + ".err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("posix_spawn failed: " + std::string(strerror(error)));
  return pid;
}

int spawn_all() {
  int started = 0, running = 0, ended = 0;
  while (ended < hooks && (running > 0 || Clock::now() < end)) {
    while (running < at_once && started < hooks && Clock::now() < end) {
      spawn_one(started++);
      ++running;
    }
    int status = 0;
    if (running > 0 && waitpid(-1, &status, 0) > 0) {
      --running;
      ++ended;
    }
  }
  return ended;
}

process::Command command(int number) {
  process::Command one;
  one.argv = program;
  for (char** variable = environ; *variable != nullptr; ++variable)
    one.environment.emplace_back(*variable);
  one.directory = directory;
  one.stdout_path = directory / (std::to_string(number) + ".out");
  one.stderr_path = directory / (std::to_string(number) + ".err");
  if (level != process::SandboxLevel::none) {
    one.sandbox.level = level;
    static const auto user =
        process::HookUsers("50000-59999", process::executable_directory() / "holdfast-shim").lease();
    if (user) one.sandbox.user = user->user();
    one.sandbox.hidden = {"/home", "/run"};
    one.sandbox.emptied = {"/root"};
    one.sandbox.readable = {directory.parent_path()};
    one.sandbox.writable = {directory};
    one.sandbox.temporary = directory;
    if (level == process::SandboxLevel::user) one.sandbox.readable = shown;
    static const auto signals = process::SignalScope::make();
    one.sandbox.signals = signals;
  }
  one.cookie = "HOLDFAST_COOKIE=bench." + std::to_string(getpid());
  return one;
}

class Supervisor {
public:
  Supervisor()
      : launcher_(std::make_unique<process::Launcher>(io.get_executor(),
                                                      process::executable_directory() / "holdfast-shim")) {}

  void start_more() {
    while (static_cast<int>(children_.size()) < at_once && started < hooks && Clock::now() < end) {
      children_.push_back(launcher_->start(command(started++)));
      const auto child = std::prev(children_.end());
      asio::co_spawn(io, (*child)->wait(), [this, child](std::exception_ptr error, process::Exit exit) {
        if (error || !exit.clean()) ++failed;
        ++ended;
        children_.erase(child);
        asio::post(io, [this] { start_more(); });
      });
    }
  }
  void end_all() {
    for (auto& child : children_)
      child->kill();
  }
  std::list<std::unique_ptr<process::Child>>& children() { return children_; }

  asio::io_context io;
  int started{0}, ended{0}, failed{0};

private:
  std::unique_ptr<process::Launcher> launcher_;
  std::list<std::unique_ptr<process::Child>> children_;
};

// Proportional set size, so that pages shared by all shims count once.
double pss_kb(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/smaps_rollup");
  std::string word;
  while (file >> word)
    if (word == "Pss:") {
      double value = 0;
      file >> value;
      return value;
    }
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  try {
    if (count < 6)
      throw std::runtime_error("bench-hooks spawn|supervise|sandbox|rules|hold HOOKS AT-ONCE SECONDS PROGRAM "
                               "[ARGUMENT...]");
    const std::string what = arguments[1];
    if (what == "sandbox") level = process::SandboxLevel::full;
    if (what == "rules") level = process::SandboxLevel::user;
    for (const char* parent : {"/usr", "/etc", "/var"})
      for (const auto& entry : std::filesystem::directory_iterator(parent))
        if (!entry.is_symlink()) shown.push_back(entry.path());
    hooks = std::stoi(arguments[2]);
    at_once = std::stoi(arguments[3]);
    end = Clock::now() + std::chrono::seconds(std::stoi(arguments[4]));
    program.assign(arguments + 5, arguments + count);
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-bench-hooks-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    directory = name;

    nlohmann::json answer;
    const auto from = Clock::now();
    if (what == "spawn") {
      answer["hooks"] = spawn_all();
    } else {
      Supervisor supervisor;
      const double before = pss_kb("self");
      supervisor.start_more();
      if (what == "hold") {
        const auto all_run = [&] {
          for (const auto& child : supervisor.children())
            if (child->pid() == 0) return false;
          return true;
        };
        while (!all_run() && Clock::now() < end)
          supervisor.io.run_one_for(std::chrono::milliseconds(50));
        double shims = 0;
        for (const auto& child : supervisor.children())
          shims += pss_kb(std::to_string(child->shim_pid()));
        answer["shim_pss_kb"] = shims / hooks;
        answer["worker_pss_kb"] = (pss_kb("self") - before) / hooks;
        supervisor.end_all();
      }
      supervisor.io.run();
      answer["hooks"] = supervisor.ended;
      if (what != "hold" && supervisor.failed > 0) throw std::runtime_error("a hook failed");
    }
    answer["seconds"] = std::chrono::duration<double>(Clock::now() - from).count();
    answer["cpu_seconds"] = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
    std::filesystem::remove_all(directory);
    std::cout << answer.dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench-hooks: " << error.what() << '\n';
    std::error_code ignored;
    if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
    return 1;
  }
}
