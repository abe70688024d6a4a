#include "lib/base/backoff.hpp"

#include <algorithm>
#include <cstdint>
#include <random>

namespace holdfast::base {

namespace {

std::chrono::milliseconds between(std::int64_t least, std::int64_t most) {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::chrono::milliseconds(std::uniform_int_distribution<std::int64_t>(least, most)(generator));
}

} // namespace

std::chrono::milliseconds jittered(std::chrono::milliseconds delay) {
  return between(delay.count() * 3 / 4, delay.count() * 5 / 4);
}

std::chrono::milliseconds Backoff::next() {
  const auto step = step_;
  step_ = std::min(step_ * 2, longest_);
  return between(step.count() / 2, step.count());
}

} // namespace holdfast::base
