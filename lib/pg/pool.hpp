#pragma once
// N connections on N threads of their own, for blocking database work from coroutines: `co_await pool.run(fn)` runs
// fn(Connection&) on one of the threads and resumes on the caller's executor, with fn's value or its exception. Owned
// by the service; run() may be called from the main thread only. A broken connection is destroyed and opened again
// (with back-off) before the next piece of work. The destructor lets running work end, drops work not yet started (its
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
  // Connects on first use, so an unreachable database does not throw here. `connect_budget`: how long a piece of work
  // may wait, from run() on, for a connection that has to be made; at least one attempt is always made. When it is
  // spent, the waiter gets Error(temporary) with the last reason. A wrong password or the like is passed on at once.
  Pool(std::string dsn, ConnectionOptions options, std::size_t threads,
       std::chrono::milliseconds connect_budget = std::chrono::seconds(10));
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs `work(Connection&)` on a pool thread; `work` may return void. If the connection turns out broken *before* work
  // could begin, the pool reconnects for up to `connect_budget`; an exception of `work` itself is passed on, never
  // retried here. `work` and what it captured are destroyed on the caller's executor.
  //
  // Let the lambda capture by reference: the coroutine waits for it, and what it refers to lives as long. A lambda that
  // captures a string or the like by value must have a name and is copied:
  //     const auto work = [text](Connection& connection) { ... };
  //     co_await pool.run(work);
  // because g++ 12 destroys the captures of a lambda written inside a co_await expression twice.
  template <class Work>
  auto run(Work&& work) -> awaitable<std::invoke_result_t<std::decay_t<Work>&, Connection&>>;

private:
  struct Impl;
  // Runs `body` on a pool thread with a live connection.
  awaitable<void> perform(std::function<void(Connection&)> body);
  template <class Value>
  static awaitable<Value> fetch(awaitable<void> done, std::shared_ptr<std::optional<Value>> value);

  std::unique_ptr<Impl> impl_;
};

// State shared by coroutine and thread. It is not on the coroutine's frame, which may be destroyed while the work runs.
template <class Work>
auto Pool::run(Work&& work) -> awaitable<std::invoke_result_t<std::decay_t<Work>&, Connection&>> {
  using Owned = std::decay_t<Work>;
  using Value = std::invoke_result_t<Owned&, Connection&>;
  static_assert(std::is_lvalue_reference_v<Work> || std::is_trivially_destructible_v<Owned>,
                "capture by reference, or give the lambda a name and pass that: see Pool::run");
  auto shared = std::make_shared<Owned>(std::forward<Work>(work));
  if constexpr (std::is_void_v<Value>) {
    return perform([shared = std::move(shared)](Connection& connection) { (*shared)(connection); });
  } else {
    auto value = std::make_shared<std::optional<Value>>();
    auto done =
        perform([shared = std::move(shared), value](Connection& connection) { value->emplace((*shared)(connection)); });
    return fetch(std::move(done), std::move(value));
  }
}

template <class Value>
awaitable<Value> Pool::fetch(awaitable<void> done, std::shared_ptr<std::optional<Value>> value) {
  co_await std::move(done);
  co_return std::move(**value);
}

} // namespace holdfast::pg
