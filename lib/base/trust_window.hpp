#pragma once
// Pure arithmetic of self-fencing. A worker may act until `sent + lease - margin`, counted from the
// moment it *sent* its last successful heartbeat on its own clock; past that it must assume that others have taken its
// work. Owned by Worker; its main thread extends it, any thread may read it.

#include <time.h>

#include <atomic>
#include <chrono>

namespace holdfast::base {

class TrustWindow {
public:
  // Goes on while the machine sleeps, unlike std::chrono::steady_clock: a laptop that wakes up has lost its leases.
  struct Clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept {
      timespec time{};
      ::clock_gettime(CLOCK_BOOTTIME, &time);
      return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
    }
  };

  TrustWindow(std::chrono::milliseconds lease, std::chrono::milliseconds margin) : window_(lease - margin) {}

  // Records a heartbeat that succeeded, by the time it was sent. An older heartbeat than the last one changes nothing.
  void extend(Clock::time_point sent) {
    if (sent + window_ > trusted_until()) until_ = (sent + window_).time_since_epoch().count();
  }
  Clock::time_point trusted_until() const { return Clock::time_point(Clock::duration(until_)); }
  bool trusted(Clock::time_point now) const { return now < trusted_until(); }

private:
  const std::chrono::milliseconds window_;
  std::atomic<Clock::rep> until_{0};
};

} // namespace holdfast::base
