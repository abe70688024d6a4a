// What goes to the server and comes back, on a real one.
#include "lib/base/error.hpp"
#include "lib/pg/connection.hpp"
#include "tests/support/test_database.hpp"

#include <doctest/doctest.h>

using holdfast::base::Error;
using holdfast::base::ErrorClass;
using holdfast::pg::Connection;
using holdfast::pg::Params;
using holdfast::test::TestDatabase;
using namespace std::string_literals;

TEST_CASE("text of every kind comes back as it was sent") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  for (const std::string text : {"", " ", "it's", R"(back\slash)", R"("quoted")", "line\nbreak\ttab", "{a,b}", "NULL",
                                 "$1 %s ;--", "Grüße 日本語 \U0001F600"}) {
    CAPTURE(text);
    CHECK(connection.call("select $1::text as t", Params::of(text)).one().text("t") == text);
  }
}

TEST_CASE("NULL is not the empty text") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto result = connection.call("select $1::text as a, $2::text as b", Params::of(std::nullopt, ""));
  CHECK(result.one().is_null("a"));
  CHECK_FALSE(result.one().is_null("b"));
  CHECK(result.one()["a"].optional<std::string>() == std::nullopt);
  CHECK(result.one()["a"].value_or("fallback") == "fallback");
  CHECK(result.cell(0, 0) == std::nullopt);
  CHECK(result.cell(0, 1) == "");
}

TEST_CASE("captured bytes that are no text arrive whole, with marks in place of what cannot be sent") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto length = [&](const std::string& bytes) {
    return connection.call("select char_length($1::text) as n", Params::of(bytes)).one().integer("n");
  };
  CHECK(length("a\0b\0c"s) == 5);
  CHECK(length("\xFF\xFE<html>") == 8);
  CHECK(length("\xC0\xAF\xED\xA0\x80") == 5);
}

TEST_CASE("arrays survive quotes, backslashes, commas, braces and NULL in both directions") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const std::vector<std::string> values{"", "a,b", R"(q"u\o)", "{x}", "NULL", "null", " sp ace ", "é\nü"};
  const auto result = connection.call("select $1::text[] as a, cardinality($1::text[]) as n, ($1::text[])[3] as third",
                                      Params::of(values));
  CHECK(result.one()["a"].as<std::vector<std::string>>() == values);
  CHECK(result.one().integer("n") == 8);
  CHECK(result.one().text("third") == values[2]);

  const auto nulls = connection.call("select ($1::text[])[1] is null as first, ($1::text[])[2] as second",
                                     Params::of(std::vector<std::optional<std::string>>{std::nullopt, "x"}));
  CHECK(nulls.one().boolean("first"));
  CHECK(nulls.one().text("second") == "x");

  CHECK(connection.call("select '{}'::text[] as a").one()["a"].as<std::vector<std::string>>().empty());
  CHECK(connection.call("select null::text[] as a").one()["a"].as<std::vector<std::string>>().empty());
  const auto sum = connection.call("select sum(n) as total from unnest($1::bigint[]) n",
                                   Params::of(std::vector<std::int64_t>{1, 2, 39}));
  CHECK(sum.one().integer("total") == 42);
}

TEST_CASE("numbers and booleans are converted, and a wrong conversion names the column and the value") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto result =
      connection.call("select (-9223372036854775808)::bigint as low, 0.1::float8 as tenth, true as yes, "
                      "'seven' as word, null::int as nothing, array[[1,2],[3,4]] as square");
  const auto row = result.one();
  CHECK(row.integer("low") == std::numeric_limits<std::int64_t>::min());
  CHECK(row.number("tenth") == 0.1);
  CHECK(row.boolean("yes"));
  CHECK(row["nothing"].value_or<std::int64_t>(5) == 5);
  const auto bug = [](const auto& access) {
    try {
      (void)access();
    } catch (const Error& error) {
      CHECK(error.error_class() == ErrorClass::bug);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(bug([&] { return row.integer("word"); }) == "column \"word\" holds \"seven\", which is not an integer");
  CHECK(bug([&] { return row.boolean("word"); }) == "column \"word\" holds \"seven\", which is not a boolean");
  CHECK(bug([&] { return row.integer("nothing"); }) == "column \"nothing\" is NULL");
  CHECK(bug([&] { return row["square"].as<std::vector<std::string>>(); }).find("one-dimensional") != std::string::npos);
  CHECK(bug([&] { return row.text("absent"); }).find("no column \"absent\" (it has: low, tenth") != std::string::npos);
}

TEST_CASE("a result is a range of rows, a column a list, and a cell becomes what it is put into") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  const auto rows = connection.call("select n, 'row ' || n as name, nullif(n, 2) as odd from generate_series(1, 3) n");
  CHECK(rows.column("name") == std::vector<std::string>{"row 1", "row 2", "row 3"});
  CHECK(rows.column<int>("n") == std::vector<int>{1, 2, 3});
  std::int64_t sum = 0;
  for (const auto row : rows)
    sum += row["odd"].value_or<std::int64_t>(0);
  CHECK(sum == 4);
  struct Named {
    std::string name;
    int number;
    std::optional<int> odd;
  };
  const auto named = rows.map([](const auto& row) {
    return Named{row["name"], row["n"], row["odd"].template optional<int>()};
  });
  REQUIRE(named.size() == 3);
  CHECK(named[1].name == "row 2");
  CHECK(named[1].number == 2);
  CHECK(named[1].odd == std::nullopt);
  CHECK(named[2].odd == 3);
}

TEST_CASE("values follow the statement, a duration as an interval, and the only cell needs no name") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  CHECK(connection.call("select $1::int + $2::int", 2, 3).value().as<int>() == 5);
  CHECK(connection.call("select extract(epoch from $1::interval)", std::chrono::milliseconds(1500))
            .value()
            .as<double>() == doctest::Approx(1.5));
  const std::optional<std::chrono::milliseconds> none;
  CHECK(connection.call("select $1::interval", none).value().is_null());
}

TEST_CASE("a result knows its columns, its size and how many rows a statement touched") {
  const TestDatabase database(false);
  Connection connection(database.dsn());
  connection.script("create table t (id int); insert into t select generate_series(1, 5)");
  CHECK(connection.call("update t set id = id + 10 where id > $1::int", Params::of(2)).affected_rows() == 3);
  const auto rows = connection.call("select id, id * 2 as twice from t order by id");
  CHECK(rows.columns() == std::vector<std::string>{"id", "twice"});
  REQUIRE(rows.size() == 5);
  CHECK(rows[4].integer("twice") == 30);
  CHECK_THROWS_AS((void)rows.one(), Error);
}
