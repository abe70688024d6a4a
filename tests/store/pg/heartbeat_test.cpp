// The heartbeat thread against a real server: heartbeats, bells, lost sessions, a restart.
#include "lib/pg/heartbeat.hpp"
#include "lib/server/embedded_server.hpp"
#include "tests/store/pg/outcome.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/test_database.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using holdfast::base::Error;
using holdfast::base::ErrorClass;
using holdfast::pg::Connection;
using holdfast::pg::Heartbeat;
using holdfast::pg::Params;
using holdfast::server::EmbeddedServer;
using holdfast::test::TempDir;
using holdfast::test::TestDatabase;
namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

constexpr auto kRarely = 1h; // so that only heartbeat_now() or a new session causes a heartbeat

// The main thread of a service, and what it has been told.
class Owner {
public:
  Heartbeat::Callbacks callbacks() {
    Heartbeat::Callbacks given;
    given.heartbeat = [this](Connection& connection) {
      connection.call("select 1");
      backend = connection.backend_pid();
      ++heartbeats;
    };
    given.on_notify = [this](std::vector<std::string> payloads) {
      if (payloads.empty()) ++empty_batches;
      for (auto& payload : payloads)
        bells.push_back(std::move(payload));
    };
    given.on_lost = [this](const std::string& text) {
      ++lost;
      lost_text = text;
    };
    given.on_restored = [this] { ++restored; };
    given.on_fatal = [this](std::exception_ptr reason) { fatal = std::move(reason); };
    return given;
  }

  // Runs posted callbacks until the condition holds; false after 30 s.
  template <class Condition>
  bool until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      context.restart();
      context.run_one_for(20ms);
    }
    return true;
  }

  asio::any_io_executor executor() { return context.get_executor(); }

  asio::io_context context;
  std::atomic<int> heartbeats{0}; // on the heartbeat thread
  std::atomic<int> backend{0};    // on the heartbeat thread
  std::vector<std::string> bells;
  std::string lost_text;
  std::exception_ptr fatal;
  int empty_batches{0};
  int lost{0};
  int restored{0};

private:
  asio::executor_work_guard<asio::io_context::executor_type> stay_{context.get_executor()};
};

} // namespace

TEST_CASE("it heartbeats at once, then every interval") {
  const TestDatabase database(false);
  Owner owner;
  const Heartbeat heartbeat(database.dsn(), {}, "bell", 20ms, owner.executor(), owner.callbacks());
  CHECK(owner.until([&] { return owner.heartbeats >= 5; }));
  CHECK(owner.lost == 0);
}

TEST_CASE("it heartbeats at once when asked, from any thread") {
  const TestDatabase database(false);
  Owner owner;
  Heartbeat heartbeat(database.dsn(), {}, "bell", kRarely, owner.executor(), owner.callbacks());
  REQUIRE(owner.until([&] { return owner.heartbeats == 1; }));
  heartbeat.heartbeat_now();
  CHECK(owner.until([&] { return owner.heartbeats == 2; }));
  std::thread([&] { heartbeat.heartbeat_now(); }).join();
  CHECK(owner.until([&] { return owner.heartbeats == 3; }));
}

TEST_CASE("bells reach the owner, after one empty batch that makes it look once") {
  const TestDatabase database(false);
  Owner owner;
  const Heartbeat heartbeat(database.dsn(), {}, "bell", kRarely, owner.executor(), owner.callbacks());
  REQUIRE(owner.until([&] { return owner.empty_batches == 1; }));
  CHECK(owner.bells.empty());
  Connection ringer(database.dsn());
  for (int i = 0; i < 20; ++i)
    ringer.call("select pg_notify('bell', $1)", Params::of(std::to_string(i)));
  REQUIRE(owner.until([&] { return owner.bells.size() >= 20; }));
  CHECK(owner.bells.front() == "0");
  CHECK(owner.bells.back() == "19");
  CHECK(owner.empty_batches == 1);
}

TEST_CASE("a bell that rings during a heartbeat is not lost") {
  const TestDatabase database(false);
  Owner owner;
  auto callbacks = owner.callbacks();
  callbacks.heartbeat = [&](Connection& connection) {
    connection.call("select pg_notify('bell', $1)", Params::of("heartbeat " + std::to_string(++owner.heartbeats)));
  };
  Heartbeat heartbeat(database.dsn(), {}, "bell", kRarely, owner.executor(), std::move(callbacks));
  REQUIRE(owner.until([&] { return owner.empty_batches == 1; }));
  heartbeat.heartbeat_now();
  REQUIRE(owner.until([&] { return !owner.bells.empty(); }));
  CHECK(owner.bells.back() == "heartbeat 2");
}

