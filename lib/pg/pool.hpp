#pragma once
// N connections on N threads of their own, for blocking database work from coroutines: `co_await pool.run(fn)` runs
// fn(Connection&) on one of the threads and resumes on the caller's executor, with fn's value or its exception. Owned
// by the service; run() may be called from the main thread only. A broken connection is destroyed and made anew (with
// back-off) before the next piece of work. The destructor lets running work end, drops work not yet started (its
// waiters see Error(temporary)) and joins the threads. The executors of its callers must outlive it.

#include "lib/base/async.hpp"
#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace holdfast::pg {

class Pool {
public:
  // Connects on first use, so a database that is away does not throw here. `connect_budget`: how long a piece of work
  // may wait, from run() on, for a connection that has to be made; at least one attempt is always made. When it is
  // spent, the waiter sees Error(temporary) with the last reason. A wrong password or the like is passed on at once.
  Pool(std::string dsn, ConnectionOptions options, std::size_t threads,
       std::chrono::milliseconds connect_budget = std::chrono::seconds(10));
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs `work(Connection&)` on a pool thread; `work` may return void. If the connection turns out broken *before* work
  // could begin, the pool reconnects for up to `connect_budget`; an exception of `work` itself is passed on, never
  // retried here. `work` and what it captured are destroyed on the caller's executor.
  template <class Work>
  auto run(Work work) -> awaitable<std::invoke_result_t<Work&, Connection&>>;

private:
  struct Impl;
  // Runs `body` on a pool thread with a live connection.
  awaitable<void> perform(std::function<void(Connection&)> body);

  std::unique_ptr<Impl> impl_;
};

template <class Work>
auto Pool::run(Work work) -> awaitable<std::invoke_result_t<Work&, Connection&>> {
  using Value = std::invoke_result_t<Work&, Connection&>;
  // Shared with the thread, not on the coroutine's frame: the frame may be destroyed while the work still runs.
  if constexpr (std::is_void_v<Value>) {
    auto shared = std::make_shared<Work>(std::move(work));
    co_await perform([shared](Connection& connection) { (*shared)(connection); });
  } else {
    struct Shared {
      Work work;
      std::optional<Value> value;
    };
    auto shared = std::make_shared<Shared>(Shared{std::move(work), std::nullopt});
    co_await perform([shared](Connection& connection) { shared->value.emplace(shared->work(connection)); });
    co_return std::move(*shared->value);
  }
}

} // namespace holdfast::pg
