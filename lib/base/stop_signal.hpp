#pragma once
// A one-way latch for the urgency of the exit: drain < stop < kill. It only gets stronger. Owned by the service's main;
// touched by the main thread alone. It must outlive the coroutines that wait for it: they read it as they resume.

#include "lib/base/async.hpp"

#include <boost/asio/steady_timer.hpp>

#include <string>

namespace holdfast::base {

enum class Strength { none, drain, stop, kill };

class StopSignal {
public:
  explicit StopSignal(const asio::any_io_executor& executor);

  // Raises to `strength` unless it is there already; remembers the first reason given for each strength.
  void raise(Strength strength, const std::string& reason);
  Strength strength() const noexcept { return strength_; }
  const std::string& reason() const noexcept { return reason_; } // of the strength it has now

  // Completes when the strength is at least `strength`; at once if it is.
  awaitable<void> reached(Strength strength);

private:
  Strength strength_{Strength::none};
  std::string reason_;
  asio::steady_timer changed_; // never expires; cancel() wakes the waiters
};

} // namespace holdfast::base
