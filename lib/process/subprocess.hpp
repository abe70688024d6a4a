#pragma once
// A program of our own that this process starts without a shim: a local worker below its guard. It shares our standard
// streams and environment, and has a process group of its own: the owner passes on signals of a terminal, once. One
// thread only. The destructor kills a program that still runs, and reaps it.

#include "lib/base/async.hpp"
#include "lib/process/command.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::process {

class Subprocess {
public:
  // output: the descriptor of its standard output. Throws Error(system) if it cannot be started.
  Subprocess(asio::any_io_executor executor, const std::vector<std::string>& argv, int output = STDOUT_FILENO);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const noexcept;
  // Returns how it ended (code and signal only); none while it runs.
  const std::optional<Exit>& exit() const noexcept;
  // Completes once it has ended. May be awaited by several coroutines, also after this object is destroyed.
  awaitable<Exit> wait();
  void signal(int number);

private:
  struct State;
  std::shared_ptr<State> state_;
};

// Runs a program that is no hook, without a shim, and waits for it: the server programs of PostgreSQL. Blocking; any
// thread, which must live as long as the program.
struct Program {
  std::vector<std::string> argv;        // argv[0] is the path to execute; no PATH search, no shell
  std::vector<std::string> environment; // the whole environment, "NAME=value" each
  int input{-1};                        // descriptor for stdin; -1: /dev/null
  int output{-1};                       // descriptor for stdout and stderr; -1: /dev/null
};

// Runs a program to its end, in a session of its own. Returns the exit status (128 + signal if it was killed); nothing
// if it took longer than `limit` and was killed for that. Throws Error(unavailable) if it cannot be executed.
std::optional<int> run_to_end(const Program& program, std::chrono::milliseconds limit);

} // namespace holdfast::process