TEST_CASE("it survives the loss of its session: the owner is told, and bells ring again") {
  const TestDatabase database(false);
  Owner owner;
  const Heartbeat heartbeat(database.dsn(), {}, "bell", kRarely, owner.executor(), owner.callbacks());
  REQUIRE(owner.until([&] { return owner.empty_batches == 1; }));
  const int first = owner.backend;
  Connection other(database.dsn());
  other.call("select pg_terminate_backend($1::int)", Params::of(first));
  REQUIRE(owner.until([&] { return owner.restored == 1 && owner.empty_batches == 2; }));
  CHECK(owner.lost == 1);
  CHECK_FALSE(owner.lost_text.empty());
  CHECK(owner.backend != first);
  other.call("select pg_notify('bell', 'again')");
  CHECK(owner.until([&] { return owner.bells == std::vector<std::string>{"again"}; }));
  CHECK(owner.fatal == nullptr);
}

TEST_CASE("it survives a restart of the server") {
  const TempDir directory;
  const EmbeddedServer::Options options{.durable = false, .program_directories = {}};
  auto server = EmbeddedServer::start(directory.path(), options);
  Owner owner;
  const Heartbeat heartbeat(server->dsn(), {}, "bell", 50ms, owner.executor(), owner.callbacks());
  REQUIRE(owner.until([&] { return owner.heartbeats >= 2; }));
  server.reset();
  REQUIRE(owner.until([&] { return owner.lost == 1; }));
  const int before = owner.heartbeats;
  server = EmbeddedServer::start(directory.path(), options);
  REQUIRE(owner.until([&] { return owner.restored == 1; }));
  CHECK(owner.until([&] { return owner.heartbeats >= before + 3; }));
  CHECK(owner.lost == 1);
  CHECK(owner.fatal == nullptr);
}

TEST_CASE("a server that is away at first is waited for") {
  Owner owner;
  const Heartbeat heartbeat("host=/nonexistent dbname=x", {}, "bell", kRarely, owner.executor(), owner.callbacks());
  CHECK(owner.until([&] { return owner.lost == 1; }));
  CHECK(owner.lost_text.find("/nonexistent") != std::string::npos);
  CHECK(owner.heartbeats == 0);
}

TEST_CASE("a temporary error of the heartbeat leads to a new session") {
  const TestDatabase database(false);
  Owner owner;
  auto callbacks = owner.callbacks();
  callbacks.heartbeat = [&](Connection& connection) {
    owner.backend = connection.backend_pid();
    if (++owner.heartbeats == 1) throw Error(ErrorClass::temporary, "not now");
  };
  const Heartbeat heartbeat(database.dsn(), {}, "bell", kRarely, owner.executor(), std::move(callbacks));
  CHECK(owner.until([&] { return owner.restored == 1; }));
  CHECK(owner.heartbeats == 2);
  CHECK(owner.lost_text == "not now");
}

TEST_CASE("any other error of the heartbeat is fatal: the owner gets it, and the heartbeating ends") {
  const TestDatabase database(false);
  Owner owner;
  auto callbacks = owner.callbacks();
  callbacks.heartbeat = [&](Connection&) {
    ++owner.heartbeats;
    throw Error(ErrorClass::lease_lost, "replaced by another incarnation");
  };
  Heartbeat heartbeat(database.dsn(), {}, "bell", 1ms, owner.executor(), std::move(callbacks));
  REQUIRE(owner.until([&] { return owner.fatal != nullptr; }));
  heartbeat.heartbeat_now();
  const auto outcome = holdfast::test::outcome_of([&] { std::rethrow_exception(owner.fatal); });
  CHECK(outcome.error_class == ErrorClass::lease_lost);
  CHECK(outcome.message == "replaced by another incarnation");
  CHECK(owner.heartbeats == 1);
}

TEST_CASE("where LISTEN is impossible it heartbeats all the same") {
  const TestDatabase database(false);
  Owner owner;
  // What a standby or a pooler does is refuse the statement; so does any server for a name that is no text.
  const Heartbeat heartbeat(database.dsn(), {}, "bell\xFF", 20ms, owner.executor(), owner.callbacks());
  CHECK(owner.until([&] { return owner.heartbeats >= 3 && owner.empty_batches == 1; }));
  CHECK(owner.lost == 0);
  CHECK(owner.fatal == nullptr);
}

TEST_CASE("no callback runs once it is gone, even if it was posted before") {
  const TestDatabase database(false);
  Owner owner;
  {
    const Heartbeat heartbeat(database.dsn(), {}, "bell", 1ms, owner.executor(), owner.callbacks());
    // The empty batch is posted right after the first heartbeat; it has not run yet.
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (owner.heartbeats < 3 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }
  REQUIRE(owner.heartbeats >= 3);
  owner.context.restart();
  CHECK(owner.context.poll() >= 1); // it was posted
  CHECK(owner.empty_batches == 0);  // and came to nothing
}
