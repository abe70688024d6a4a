#pragma once
// A program of our own that this process starts without a shim: a local worker below its guard. It shares our standard
// streams and environment, and has a process group of its own: the owner passes on signals of a terminal, once. Main
// thread only. The destructor kills a program that still runs, and reaps it.

#include "lib/base/async.hpp"
#include "lib/process/command.hpp"

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace holdfast::process {

class Subprocess {
public:
  // Throws Error(system) if it cannot be started.
  Subprocess(asio::any_io_executor executor, const std::vector<std::string>& argv);
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

} // namespace holdfast::process
