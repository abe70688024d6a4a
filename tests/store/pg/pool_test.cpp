// The pool from coroutines on one io_context, against a real server that loses sessions, and goes away.
#include "lib/pg/pool.hpp"
#include "lib/server/embedded_server.hpp"
#include "tests/store/pg/outcome.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/test_database.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <set>
#include <thread>

using holdfast::awaitable;
using holdfast::base::Error;
using holdfast::base::ErrorClass;
using holdfast::pg::Connection;
using holdfast::pg::ConnectionOptions;
using holdfast::pg::Params;
using holdfast::pg::Pool;
using holdfast::pg::Result;
using holdfast::server::EmbeddedServer;
using holdfast::test::outcome_of;
using holdfast::test::TempDir;
using holdfast::test::TestDatabase;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// Runs a coroutine to its end on an io_context of its own; its exception comes out here.
template <class Coroutine>
void run(Coroutine coroutine) {
  asio::io_context context;
  std::exception_ptr failure;
  asio::co_spawn(context, std::move(coroutine), [&](std::exception_ptr reason) { failure = reason; });
  context.run();
  if (failure) std::rethrow_exception(failure);
}

} // namespace

TEST_CASE("work returns its value, or nothing, and resumes on the caller's thread") {
  const TestDatabase database(false);
  Pool pool(database.dsn(), {}, 2);
  run([&]() -> awaitable<void> {
    const auto main_thread = std::this_thread::get_id();
    std::thread::id work_thread;
    const auto sum = co_await pool.run([&](Connection& connection) {
      work_thread = std::this_thread::get_id();
      return connection.call("select 40 + $1::int as n", Params::of(2)).one().integer("n");
    });
    CHECK(sum == 42);
    CHECK(work_thread != main_thread);
    CHECK(std::this_thread::get_id() == main_thread);
    co_await pool.run([](Connection& connection) { connection.script("create table t (id int)"); });
    const Result rows = co_await pool.run([](Connection& connection) { return connection.call("select * from t"); });
    CHECK(rows.empty());
    auto moved = co_await pool.run([](Connection&) { return std::make_unique<int>(7); });
    CHECK(*moved == 7);
  });
}

TEST_CASE("an exception of the work reaches the caller with its type, and the pool goes on") {
  const TestDatabase database(false);
  Pool pool(database.dsn(), {}, 1);
  struct Mine {
    int value;
  };
  run([&]() -> awaitable<void> {
    int caught = 0;
    try {
      co_await pool.run([](Connection&) -> int { throw Mine{7}; });
    } catch (const Mine& mine) {
      caught = mine.value;
    }
    CHECK(caught == 7);
    std::string sqlstate;
    try {
      co_await pool.run([](Connection& connection) { connection.call("select 1 / 0"); });
    } catch (const holdfast::pg::DatabaseError& error) {
      sqlstate = error.sqlstate();
    }
    CHECK(sqlstate == "22012");
    CHECK(co_await pool.run([](Connection& connection) { return connection.call("select 1").size(); }) == 1);
  });
}

TEST_CASE("two hundred pieces of work at once all get their own answer") {
  const TestDatabase database(false);
  asio::io_context context;
  Pool pool(database.dsn(), {}, 4);
  std::set<std::int64_t> answers;
  std::set<int> backends;
  const auto one = [&](int number) -> awaitable<void> {
    int backend = 0;
    const auto answer = co_await pool.run([number, &backend](Connection& connection) {
      backend = connection.backend_pid();
      return connection.call("select $1::int * 3 as n", Params::of(number)).one().integer("n");
    });
    CHECK(answer == 3 * number);
    answers.insert(answer);
    backends.insert(backend);
  };
  for (int number = 0; number < 200; ++number)
    asio::co_spawn(context, one(number), asio::detached);
  context.run();
  CHECK(answers.size() == 200);
  CHECK(backends.size() <= 4);
}

TEST_CASE("what the work captured is destroyed on the caller's thread") {
  const TestDatabase database(false);
  Pool pool(database.dsn(), {}, 1);
  std::thread::id destroyed_on;
  struct Witness {
    std::thread::id* where;
    explicit Witness(std::thread::id* target) : where(target) {}
    ~Witness() { *where = std::this_thread::get_id(); }
  };
  run([&]() -> awaitable<void> {
    auto witness = std::make_shared<Witness>(&destroyed_on);
    std::optional work([witness](Connection&) {});
    auto pending = pool.run(*work); // a copy
    work.reset();
    witness.reset();
    co_await std::move(pending);
  });
  CHECK(destroyed_on == std::this_thread::get_id());
}

