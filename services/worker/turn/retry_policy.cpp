#include "services/worker/turn/retry_policy.hpp"

#include <string>

namespace holdfast::worker {

void RetryPolicy::require_trust(const base::Error& error) const {
  if (!trust_.trusted(base::TrustWindow::Clock::now()))
    throw base::Error(base::ErrorClass::lease_lost, std::string("gave up on the database: ") + error.what());
}

awaitable<void> RetryPolicy::pause(base::Backoff& backoff) {
  asio::steady_timer timer(co_await asio::this_coro::executor, backoff.next());
  co_await timer.async_wait(asio::use_awaitable);
}

} // namespace holdfast::worker
