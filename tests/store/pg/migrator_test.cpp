// The migrator against real databases: fresh, again, two at once, newer, changed, failing.
#include "lib/pg/migrator.hpp"
#include "tests/store/pg/outcome.hpp"
#include "tests/support/test_database.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <thread>

using holdfast::base::Error;
using holdfast::base::ErrorClass;
using holdfast::pg::Connection;
using holdfast::pg::MigrationFile;
using holdfast::pg::MigrationReport;
using holdfast::pg::Migrator;
using holdfast::test::outcome_of;
using holdfast::test::TestDatabase;

namespace {

using Names = std::vector<std::string>;

constexpr MigrationFile kFirst{"0001_table.sql", "create table holdfast.page (id int primary key);"
                                                 "insert into holdfast.page values (1);"};
constexpr MigrationFile kSecond{"0002_column.sql", "alter table holdfast.page add column url text"};
constexpr MigrationFile kSecondEdited{"0002_column.sql", "alter table holdfast.page add column url varchar"};
constexpr MigrationFile kBroken{"0003_broken.sql", "create table holdfast.half (id int); select 1 / 0"};
constexpr MigrationFile kCount{"functions/count.sql", "create or replace function holdfast.count() returns bigint "
                                                      "language sql as 'select count(*) from holdfast.page'"};
constexpr MigrationFile kCountTwice{"functions/count.sql", "create or replace function holdfast.count() returns bigint "
                                                           "language sql as 'select 2 * count(*) from holdfast.page'"};
constexpr MigrationFile kZero{"functions/zero.sql", "create or replace function holdfast.zero() returns int "
                                                    "language sql as 'select 0'"};

const Migrator& older() {
  static const Migrator migrator({kFirst}, {kCount});
  return migrator;
}
const Migrator& newer() {
  static const Migrator migrator({kFirst, kSecond}, {kCount, kZero});
  return migrator;
}

} // namespace

TEST_CASE("a fresh database gets everything in order, and a second run finds nothing to do") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  CHECK(newer().revision() == 2);
  const MigrationReport report = newer().migrate(connection);
  CHECK(report.applied == Names{"0001_table.sql", "0002_column.sql", "functions/count.sql", "functions/zero.sql"});
  CHECK(report.revision == 2);
  CHECK(connection.call("select holdfast.count() as n").one().integer("n") == 1);
  const auto ledger = connection.call("select name, number, length(checksum) as digits, applied_at <= now() as past "
                                      "from holdfast.schema_migration order by name");
  REQUIRE(ledger.size() == 4);
  CHECK(ledger[1].integer("number") == 2);
  CHECK(ledger[3].is_null("number"));
  CHECK(ledger[0].integer("digits") == 64);
  CHECK(ledger[0].boolean("past"));

  const MigrationReport again = newer().migrate(connection);
  CHECK(again.applied.empty());
  CHECK(again.revision == 2);
  newer().require_current(connection);
}

TEST_CASE("an older database gets only what it lacks, and all functions again after a change of structure") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  older().migrate(connection);
  const MigrationReport report = newer().migrate(connection);
  CHECK(report.applied == Names{"0002_column.sql", "functions/count.sql", "functions/zero.sql"});
  newer().require_current(connection);
}

TEST_CASE("a function file is applied again when its text has changed, and only that one") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  newer().migrate(connection);
  const Migrator edited({kFirst, kSecond}, {kCountTwice, kZero});
  edited.require_current(connection); // signatures are a promise: programs of one revision share a schema
  CHECK(edited.migrate(connection).applied == Names{"functions/count.sql"});
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
  CHECK(of_mine.applied.size() + of_theirs.applied.size() == 4);
  CHECK((of_mine.applied.empty() || of_theirs.applied.empty()));
  CHECK(of_mine.revision == 2);
  CHECK(of_theirs.revision == 2);
}

