#pragma once
// Progress of a hook: it printed, wrote below its directory, or used a processor. Owned by one HookRun; main thread
// only.

#include "lib/hooks/directory_meter.hpp"

#include <chrono>
#include <cstdint>

namespace holdfast::hooks {

class Progress {
public:
  using Clock = std::chrono::steady_clock;

  void start(Clock::time_point now) { looked_ = since_ = now; }

  // Records the result of a check that began at this time.
  void look(Clock::time_point began, const DirectoryState& files, std::uint64_t printed,
            std::chrono::microseconds cpu) {
    const bool busy = (cpu - cpu_) * kBusyShare > began - looked_; // less is what waiting costs
    if (busy || files != files_ || printed != printed_) since_ = began;
    files_ = files;
    printed_ = printed;
    cpu_ = cpu;
    looked_ = began;
  }

  Clock::time_point since() const noexcept { return since_; }
  // Returns the time from the last sign of progress to the beginning of the last check.
  Clock::duration stall() const noexcept { return looked_ - since_; }

private:
  static constexpr int kBusyShare = 50; // one part in so many of a processor's time

  DirectoryState files_;
  std::uint64_t printed_{0};
  std::chrono::microseconds cpu_{0};
  Clock::time_point looked_{}, since_{};
};

} // namespace holdfast::hooks
