#pragma once
// What every case of this suite needs: a directory, a launcher, a cookie of its own, and eyes that do not depend on the
// code under test. Owned by the test case; single-threaded. The destructor fails the case if anything of it is still
// alive.

#include "lib/base/file.hpp"
#include "lib/process/launcher.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

inline constexpr std::chrono::seconds kDeadline{60};

// A program built beside the tests.
std::filesystem::path program(std::string_view name);
std::string read_file(const std::filesystem::path& file);
// Processes, zombies excepted, with the text in an environment variable's beginning or in an argument.
std::vector<pid_t> carriers(const std::string& text);
// Children of this process that have ended and were not reaped.
std::vector<pid_t> zombies();
std::size_t open_descriptors();
// Waits until the condition holds; false at the deadline.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds deadline = kDeadline);
// Starts a program directly (no shim), its standard output to the file.
pid_t spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
            const std::filesystem::path& output);
// Reaps a child of ours: its wait status. Kills it and throws at the deadline.
int reap(pid_t pid, std::chrono::milliseconds deadline = kDeadline);

// While it lives, this process adopts orphans, as a worker does. Of other cases' orphans it wants to know nothing.
class Subreaper {
public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
};

class Stage {
public:
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // misbehave WHAT..., with this stage's directory, cookie, "out" and "err".
  process::Command command(std::initializer_list<std::string> arguments) const;
  std::unique_ptr<process::Child> start(const process::Command& command) { return launcher->start(command); }
  std::unique_ptr<process::Child> start(std::initializer_list<std::string> arguments) {
    return start(command(arguments));
  }
  // Runs the loop until the child has ended. Throws at the deadline.
  process::Exit finish(process::Child& child);
  // Whether a wait for the child would have to wait.
  bool running(process::Child& child);
  process::Exit run(const process::Command& command);
  process::Exit run(std::initializer_list<std::string> arguments) { return run(command(arguments)); }
  // Runs the loop until the condition holds; false at the deadline.
  bool pump_until(const std::function<bool()>& condition);
  bool wait_ready() {
    return pump_until([&] { return output().find("ready\n") != std::string::npos; });
  }
  std::string output() const { return read_file(dir / "out"); }
  std::vector<pid_t> survivors() const { return carriers(cookie); }
  // True as soon as there is no survivor; false if there are some at the deadline.
  bool all_gone() const {
    return eventually([this] { return survivors().empty(); });
  }

  TempDir dir;
  std::string cookie;
  asio::io_context io;
  std::unique_ptr<process::Launcher> launcher;
};

// Held while a bomb runs. Its dead count as processes until the kernel has cleared them away, so two at a time would
// take all that a container may have, and the neighbours fail.
[[nodiscard]] base::Fd turn_of_bombs();

// A fork bomb of 4,000 below a limit of 500 processes is killed as a whole, in a cgroup or without one.
void check_bomb_is_ended(Stage& stage, const process::Sandbox& sandbox = {});

} // namespace holdfast::test