TEST_CASE("a migration that meets a program's transaction in a deadlock begins anew") {
  constexpr MigrationFile other{"0002_other.sql", "create table holdfast.other (id int)"};
  constexpr MigrationFile both{"0003_both.sql", "alter table holdfast.other add column more int;"
                                                "alter table holdfast.page add column more int"};
  const TestDatabase database(false);
  Connection connection(database.dsn());
  Migrator({kFirst, other}, {}).migrate(connection);

  std::promise<void> holds_page;
  std::thread program([&] {
    Connection theirs(database.dsn()), watch(database.dsn());
    theirs.transaction([&](holdfast::pg::Transaction& transaction) {
      transaction.script("set local deadlock_timeout = '1h'"); // not they, but the migration is to notice
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
  const auto report = Migrator({kFirst, other, both}, {}).migrate(connection);
  program.join();
  CHECK(report.applied == Names{"0003_both.sql"});
  CHECK(connection.call("select count(more) as n from holdfast.page").one().integer("n") == 0);
}

TEST_CASE("a database of a newer revision serves an older program, which takes nothing back") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  Migrator({kFirst, kSecond}, {kCountTwice, kZero}).migrate(connection);
  older().require_current(connection);
  const auto report = older().migrate(connection);
  CHECK(report.applied.empty());
  CHECK(report.revision == 2);
  CHECK(connection.call("select holdfast.count() as n").one().integer("n") == 2);
}

TEST_CASE("a release that only brings functions needs no numbered file, and an earlier one does not take them back") {
  const Migrator one({kFirst}, {kCount}, "1.9.3");
  const Migrator two({kFirst}, {kCountTwice}, "1.10.0");
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto count = [&] { return connection.call("select holdfast.count() as n").one().integer("n"); };
  one.migrate(connection);
  one.require_current(connection);
  const auto early = outcome_of([&] { two.require_current(connection); });
  CHECK(early.error_class == ErrorClass::unavailable);
  CHECK(early.message.find("functions of release 1.9.3, but this is release 1.10.0") != std::string::npos);
  CHECK(two.migrate(connection).applied == Names{"functions/count.sql"});
  CHECK(count() == 2);
  one.require_current(connection); // it goes on with the newer ones
  CHECK(one.migrate(connection).applied.empty());
  CHECK(count() == 2);
  two.require_current(connection);
  CHECK(two.migrate(connection).applied.empty());
  // Of one release, as while it is made: the last one counts.
  CHECK(Migrator({kFirst}, {kCount}, "1.10.0").migrate(connection).applied == Names{"functions/count.sql"});
  CHECK(count() == 1);
}

TEST_CASE("a breaking migration asks first, and shuts older programs out") {
  constexpr MigrationFile kBreaking{"0002_break.sql", "-- Breaking: no more pages\ndrop table holdfast.page cascade"};
  const Migrator breaking({kFirst, kBreaking}, {kZero});
  const TestDatabase database(false);
  Connection connection(database.dsn());
  older().migrate(connection);
  int asked = 0;
  const auto refused = outcome_of([&] {
    breaking.migrate(connection, [&](holdfast::pg::Transaction&, int minimum) {
      asked = minimum;
      throw Error(ErrorClass::refused, "not now");
    });
  });
  CHECK(asked == 2);
  CHECK(refused.error_class == ErrorClass::refused);
  older().require_current(connection);
  breaking.migrate(connection);
  for (const auto& outcome :
       {outcome_of([&] { older().migrate(connection); }), outcome_of([&] { older().require_current(connection); })}) {
    CHECK(outcome.error_class == ErrorClass::schema_mismatch);
    CHECK(outcome.message.find("0002_break.sql") != std::string::npos);
    CHECK(outcome.hint == "use a newer holdfast");
  }
  breaking.require_current(connection);
}

TEST_CASE("a ledger of the first builds is completed") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  older().migrate(connection);
  connection.script("alter table holdfast.schema_migration drop column breaking, drop column version");
  older().require_current(connection);
  CHECK(newer().migrate(connection).applied.size() == 3);
  newer().require_current(connection);
}

TEST_CASE("functions of a file that the database has never had are missed") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  older().migrate(connection);
  const Migrator more({kFirst}, {kCount, kZero});
  const auto lacking = outcome_of([&] { more.require_current(connection); });
  CHECK(lacking.error_class == ErrorClass::unavailable);
  CHECK(lacking.hint == "holdfast migrate");
}

TEST_CASE("a released migration whose text has changed is refused") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  newer().migrate(connection);
  const Migrator edited({kFirst, kSecondEdited}, {kCount, kZero});
  for (const auto& outcome :
       {outcome_of([&] { edited.migrate(connection); }), outcome_of([&] { edited.require_current(connection); })}) {
    CHECK(outcome.error_class == ErrorClass::schema_mismatch);
    CHECK(outcome.message.find("0002_column.sql") != std::string::npos);
  }
}

TEST_CASE("a migration that slipped in below the database's revision is refused") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  Migrator({kFirst, {"0003_other.sql", "select 1"}}, {}).migrate(connection);
  const Migrator inserted({kFirst, kSecond, {"0003_other.sql", "select 1"}}, {});
  const auto outcome = outcome_of([&] { inserted.migrate(connection); });
  CHECK(outcome.error_class == ErrorClass::schema_mismatch);
  CHECK(outcome.message.find("never had migration 0002_column.sql") != std::string::npos);
}

TEST_CASE("a migration that fails leaves nothing behind and names its file") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const Migrator failing({kFirst, kSecond, kBroken}, {kCount});
  const auto outcome = outcome_of([&] { failing.migrate(connection); });
  CHECK(outcome.sqlstate == "22012");
  CHECK(outcome.error_class == ErrorClass::bug);
  CHECK(outcome.message.find("0003_broken.sql") != std::string::npos);
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
  CHECK(behind.message.find("revision 1") != std::string::npos);
}

TEST_CASE("a role that may not create schemas can migrate into one that was made for it") {
  const TestDatabase database(false);
  Connection owner(database.dsn());
  owner.script("create role tenant login; create schema holdfast authorization tenant");
  {
    Connection tenant(database.dsn() + " user=tenant");
    CHECK(newer().migrate(tenant).applied.size() == 4);
  }
  owner.script("drop owned by tenant cascade; drop role tenant");
}

TEST_CASE("files in a wrong order or with a wrong name are a bug") {
  CHECK(outcome_of([] { Migrator({kSecond, kFirst}, {}); }).error_class == ErrorClass::bug);
  CHECK(outcome_of([] { Migrator({{"schema.sql", ""}}, {}); }).error_class == ErrorClass::bug);
  CHECK(Migrator({}, {}).revision() == 0);
}
