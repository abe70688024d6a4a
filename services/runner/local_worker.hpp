#pragma once
// One worker program that this process has started. Owned by the spawner; main thread only. It shares our standard
// output and error, and is not in our process group: what a terminal sends, we pass on ourselves, once. The destructor
// kills and reaps it.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace holdfast::runner {

class LocalWorker {
public:
  // Throws Error(system) if it cannot be started.
  explicit LocalWorker(const std::vector<std::string>& command);
  ~LocalWorker();
  LocalWorker(const LocalWorker&) = delete;
  LocalWorker& operator=(const LocalWorker&) = delete;

  pid_t pid() const noexcept { return pid_; }
  // True once it has ended; never waits.
  bool ended();
  // How: "exit 3", "killed by signal 9". Empty while it runs.
  const std::string& how() const noexcept { return how_; }
  bool failed() const noexcept { return failed_; } // not by exit 0
  void signal(int number);

private:
  pid_t pid_{0};
  bool ended_{false}, failed_{false};
  std::string how_;
};

} // namespace holdfast::runner
