// One session against a real server: transactions, prepared statements, notifications, and every class of error.
#include "lib/pg/connection.hpp"
#include "tests/store/pg/outcome.hpp"
#include "tests/support/test_database.hpp"

#include <doctest/doctest.h>

#include <poll.h>

#include <atomic>
#include <thread>

using holdfast::base::Error;
using holdfast::base::ErrorClass;
using holdfast::pg::Connection;
using holdfast::pg::ConnectionOptions;
using holdfast::pg::Params;
using holdfast::pg::Transaction;
using holdfast::test::outcome_of;
using holdfast::test::TestDatabase;
using namespace std::chrono_literals;

namespace {

void terminate(Connection& by, int backend_pid) {
  by.call("select pg_terminate_backend($1::int)", Params::of(backend_pid));
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (by.call("select from pg_stat_activity where pid = $1::int", Params::of(backend_pid)).size() > 0) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
}

// Blocks until the session has an ungranted lock.
void wait_until_blocked(Connection& observer, int backend_pid) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (observer.call("select from pg_locks where pid = $1::int and not granted", Params::of(backend_pid)).empty()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
}

} // namespace

TEST_CASE("a session has our settings, and the owner's word wins where both speak") {
  const TestDatabase database(false);
  ConnectionOptions options;
  options.application_name = "settings test";
  options.statement_timeout = 1234ms;
  options.lock_timeout = 567ms;
  const auto setting = [](Connection& connection, const char* name) {
    return connection.call("select current_setting($1) as v", Params::of(name)).one().text("v");
  };
  Connection ours(database.dsn(), options);
  CHECK(setting(ours, "application_name") == "holdfast settings test");
  CHECK(setting(ours, "statement_timeout") == "1234ms");
  CHECK(setting(ours, "lock_timeout") == "567ms");
  CHECK(setting(ours, "idle_in_transaction_session_timeout") == "1min");
  CHECK(setting(ours, "timezone") == "UTC");
  CHECK(setting(ours, "client_min_messages") == "warning");
  CHECK(setting(ours, "client_encoding") == "UTF8");

  Connection theirs(database.dsn() + " application_name=theirs options='-c statement_timeout=9s'", options);
  CHECK(setting(theirs, "application_name") == "holdfast theirs");
  CHECK(setting(theirs, "statement_timeout") == "9s");
  CHECK(setting(theirs, "lock_timeout") == "567ms");
}

TEST_CASE("a URI is understood as well as a keyword string") {
  const TestDatabase database(false);
  const std::string& dsn = database.dsn();
  const auto value = [&](const std::string& keyword) {
    const auto at = dsn.rfind(keyword + "=") + keyword.size() + 1;
    return dsn.substr(at, dsn.find(' ', at) - at);
  };
  Connection connection("postgresql://holdfast@/" + value("dbname") + "?host=" + value("host") + "&port=5432");
  CHECK(connection.call("select current_user as u").one().text("u") == "holdfast");
}

TEST_CASE("a statement runs again and again, with other values each time") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  for (int i = 0; i < 10; ++i) {
    CHECK(connection.call("select $1::int * 2 as n", Params::of(i)).one().integer("n") == 2 * i);
  }
  CHECK(connection.call("select count(*) as n from pg_prepared_statements where statement like 'select $1::int * 2%'")
            .one()
            .integer("n") == 1);
}

TEST_CASE("a prepared statement whose result type was changed by a migration goes on working") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  connection.script("create table t (a int); insert into t values (7)");
  CHECK(connection.call("select * from t").one().integer("a") == 7);
  Connection(database.dsn()).script("alter table t add column b text default 'new'");
  CHECK(connection.call("select * from t").one().text("b") == "new");
}

TEST_CASE("a session whose prepared statements vanished, as behind a pooler, goes on without them") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  CHECK(connection.call("select 1 as n").one().integer("n") == 1);
  connection.script("deallocate all");
  CHECK(connection.call("select 1 as n").one().integer("n") == 1);
  CHECK_FALSE(connection.broken());
}

TEST_CASE("a server session in which another client has prepared the same statement serves us all the same") {
  const TestDatabase database(false);
  Connection model(database.dsn());
  CHECK(model.call("select 41 as n").one().integer("n") == 41);
  const std::string name =
      model.call("select name from pg_prepared_statements where statement = 'select 41 as n'").one().text("name");
  Connection connection(database.dsn());
  connection.script("prepare " + name + " as select 41 as n");
  CHECK(connection.call("select 41 as n").one().integer("n") == 41);
}

