// The migrator against real databases: fresh, again, two at once, ahead, breaking, changed, failing.
#include "lib/pg/migrator.hpp"
#include "migrations/migrations.hpp"
#include "tests/store/pg/outcome.hpp"
#include "tests/support/test_database.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <thread>

using holdfast::base::ErrorClass;
using holdfast::pg::Connection;
using holdfast::pg::MigrationFile;
using holdfast::pg::MigrationReport;
using holdfast::pg::Migrator;
using holdfast::test::outcome_of;
using holdfast::test::TestDatabase;

namespace {

using Names = std::vector<std::string>;
using Files = std::vector<MigrationFile>;

constexpr MigrationFile kFirst{"0101_table.sql", "create table holdfast.page (id int primary key);"
                                                 "insert into holdfast.page values (1);"};
constexpr MigrationFile kSecond{"0102_column.sql", "alter table holdfast.page add column url text"};
constexpr MigrationFile kSecondEdited{"0102_column.sql", "alter table holdfast.page add column url varchar"};
constexpr MigrationFile kBroken{"0103_broken.sql", "create table holdfast.half (id int); select 1 / 0"};
constexpr MigrationFile kCount{"functions/count.sql", "create or replace function holdfast.count() returns bigint "
                                                      "language sql as 'select count(*) from holdfast.page'"};
constexpr MigrationFile kCountTwice{"functions/count.sql", "create or replace function holdfast.count() returns bigint "
                                                           "language sql as 'select 2 * count(*) from holdfast.page'"};
constexpr MigrationFile kZero{"functions/zero.sql", "create or replace function holdfast.zero() returns int "
                                                    "language sql as 'select 0'"};

// The real files that a migration itself needs (the ledger, processes and who may stay), then those of the test.
Migrator with(Files numbered, Files functions) {
  const auto real = [](const holdfast::migrations::File& file) { return MigrationFile{file.name, file.text}; };
  const auto& tables = holdfast::migrations::numbered();
  numbered.insert(numbered.begin(), {real(tables.at(0)), real(tables.at(1))});
  for (const auto& file : holdfast::migrations::functions())
    if (file.name == "functions/15_schema.sql") functions.insert(functions.begin(), real(file));
  return Migrator(std::move(numbered), std::move(functions));
}
const Migrator& older() {
  static const Migrator migrator = with({kFirst}, {kCount});
  return migrator;
}
const Migrator& newer() {
  static const Migrator migrator = with({kFirst, kSecond}, {kCount, kZero});
  return migrator;
}

// A worker whose program knows this revision, as process_join writes it.
void join(Connection& connection, const char* label, int revision) {
  connection.call("insert into holdfast.machine (id, hostname) values ('m', 'm') on conflict do nothing");
  connection.call(
      "insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, label, "
      "version, revision, heartbeat_at, lease_until) values (gen_random_uuid(), 'm', 'b', 1, 1, 'worker', $1, "
      "'1.2.3', $2::integer, now(), now() + interval '1 hour')",
      holdfast::pg::Params::of(label, revision));
}

} // namespace

TEST_CASE("a fresh database gets everything in order, and a second run finds nothing to do") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  CHECK(newer().revision() == 102);
  const MigrationReport report = newer().migrate(connection);
  CHECK(report.applied == Names{"0001_basics.sql", "0002_process.sql", "0101_table.sql", "0102_column.sql",
                                "functions/15_schema.sql", "functions/count.sql", "functions/zero.sql"});
  CHECK(report.revision == 102);
  CHECK(connection.call("select holdfast.count() as n").one().integer("n") == 1);
  const auto ledger = connection.call("select name, number, length(checksum) as digits, breaking, applied_at <= now() "
                                      "as past from holdfast.schema_migration order by name");
  REQUIRE(ledger.size() == 7);
  CHECK(ledger[3].text("name") == "0102_column.sql");
  CHECK(ledger[3].integer("number") == 102);
  CHECK_FALSE(ledger[3].boolean("breaking"));
  CHECK(ledger[4].is_null("number"));
  CHECK(ledger[0].integer("digits") == 64);
  CHECK(connection.call("select holdfast.schema_minimum() as n").one().integer("n") == 0);

  const MigrationReport again = newer().migrate(connection);
  CHECK(again.applied.empty());
  CHECK(again.revision == 102);
  newer().require_current(connection);
}

TEST_CASE("an older database gets the files that it lacks, and then all functions") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  older().migrate(connection);
  const MigrationReport report = newer().migrate(connection);
  CHECK(report.applied ==
        Names{"0102_column.sql", "functions/15_schema.sql", "functions/count.sql", "functions/zero.sql"});
  newer().require_current(connection);
}

