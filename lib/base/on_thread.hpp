#pragma once
// Blocking work of a coroutine, done on a side thread. Stateless.

#include "lib/base/async.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <type_traits>
#include <utility>

namespace holdfast::base {

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