TEST_CASE("a statement whose first run failed can be run again") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto divide = [&](int by) {
    return connection.call("select 8 / $1::int as n", Params::of(by)).one().integer("n");
  };
  CHECK(outcome_of([&] { divide(0); }).sqlstate == "22012");
  CHECK(outcome_of([&] { divide(0); }).sqlstate == "22012");
  CHECK(divide(2) == 4);
}

TEST_CASE("a transaction commits as a whole, or not at all") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  connection.script("create table t (id int primary key)");
  connection.transaction([](Transaction& transaction) {
    transaction.call("insert into t values ($1::int)", Params::of(1));
    transaction.script("insert into t values (2); insert into t values (3)");
  });
  const auto count = [&] { return connection.call("select count(*) as n from t").one().integer("n"); };
  CHECK(count() == 3);

  struct Mine {};
  CHECK_THROWS_AS(connection.transaction([](Transaction& transaction) {
    transaction.call("insert into t values (4)");
    throw Mine{};
  }),
                  Mine);
  CHECK(count() == 3);
  CHECK(outcome_of([&] { connection.script("insert into t values (5); insert into t values (1)"); }).sqlstate ==
        "23505");
  CHECK(count() == 3);
  CHECK_FALSE(connection.broken());
}

TEST_CASE("a unique violation is a bug and leaves the session in order") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  connection.script("create table t (id int primary key)");
  connection.call("insert into t values (1)");
  const auto outcome = outcome_of([&] { connection.call("insert into t values (1)"); });
  CHECK(outcome.error_class == ErrorClass::bug);
  CHECK(outcome.sqlstate == "23505");
  CHECK(outcome.message.find("Key (id)=(1) already exists") != std::string::npos);
  CHECK(outcome.message.find("insert into t values (1)") != std::string::npos);
  CHECK_FALSE(connection.broken());
  CHECK(connection.call("select count(*) as n from t").one().integer("n") == 1);
}

TEST_CASE("of two sessions that lock each other out, one gets a temporary error and the other goes on") {
  const TestDatabase database(false);
  Connection first(database.dsn());
  Connection second(database.dsn());
  first.script("create table t (id int primary key, n int); insert into t values (1, 0), (2, 0)");
  std::atomic<bool> second_holds{false};
  std::atomic<bool> first_holds{false};
  const auto cross = [](Connection& connection, int mine, int theirs, std::atomic<bool>& holding,
                        std::atomic<bool>& held) {
    return outcome_of([&] {
      connection.transaction([&](Transaction& transaction) {
        transaction.call("update t set n = n + 1 where id = $1::int", Params::of(mine));
        holding = true;
        holding.notify_all();
        held.wait(false);
        transaction.call("update t set n = n + 1 where id = $1::int", Params::of(theirs));
      });
    });
  };
  holdfast::test::Outcome of_second;
  std::thread rival([&] { of_second = cross(second, 2, 1, second_holds, first_holds); });
  const auto of_first = cross(first, 1, 2, first_holds, second_holds);
  rival.join();
  CHECK(of_first.failed != of_second.failed);
  const auto& victim = of_first.failed ? of_first : of_second;
  CHECK(victim.error_class == ErrorClass::temporary);
  CHECK(victim.sqlstate == "40P01");
  CHECK_FALSE(first.broken());
  CHECK_FALSE(second.broken());
  CHECK(first.call("select sum(n) as n from t").one().integer("n") == 2);
}

TEST_CASE("a lock that is not granted in time is a temporary error") {
  const TestDatabase database(false);
  Connection holder(database.dsn());
  ConnectionOptions options;
  options.lock_timeout = 50ms;
  Connection waiter(database.dsn(), options);
  holder.script("create table t (id int)");
  holder.transaction([&](Transaction& transaction) {
    transaction.call("lock table t");
    const auto outcome = outcome_of([&] { waiter.call("select * from t"); });
    CHECK(outcome.error_class == ErrorClass::temporary);
    CHECK(outcome.sqlstate == "55P03");
  });
  CHECK_FALSE(waiter.broken());
  CHECK(waiter.call("select * from t").empty());
}

TEST_CASE("a statement that takes too long is a temporary error") {
  const TestDatabase database(false);
  ConnectionOptions options;
  options.statement_timeout = 50ms;
  Connection connection(database.dsn(), options);
  const auto outcome = outcome_of([&] { connection.call("select pg_sleep(60)"); });
  CHECK(outcome.error_class == ErrorClass::temporary);
  CHECK(outcome.sqlstate == "57014");
  CHECK_FALSE(connection.broken());
}

