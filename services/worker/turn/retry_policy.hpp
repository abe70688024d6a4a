#pragma once
// Database calls of a worker's coroutines: on the pool, repeated while the error is temporary and the worker is still
// trusted. Main thread only; owned by Worker, outlives its jobs.

#include "lib/base/async.hpp"
#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/trust_window.hpp"
#include "lib/pg/pool.hpp"
#include "lib/store/call.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <string>
#include <type_traits>

namespace holdfast::worker {

// A call is a function of a connection and of the arguments behind it, or the name of an SQL function (store::call).
// Arguments are kept by reference: await the call in the statement that makes it (see pg::Pool::run).
class RetryPolicy {
public:
  RetryPolicy(pg::Pool& pool, const base::TrustWindow& trust) : pool_(pool), trust_(trust) {}

  // For calls that may be repeated. Throws what the call throws unless that is temporary; Error(lease_lost) once the
  // worker may no longer act.
  template <class Call, class... Arguments>
  auto repeat(Call call, const Arguments&... arguments) {
    return run_until_answered(bound(call, arguments...));
  }

  // Calls once: for claims, whose answer may be lost (the next heartbeat mends that).
  template <class Call, class... Arguments>
  auto once(Call call, const Arguments&... arguments) {
    return pool_.run(bound(call, arguments...));
  }

  // The parts of repeat(), for callers that build each try again.
  static base::Backoff backoff() { return {std::chrono::milliseconds(50), std::chrono::milliseconds(2000)}; }
  void require_trust(const base::Error& error) const { // throws Error(lease_lost)
    if (!trust_.trusted(base::TrustWindow::Clock::now()))
      throw base::Error(base::ErrorClass::lease_lost, std::string("gave up on the database: ") + error.what());
  }
  static awaitable<void> pause(base::Backoff& backoff) {
    asio::steady_timer timer(co_await asio::this_coro::executor, backoff.next());
    co_await timer.async_wait(asio::use_awaitable);
  }

private:
  template <class Call, class... Arguments>
  static auto bound(Call call, const Arguments&... arguments) {
    static_assert(std::is_trivially_destructible_v<Call>);
    return [call, &arguments...](pg::Connection& connection) {
      if constexpr (std::is_convertible_v<Call, const char*>)
        return store::call(connection, call, arguments...);
      else
        return call(connection, arguments...);
    };
  }

  template <class Call>
  auto run_until_answered(Call call) -> awaitable<std::invoke_result_t<Call&, pg::Connection&>> {
    auto backoff = RetryPolicy::backoff();
    for (;;) {
      try {
        co_return co_await pool_.run(call);
      } catch (const base::Error& error) {
        if (error.error_class() != base::ErrorClass::temporary) throw;
        require_trust(error);
      }
      co_await pause(backoff);
    }
  }

  pg::Pool& pool_;
  const base::TrustWindow& trust_;
};

} // namespace holdfast::worker
