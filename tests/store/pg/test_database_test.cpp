// The support that other suites build on.
#include "lib/pg/connection.hpp"
#include "tests/support/test_database.hpp"

#include <doctest/doctest.h>

#include <optional>

using holdfast::pg::Connection;
using holdfast::test::TestDatabase;

void holdfast::test::migrate_template(const std::string& dsn) {
  Connection(dsn).script("create table from_template (id int); insert into from_template values (1)");
}

TEST_CASE("each migrated test database is a copy of its own") {
  const TestDatabase one;
  const TestDatabase other;
  Connection in_one(one.dsn());
  Connection in_other(other.dsn());
  in_one.call("insert into from_template values (2)");
  CHECK(in_one.call("select count(*) as n from from_template").one().integer("n") == 2);
  CHECK(in_other.call("select count(*) as n from from_template").one().integer("n") == 1);
}

TEST_CASE("an unmigrated test database is empty") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  CHECK(connection.call("select to_regclass('from_template') is null as empty").one().boolean("empty"));
}

TEST_CASE("a test database goes away even if a session is still open") {
  std::optional<TestDatabase> database(std::in_place, false);
  Connection left_open(database->dsn());
  const std::string name = left_open.call("select current_database() as name").one().text("name");
  database.reset();
  Connection elsewhere(holdfast::test::server().dsn("postgres"));
  CHECK(elsewhere.call("select from pg_database where datname = $1", holdfast::pg::Params::of(name)).empty());
}