TEST_CASE("a session that was killed between two pieces of work is replaced without anybody noticing") {
  const TestDatabase database(false);
  Connection killer(database.dsn());
  Pool pool(database.dsn(), {}, 1);
  run([&]() -> awaitable<void> {
    const auto backend = [&] { return pool.run([](Connection& connection) { return connection.backend_pid(); }); };
    const int first = co_await backend();
    killer.call("select pg_terminate_backend($1::int)", Params::of(first));
    while (!killer.call("select from pg_stat_activity where pid = $1::int", Params::of(first)).empty()) {
    }
    const auto answer = co_await pool.run([](Connection& connection) { return connection.call("select 1").size(); });
    CHECK(answer == 1);
    CHECK(co_await backend() != first);
  });
}

TEST_CASE("a session that is killed under its work gives that work a temporary error, and the next one a new session") {
  const TestDatabase database(false);
  Connection killer(database.dsn());
  Pool pool(database.dsn(), {}, 1);
  run([&]() -> awaitable<void> {
    std::optional<ErrorClass> seen;
    try {
      co_await pool.run([](Connection& connection) {
        connection.call("select pg_terminate_backend(pg_backend_pid())");
        connection.call("select 1");
      });
    } catch (const Error& error) {
      seen = error.error_class();
    }
    CHECK(seen == ErrorClass::temporary);
    CHECK(co_await pool.run([](Connection& connection) { return connection.call("select 1").size(); }) == 1);
  });
}

TEST_CASE("while the server is away work gets a temporary error within its budget, and succeeds once it is back") {
  const TempDir directory;
  const EmbeddedServer::Options options{.durable = false, .program_directories = {}};
  auto server = EmbeddedServer::start(directory.path(), options);
  const std::string dsn = server->dsn();
  Pool pool(dsn, {}, 2, 300ms);
  const auto ask = [&]() -> awaitable<ErrorClass> {
    try {
      co_await pool.run([](Connection& connection) { connection.call("select 1"); });
    } catch (const Error& error) {
      co_return error.error_class();
    }
    co_return ErrorClass{};
  };
  run([&]() -> awaitable<void> {
    CHECK(co_await ask() == ErrorClass{});
    server.reset();
    CHECK(co_await ask() == ErrorClass::temporary);
    CHECK(co_await ask() == ErrorClass::temporary);
    server = EmbeddedServer::start(directory.path(), options);
    CHECK(server->dsn() == dsn);
    CHECK(co_await ask() == ErrorClass{});
  });
}

TEST_CASE("work that waits for a session gets it when the server comes back within the budget") {
  const TempDir directory;
  const EmbeddedServer::Options options{.durable = false, .program_directories = {}};
  auto server = EmbeddedServer::start(directory.path(), options);
  Pool pool(server->dsn(), {}, 1, 60s);
  server.reset();
  std::thread helper([&] { server = EmbeddedServer::start(directory.path(), options); });
  run([&]() -> awaitable<void> {
    CHECK(co_await pool.run([](Connection& connection) { return connection.call("select 1").size(); }) == 1);
  });
  helper.join();
}

TEST_CASE("a wrong database name is told at once, whatever the budget") {
  const TestDatabase database(false);
  Pool pool(database.dsn() + " dbname=nowhere", {}, 1, 24h);
  const auto outcome = outcome_of([&] { run([&]() -> awaitable<void> { co_await pool.run([](Connection&) {}); }); });
  CHECK(outcome.error_class == ErrorClass::configuration);
}

TEST_CASE("a pool that goes away lets running work end and tells the rest") {
  const TestDatabase database(false);
  asio::io_context context;
  std::optional<Pool> pool(std::in_place, database.dsn(), ConnectionOptions{}, 1);
  int finished = 0;
  int dropped = 0;
  const auto one = [&]() -> awaitable<void> {
    try {
      co_await pool->run([](Connection& connection) { connection.call("select pg_sleep(0.2)"); });
      ++finished;
    } catch (const Error& error) {
      CHECK(error.error_class() == ErrorClass::temporary);
      ++dropped;
    }
  };
  for (int i = 0; i < 10; ++i)
    asio::co_spawn(context, one(), asio::detached);
  context.poll(); // all have asked
  pool.reset();
  context.run();
  CHECK(finished + dropped == 10);
  CHECK(dropped >= 8);
}

TEST_CASE("a pool that goes away while it cannot connect does not wait for its budget") {
  asio::io_context context;
  std::optional<Pool> pool(std::in_place, "host=/nonexistent dbname=x", ConnectionOptions{}, 2, 24h);
  std::optional<ErrorClass> seen;
  asio::co_spawn(
      context,
      [&]() -> awaitable<void> {
        try {
          co_await pool->run([](Connection&) {});
        } catch (const Error& error) {
          seen = error.error_class();
        }
      },
      asio::detached);
  context.poll();
  pool.reset();
  context.run();
  CHECK(seen == ErrorClass::temporary);
}
