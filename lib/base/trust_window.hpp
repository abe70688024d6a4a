#pragma once
// Pure arithmetic of self-fencing (design decision 16). A node may act until `sent + lease - margin`, counted from the
// moment it *sent* its last successful beat on its own monotonic clock; past that it must assume that others have taken
// its work. Value type; the owner decides which thread touches it.

#include <chrono>

namespace holdfast::base {

class TrustWindow {
public:
  using Clock = std::chrono::steady_clock;

  TrustWindow(std::chrono::milliseconds lease, std::chrono::milliseconds margin) : window_(lease - margin) {}

  // Records a beat that succeeded, by the time it was sent. An older beat than the last one changes nothing.
  void extend(Clock::time_point sent) {
    if (sent + window_ > until_) until_ = sent + window_;
  }
  Clock::time_point trusted_until() const { return until_; }
  bool trusted(Clock::time_point now) const { return now < until_; }

private:
  std::chrono::milliseconds window_;
  Clock::time_point until_{};
};

} // namespace holdfast::base