TEST_CASE("a serialisation failure is temporary, and the transaction can be repeated") {
  const TestDatabase database(false);
  Connection one(database.dsn());
  Connection other(database.dsn());
  one.script("create table t (n int); insert into t values (0)");
  const auto add = [&](bool disturbed) {
    one.transaction([&](Transaction& transaction) {
      transaction.script("set transaction isolation level serializable");
      const auto seen = transaction.call("select n from t").one().integer("n");
      if (disturbed) other.call("update t set n = 10");
      transaction.call("update t set n = $1::int", Params::of(seen + 1));
    });
  };
  const auto outcome = outcome_of([&] { add(true); });
  CHECK(outcome.error_class == ErrorClass::temporary);
  CHECK(outcome.sqlstate == "40001");
  add(false);
  CHECK(one.call("select n from t").one().integer("n") == 11);
}

TEST_CASE("a terminated backend is a temporary error that says the session is broken, and it stays so") {
  const TestDatabase database(false);
  Connection observer(database.dsn());
  SUBCASE("noticed by a statement") {
    Connection victim(database.dsn());
    terminate(observer, victim.backend_pid());
    CHECK(outcome_of([&] { victim.call("select 1"); }).error_class == ErrorClass::temporary);
    CHECK(victim.broken());
    CHECK(outcome_of([&] { victim.call("select 1"); }).error_class == ErrorClass::temporary); // no silent reconnect
    CHECK(victim.broken());
  }
  SUBCASE("noticed by a transaction") {
    Connection victim(database.dsn());
    terminate(observer, victim.backend_pid());
    bool reached = false;
    const auto outcome = outcome_of([&] {
      victim.transaction([&](Transaction& transaction) {
        transaction.call("select 1");
        reached = true;
      });
    });
    CHECK(outcome.error_class == ErrorClass::temporary);
    CHECK_FALSE(reached);
    CHECK(victim.broken());
  }
  SUBCASE("noticed in the middle of a transaction") {
    Connection victim(database.dsn());
    const auto outcome = outcome_of([&] {
      victim.transaction([&](Transaction& transaction) {
        transaction.call("create table t (id int)");
        terminate(observer, victim.backend_pid());
        transaction.call("insert into t values (1)");
      });
    });
    CHECK(outcome.error_class == ErrorClass::temporary);
    CHECK(victim.broken());
    CHECK(observer.call("select to_regclass('t') is null as gone").one().boolean("gone"));
  }
  SUBCASE("noticed by COMMIT, whose outcome is then unknown") {
    Connection victim(database.dsn());
    const auto outcome = outcome_of([&] {
      victim.transaction([&](Transaction& transaction) {
        transaction.call("select 1");
        terminate(observer, victim.backend_pid());
      });
    });
    CHECK(outcome.error_class == ErrorClass::temporary);
    CHECK(victim.broken());
  }
  SUBCASE("noticed while a statement waits") {
    Connection victim(database.dsn());
    Connection holder(database.dsn());
    holder.script("create table t (id int)");
    holder.transaction([&](Transaction& transaction) {
      transaction.call("lock table t");
      holdfast::test::Outcome outcome;
      std::thread blocked([&] { outcome = outcome_of([&] { victim.call("select * from t"); }); });
      wait_until_blocked(observer, victim.backend_pid());
      terminate(observer, victim.backend_pid());
      blocked.join();
      CHECK(outcome.error_class == ErrorClass::temporary);
      CHECK(victim.broken());
    });
  }
}

TEST_CASE("Holdfast's own SQLSTATEs have their classes, and a refusal brings its hint") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  connection.script("create function refuse(code text) returns void language plpgsql as $$ begin "
                    "raise exception 'the crawl % is sealed', 7 using errcode = code, hint = 'add a new one'; end $$");
  const auto raised = [&](const char* code) {
    return outcome_of([&] { connection.call("select refuse($1)", Params::of(code)); });
  };
  CHECK(raised("HF001").error_class == ErrorClass::bug);
  CHECK(raised("HF002").error_class == ErrorClass::lease_lost);
  CHECK(raised("HF003").error_class == ErrorClass::lease_lost);
  const auto refused = raised("HF004");
  CHECK(refused.error_class == ErrorClass::refused);
  CHECK(refused.sqlstate == "HF004");
  CHECK(refused.message == "the crawl 7 is sealed");
  CHECK(refused.hint == "add a new one");
  CHECK_FALSE(connection.broken());
}

TEST_CASE("a missing function, table or schema says that the database has to be migrated") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  for (const char* const sql : {"select no_such_function(1)", "select * from no_such_table", "select nowhere.f()"}) {
    CAPTURE(sql);
    const auto outcome = outcome_of([&] { connection.call(sql); });
    CHECK(outcome.error_class == ErrorClass::schema_mismatch);
    CHECK(outcome.hint == "holdfast migrate");
  }
  CHECK(connection.call("select 1 as n").one().integer("n") == 1);
}

