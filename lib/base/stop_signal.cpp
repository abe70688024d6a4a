#include "lib/base/stop_signal.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace holdfast::base {

StopSignal::StopSignal(const asio::any_io_executor& executor)
    : changed_(executor, asio::steady_timer::time_point::max()) {}

void StopSignal::raise(Strength strength, const std::string& reason) {
  if (strength <= strength_) return;
  strength_ = strength;
  reason_ = reason;
  changed_.cancel();
}

awaitable<void> StopSignal::reached(Strength strength) {
  // The wait always ends with operation_aborted: by raise(), or because the waiting coroutine itself was cancelled; in
  // the second case the next co_await throws.
  while (strength_ < strength)
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
}

} // namespace holdfast::base
