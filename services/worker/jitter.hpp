#pragma once
// Delays that differ between workers, so that they do not poll or retry in step. Main thread only.

#include <chrono>
#include <random>

namespace holdfast::worker {

// Between three and five quarters of it.
inline std::chrono::milliseconds jittered(std::chrono::milliseconds delay) {
  static std::mt19937 generator{std::random_device{}()};
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(delay.count() * 3 / 4, delay.count() * 5 / 4)(generator));
}

} // namespace holdfast::worker
