#pragma once
// Computes the wait before another try. The jitter keeps many workers from retrying in step against a database or host
// that has just come back.

#include <chrono>

namespace holdfast::base {

// Between three and five quarters of `delay`. Any thread.
std::chrono::milliseconds jittered(std::chrono::milliseconds delay);

// Each wait is between half and the whole of a step; the step doubles up to `longest`. A value; one thread at a time.
class Backoff {
public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest), step_(first) {}

  std::chrono::milliseconds next();
  void reset() { step_ = first_; }

private:
  std::chrono::milliseconds first_, longest_, step_;
};

} // namespace holdfast::base
