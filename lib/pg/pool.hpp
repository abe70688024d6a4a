#pragma once
// N connections on N threads of their own, for blocking database work from coroutines: `co_await pool.run(fn)` runs
// fn(Connection&) on one of the threads and resumes on the caller's executor, with fn's value or its exception. Owned by
// the service; run() may be called from the main thread only. A broken connection is destroyed and made anew (with
// back-off) before the next piece of work. The destructor lets running work end, drops work not yet started (its waiters
// see Error(temporary)) and joins the threads.

#include "lib/base/async.hpp"
#include "lib/pg/connection.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace holdfast::pg {

class Pool {
public:
  Pool(std::string dsn, ConnectionOptions options, std::size_t threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs `work(Connection&)` on a pool thread. If the connection turns out broken *before* work could begin, the pool
  // reconnects for up to `connect_budget`; an exception of `work` itself is passed on, never retried here.
  template <class Work> auto run(Work work) -> awaitable<std::invoke_result_t<Work, Connection&>>;

private:
  struct Impl;
  // Queues `job`; it is called on a pool thread with a live connection, or with nullptr and the reason there is none.
  void enqueue(std::function<void(Connection*, std::exception_ptr)> job);
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::pg


