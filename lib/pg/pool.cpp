#include "lib/pg/pool.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/pg/failing_calls.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::pg {
namespace {

using base::Error;
using base::ErrorClass;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

using Body = std::function<void(Connection&)>;

struct Job {
  Body body;
  steady_clock::time_point connect_deadline;
  // Hands the body back to the caller's executor together with the outcome, so that what the body captured is destroyed
  // there and not on a pool thread.
  std::function<void(std::exception_ptr, Body)> complete;
};

std::exception_ptr stopping_error() {
  return std::make_exception_ptr(Error(ErrorClass::temporary, "the database pool is shutting down"));
}

// An idle session has no data to read. Unexpected data may be the server's farewell, whose end of file need not have
// arrived yet, so only an answer shows that the session lives.
bool usable(Connection& connection) {
  if (connection.broken()) return false;
  pollfd socket{connection.descriptor(), POLLIN, 0};
  if (::poll(&socket, 1, 0) == 0) return true;
  try {
    connection.call(std::string(kPing));
  } catch (const Error&) {
    return false;
  }
  return true;
}

} // namespace

struct Pool::Impl {
  Impl(std::string dsn_in, ConnectionOptions options_in, std::size_t count, milliseconds budget)
      : dsn(std::move(dsn_in)), options(std::move(options_in)), connect_budget(budget) {
    if (count == 0) throw Error(ErrorClass::bug, "a database pool needs at least one thread");
    threads.reserve(count);
    try {
      for (std::size_t i = 0; i < count; ++i)
        threads.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error& error) {
      stop();
      throw Error(ErrorClass::system, "cannot start a database thread: " + std::string(error.what()));
    }
  }

  ~Impl() { stop(); }

  void stop() {
    std::deque<Job> dropped;
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      dropped.swap(jobs);
    }
    wake.notify_all();
    halt.notify_all();
    for (auto& job : dropped)
      job.complete(stopping_error(), std::move(job.body));
    for (auto& thread : threads)
      thread.join();
    threads.clear();
  }

  void enqueue(Job job) {
    {
      const std::lock_guard lock(mutex);
      jobs.push_back(std::move(job));
    }
    wake.notify_one();
  }

  void serve(std::size_t index) {
    pthread_setname_np(pthread_self(), ("hf-db-" + std::to_string(index)).c_str());
    std::unique_ptr<Connection> connection;
    while (auto job = next_job()) {
      std::exception_ptr failure;
      try {
        if (!connection || !usable(*connection)) {
          connection.reset();
          connection = connect(job->connect_deadline);
        }
        job->body(*connection);
      } catch (const DatabaseError& error) {
        failure = std::current_exception();
        // The session of a login that was dropped, and made again, remains that of the old one, without its roles.
        if (error.sqlstate() == "42501") connection.reset();
      } catch (...) {
        failure = std::current_exception();
      }
      if (connection && connection->broken()) connection.reset();
      job->complete(std::move(failure), std::move(job->body));
    }
  }

  std::optional<Job> next_job() {
    std::unique_lock lock(mutex);
    wake.wait(lock, [this] { return stopping || !jobs.empty(); });
    if (stopping) return std::nullopt; // stop() has taken what was left
    Job job = std::move(jobs.front());
    jobs.pop_front();
    return job;
  }

  std::unique_ptr<Connection> connect(steady_clock::time_point deadline) {
    base::Backoff backoff(milliseconds(50), milliseconds(2000));
    while (true) {
      try {
        return std::make_unique<Connection>(dsn, options);
      } catch (const Error& error) {
        const bool worth_waiting =
            error.error_class() == ErrorClass::temporary || error.error_class() == ErrorClass::unavailable;
        if (!worth_waiting) throw;
        const auto now = steady_clock::now();
        if (now >= deadline) throw Error(ErrorClass::temporary, error.what(), error.hint());
        spdlog::debug("database pool: {}", error.what());
        pause_until(std::min(deadline, now + backoff.next()));
      }
    }
  }

  void pause_until(steady_clock::time_point until) {
    std::unique_lock lock(mutex);
    if (halt.wait_until(lock, until, [this] { return stopping; })) std::rethrow_exception(stopping_error());
  }

  const std::string dsn;
  const ConnectionOptions options;
  const milliseconds connect_budget;
  std::mutex mutex;
  std::condition_variable wake; // for threads without work
  std::condition_variable halt; // for threads between two attempts to connect
  std::deque<Job> jobs;
  bool stopping{false};
  std::vector<std::thread> threads; // last: they use everything above
};

Pool::Pool(std::string dsn, ConnectionOptions options, std::size_t threads, milliseconds connect_budget)
    : impl_(std::make_unique<Impl>(std::move(dsn), std::move(options), threads, connect_budget)) {}

Pool::~Pool() = default;

awaitable<void> Pool::perform(Body body) {
  const auto initiate = [this](auto handler, Body work) {
    // std::function needs copies, and the handler may only be moved.
    auto resume = std::make_shared<decltype(handler)>(std::move(handler));
    // The guard keeps the caller's io_context running while all it waits for is a database thread.
    auto guard = asio::make_work_guard(asio::get_associated_executor(*resume));
    Job job{std::move(work), steady_clock::now() + impl_->connect_budget,
            [resume, guard](std::exception_ptr failure, Body done) mutable {
              const auto executor = guard.get_executor();
              asio::post(executor,
                         [resume = std::move(resume), done = std::move(done), failure = std::move(failure)]() mutable {
                           done = nullptr;
                           (*resume)(std::move(failure));
                         });
              guard.reset();
            }};
    impl_->enqueue(std::move(job));
  };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(std::exception_ptr)>(initiate, asio::use_awaitable,
                                                                                       std::move(body));
}

} // namespace holdfast::pg
