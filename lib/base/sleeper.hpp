#pragma once
// A sleep that others can end. Main thread only; owned by the coroutine's class, used by one coroutine at a time.

#include "lib/base/async.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <utility>

namespace holdfast::base {

class Sleeper {
public:
  explicit Sleeper(asio::any_io_executor executor) : timer_(std::move(executor)) {}

  // Until wake(), at once if that was called since the last sleep, or until the time is over. True: woken.
  awaitable<bool> sleep(std::chrono::milliseconds at_most) {
    if (!woken_) {
      timer_.expires_after(at_most);
      co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    co_return std::exchange(woken_, false);
  }
  void wake() {
    woken_ = true;
    timer_.cancel();
  }

private:
  asio::steady_timer timer_;
  bool woken_{false};
};

} // namespace holdfast::base
