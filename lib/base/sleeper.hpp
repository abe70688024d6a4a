#pragma once
// A sleep that others can end, for a coroutine that works in rounds until it is stopped. Main thread only; owned by the
// coroutine's class, used by one coroutine at a time.

#include "lib/base/async.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <utility>

namespace holdfast::base {

class Sleeper {
public:
  static constexpr std::chrono::milliseconds kUntilWoken = std::chrono::hours(24 * 3650);

  explicit Sleeper(asio::any_io_executor executor) : timer_(std::move(executor)) {}

  // Until wake(), at once if that was called since the last sleep, or until the time is over. True: woken.
  awaitable<bool> sleep(std::chrono::milliseconds at_most) {
    if (!woken_ && !stopped_) {
      timer_.expires_after(at_most);
      co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    co_return std::exchange(woken_, false);
  }
  void wake() {
    woken_ = true;
    timer_.cancel();
  }
  // Wakes it for good.
  void stop() {
    stopped_ = true;
    wake();
  }
  bool stopped() const noexcept { return stopped_; }

private:
  asio::steady_timer timer_;
  bool woken_{false}, stopped_{false};
};

} // namespace holdfast::base