TEST_CASE("all functions are applied again when the text of one has changed") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  newer().migrate(connection);
  const Migrator edited = with({kFirst, kSecond}, {kCountTwice, kZero});
  const auto behind = outcome_of([&] { edited.require_current(connection); });
  CHECK(behind.error_class == ErrorClass::unavailable);
  CHECK(behind.message.find("functions/count.sql") != std::string::npos);
  CHECK(behind.hint == "holdfast migrate");
  CHECK(edited.migrate(connection).applied ==
        Names{"functions/15_schema.sql", "functions/count.sql", "functions/zero.sql"});
  CHECK(connection.call("select holdfast.count() as n").one().integer("n") == 2);
  edited.require_current(connection);
}

TEST_CASE("of two migrators at once one does the work and the other finds it done") {
  const TestDatabase database(false);
  Connection mine(database.dsn());
  Connection theirs(database.dsn());
  MigrationReport of_theirs;
  std::thread rival([&] { of_theirs = newer().migrate(theirs); });
  const MigrationReport of_mine = newer().migrate(mine);
  rival.join();
  CHECK(of_mine.applied.size() + of_theirs.applied.size() == 7);
  CHECK((of_mine.applied.empty() || of_theirs.applied.empty()));
  CHECK(of_mine.revision == 102);
  CHECK(of_theirs.revision == 102);
}

TEST_CASE("a migration that deadlocks with a running program starts again") {
  constexpr MigrationFile other{"0102_other.sql", "create table holdfast.other (id int)"};
  constexpr MigrationFile both{"0103_both.sql", "alter table holdfast.other add column more int;"
                                                "alter table holdfast.page add column more int"};
  const TestDatabase database(false);
  Connection connection(database.dsn());
  with({kFirst, other}, {}).migrate(connection);

  std::promise<void> holds_page;
  std::thread program([&] {
    Connection theirs(database.dsn()), watch(database.dsn());
    theirs.transaction([&](holdfast::pg::Transaction& transaction) {
      transaction.script("set local deadlock_timeout = '1h'"); // the migration is to notice it, not the program
      transaction.call("select count(*) from holdfast.page");
      holds_page.set_value();
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (std::chrono::steady_clock::now() < deadline &&
             watch.call("select count(*) as n from pg_locks where not granted").one().integer("n") == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      transaction.call("select count(*) from holdfast.other");
    });
  });
  holds_page.get_future().wait();
  const auto report = with({kFirst, other, both}, {}).migrate(connection);
  program.join();
  CHECK(report.applied == Names{"0103_both.sql", "functions/15_schema.sql"});
  CHECK(connection.call("select count(more) as n from holdfast.page").one().integer("n") == 0);
}

TEST_CASE("a database that is ahead serves an older program, which takes nothing back") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  with({kFirst, kSecond}, {kCountTwice, kZero}).migrate(connection);
  older().require_current(connection);
  const auto report = older().migrate(connection);
  CHECK(report.applied.empty());
  CHECK(report.revision == 102);
  CHECK(connection.call("select holdfast.count() as n").one().integer("n") == 2);
}

TEST_CASE("a breaking migration is refused while older programs run, and shuts them out once applied") {
  constexpr MigrationFile kBreaking{"0102_break.sql", "-- Breaking: no more pages\ndrop table holdfast.page cascade"};
  const Migrator breaking = with({kFirst, kBreaking}, {kZero});
  const TestDatabase database(false);
  Connection connection(database.dsn());
  older().migrate(connection);
  join(connection, "new", 102);
  for (const char* label : {"a", "b", "c", "d", "e", "f"})
    join(connection, label, 101);
  const auto refused = outcome_of([&] { breaking.migrate(connection); });
  CHECK(refused.error_class == ErrorClass::refused);
  CHECK(refused.message == "this migration needs programs of revision 102 or later, but 6 older ones are running: "
                           "a (1.2.3), b (1.2.3), c (1.2.3), d (1.2.3), e (1.2.3), ...");
  CHECK(refused.hint.find("holdfast drain") != std::string::npos);
  older().require_current(connection); // nothing was changed

  SUBCASE("they have ended") {
    connection.call("update holdfast.process set status = 'exited', ended_at = now() where label in ('a', 'b', 'c')");
    connection.call("update holdfast.process set lease_until = now() where label in ('d', 'e', 'f')");
    breaking.migrate(connection);
  }
  SUBCASE("it is forced") { breaking.migrate(connection, {.force = true}); }
  CHECK(connection.call("select holdfast.schema_minimum() as n").one().integer("n") == 102);
  for (const auto& outcome :
       {outcome_of([&] { older().migrate(connection); }), outcome_of([&] { older().require_current(connection); })}) {
    CHECK(outcome.error_class == ErrorClass::schema_mismatch);
    CHECK(outcome.message.find("0102_break.sql") != std::string::npos);
    CHECK(outcome.hint == "use a newer holdfast");
  }
  breaking.require_current(connection);
}