TEST_CASE("what keeps us from connecting decides the class") {
  const TestDatabase database(false);
  const auto connecting = [](const std::string& dsn) { return outcome_of([&] { const Connection connection(dsn); }); };

  const auto no_database = connecting(database.dsn() + " dbname=nowhere");
  CHECK(no_database.error_class == ErrorClass::configuration);
  CHECK(no_database.sqlstate == "3D000");
  CHECK(no_database.message.find("\"nowhere\"") != std::string::npos);

  const auto no_role = connecting(database.dsn() + " user=nobody_here");
  CHECK(no_role.error_class == ErrorClass::configuration);

  const auto no_server = connecting("host=/nonexistent dbname=x user=x");
  CHECK(no_server.error_class == ErrorClass::unavailable);
  CHECK(no_server.message.find("/nonexistent") != std::string::npos);

  const auto nonsense = connecting("postgresql://user:secret@host/db?nonsense=1");
  CHECK(nonsense.error_class == ErrorClass::configuration);
  CHECK(nonsense.message.find("secret") == std::string::npos);

  Connection connection(database.dsn());
  connection.script("create role cramped login connection limit 0");
  const auto crowded = connecting(database.dsn() + " user=cramped");
  CHECK(crowded.error_class == ErrorClass::temporary);
  CHECK(crowded.sqlstate == "53300");
  connection.script("drop role cramped");
}

TEST_CASE("a missing privilege is a matter of configuration") {
  const TestDatabase database(false);
  Connection owner(database.dsn());
  owner.script("create table t (id int); create role stranger login");
  {
    Connection stranger(database.dsn() + " user=stranger");
    const auto outcome = outcome_of([&] { stranger.call("select * from t"); });
    CHECK(outcome.error_class == ErrorClass::configuration);
    CHECK(outcome.sqlstate == "42501");
  }
  owner.script("drop role stranger");
}

TEST_CASE("a notification wakes the descriptor and brings its payload, in order") {
  const TestDatabase database(false);
  Connection listener(database.dsn());
  Connection sender(database.dsn());
  listener.listen("door Bell"); // a name that needs quotes
  CHECK(listener.notifications().empty());
  sender.transaction([](Transaction& transaction) {
    transaction.call("select pg_notify('door Bell', $1)", Params::of("one"));
    transaction.call("select pg_notify('door Bell', $1)", Params::of("zwölf"));
    transaction.call("select pg_notify('another', 'not ours')");
  });
  pollfd socket{listener.descriptor(), POLLIN, 0};
  REQUIRE(::poll(&socket, 1, 20000) == 1);
  CHECK(listener.notifications() == std::vector<std::string>{"one", "zwölf"});
  CHECK(listener.notifications().empty());
}

TEST_CASE("a notification that arrives with the answer to a statement is not lost") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  connection.listen("bell");
  connection.call("select pg_notify('bell', 'rung by ourselves')");
  CHECK(connection.notifications() == std::vector<std::string>{"rung by ourselves"});
}

TEST_CASE("a listener whose backend was terminated is woken and told") {
  const TestDatabase database(false);
  Connection observer(database.dsn());
  Connection listener(database.dsn());
  listener.listen("bell");
  terminate(observer, listener.backend_pid());
  pollfd socket{listener.descriptor(), POLLIN, 0};
  REQUIRE(::poll(&socket, 1, 20000) == 1);
  // The first look may find only the server's farewell, the second the end of the stream.
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  auto outcome = outcome_of([&] { listener.notifications(); });
  while (!outcome.failed && std::chrono::steady_clock::now() < deadline) {
    outcome = outcome_of([&] { listener.notifications(); });
  }
  CHECK(outcome.error_class == ErrorClass::temporary);
  CHECK(listener.broken());
}

TEST_CASE("a server that does not answer in time costs the session, not the thread") {
  const TestDatabase database(false);
  ConnectionOptions options;
  options.answer_timeout = 200ms; // long before the server's own statement_timeout
  Connection connection(database.dsn(), options);
  CHECK(connection.call("select 1 as one").one().integer("one") == 1);
  const auto outcome = outcome_of([&] { connection.call("select pg_sleep(20)"); });
  CHECK(outcome.error_class == ErrorClass::temporary);
  CHECK(connection.broken());
  Connection next(database.dsn(), options);
  CHECK_FALSE(next.broken());
}

TEST_CASE("a transaction that breaks off while the server hangs is left as quickly") {
  const TestDatabase database(false);
  ConnectionOptions options;
  options.answer_timeout = 200ms;
  Connection connection(database.dsn(), options);
  const auto outcome =
      outcome_of([&] { connection.transaction([](Transaction& open) { open.call("select pg_sleep(20)"); }); });
  CHECK(outcome.error_class == ErrorClass::temporary);
  CHECK(connection.broken());
}
