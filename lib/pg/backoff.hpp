#pragma once
// Exponential back-off with jitter: each pause is between half and the whole of a step, and the step doubles up to a
// limit. The jitter keeps a fleet from knocking in step on a database that just came back. Private to lib/pg; a value,
// one thread.

#include <algorithm>
#include <chrono>
#include <random>

namespace holdfast::pg {

class Backoff {
public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds limit)
      : first_(first), limit_(limit), step_(first), random_(std::random_device{}()) {}

  std::chrono::milliseconds next() {
    const auto step = step_.count();
    step_ = std::min(step_ * 2, limit_);
    return std::chrono::milliseconds(std::uniform_int_distribution<decltype(step_.count())>(step / 2, step)(random_));
  }
  void reset() { step_ = first_; }

private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds step_;
  std::minstd_rand random_;
};

} // namespace holdfast::pg