TEST_CASE("a process that joins during a breaking migration waits for it") {
  constexpr MigrationFile kBreaking{"0102_break.sql", "-- Breaking: test\nselect pg_advisory_xact_lock(1)"};
  const TestDatabase database(false);
  Connection connection(database.dsn()), joining(database.dsn()), watch(database.dsn());
  older().migrate(connection);
  watch.call("select pg_advisory_lock(1)");
  std::thread migration([&] { with({kFirst, kBreaking}, {}).migrate(connection); });
  const auto waiting = [&](int count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline &&
           watch.call("select count(*) as n from pg_locks where not granted").one().integer("n") < count)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  waiting(1); // the migration, in its file
  std::thread program([&] { join(joining, "late", 101); });
  waiting(2);
  CHECK(watch.call("select count(*) as n from holdfast.process").one().integer("n") == 0);
  watch.call("select pg_advisory_unlock(1)");
  migration.join();
  program.join();
  CHECK(watch.call("select holdfast.schema_minimum() as n").one().integer("n") == 102); // which process_join looks at
}

TEST_CASE("a released migration whose text has changed is refused") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  newer().migrate(connection);
  const Migrator edited = with({kFirst, kSecondEdited}, {kCount, kZero});
  for (const auto& outcome :
       {outcome_of([&] { edited.migrate(connection); }), outcome_of([&] { edited.require_current(connection); })}) {
    CHECK(outcome.error_class == ErrorClass::schema_mismatch);
    CHECK(outcome.message.find("0102_column.sql with another content") != std::string::npos);
  }
}

TEST_CASE("a database of another history is refused") {
  constexpr MigrationFile other{"0103_other.sql", "select 1"};
  const TestDatabase database(false);
  Connection connection(database.dsn());
  with({kFirst, other}, {}).migrate(connection);
  const auto lacking = outcome_of([&] { with({kFirst, kSecond, other}, {}).migrate(connection); });
  CHECK(lacking.error_class == ErrorClass::schema_mismatch);
  CHECK(lacking.message.find("lacks migration 0102_column.sql") != std::string::npos);
  const auto unknown = outcome_of([&] { with({kFirst, {"0104_more.sql", "select 1"}}, {}).migrate(connection); });
  CHECK(unknown.error_class == ErrorClass::schema_mismatch);
  CHECK(unknown.message.find("0103_other.sql, which this holdfast does not know") != std::string::npos);
}

TEST_CASE("a migration that fails leaves nothing behind and names its file") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto outcome = outcome_of([&] { with({kFirst, kSecond, kBroken}, {kCount}).migrate(connection); });
  CHECK(outcome.sqlstate == "22012");
  CHECK(outcome.error_class == ErrorClass::bug);
  CHECK(outcome.message.find("0103_broken.sql") != std::string::npos);
  CHECK(connection.call("select to_regnamespace('holdfast') is null as nothing").one().boolean("nothing"));
  newer().migrate(connection); // the same session goes on
  newer().require_current(connection);
}

TEST_CASE("an empty database and an older one are not current, and the hint is to migrate") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto empty = outcome_of([&] { newer().require_current(connection); });
  CHECK(empty.error_class == ErrorClass::unavailable);
  CHECK(empty.hint == "holdfast migrate");
  older().migrate(connection);
  const auto behind = outcome_of([&] { newer().require_current(connection); });
  CHECK(behind.error_class == ErrorClass::unavailable);
  CHECK(behind.hint == "holdfast migrate");
  CHECK(behind.message.find("revision 101") != std::string::npos);
}

TEST_CASE("a role that may not create schemas can migrate into one that was made for it") {
  const TestDatabase database(false);
  Connection owner(database.dsn());
  owner.script("create role tenant login; create schema holdfast authorization tenant");
  {
    Connection tenant(database.dsn() + " user=tenant");
    CHECK(newer().migrate(tenant).applied.size() == 7);
  }
  owner.script("drop owned by tenant cascade; drop role tenant");
}

TEST_CASE("files in a wrong order or with a wrong name are a bug") {
  CHECK(outcome_of([] { Migrator({kSecond, kFirst}, {}); }).error_class == ErrorClass::bug);
  CHECK(outcome_of([] { Migrator({{"schema.sql", ""}}, {}); }).error_class == ErrorClass::bug);
  CHECK(Migrator({}, {}).revision() == 0);
}
