#pragma once
// Waits of coroutines: a sleep that others can end, and blocking work on a side thread.

#include "lib/base/async.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <type_traits>
#include <utility>

namespace holdfast::base {

// For a coroutine that works in rounds until it is stopped. Main thread only; owned by the coroutine's class, used by
// one coroutine at a time.
class Sleeper {
public:
  static constexpr std::chrono::milliseconds kUntilWoken = std::chrono::hours(24 * 3650);

  explicit Sleeper(const asio::any_io_executor& executor) : timer_(executor) {}

  // Waits until wake(), or until the time is over; returns at once if wake() was called since the last sleep. Returns
  // true if woken.
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
  void stop() {
    stopped_ = true;
    wake();
  }
  bool stopped() const noexcept { return stopped_; }

private:
  asio::steady_timer timer_;
  bool woken_{false}, stopped_{false};
};

// Resumes on the caller's executor with the value of `work` or its exception. `work` captures by reference: the
// coroutine waits for it (and g++ 12 destroys the captures of a lambda written inside a co_await expression twice).
template <class Work>
auto on_thread(asio::thread_pool& pool, Work work) -> awaitable<std::invoke_result_t<Work&>> {
  static_assert(std::is_trivially_destructible_v<Work>);
  co_return co_await asio::co_spawn(
      pool, [](Work call) -> awaitable<std::invoke_result_t<Work&>> { co_return call(); }(std::move(work)),
      asio::use_awaitable);
}

} // namespace holdfast::base
