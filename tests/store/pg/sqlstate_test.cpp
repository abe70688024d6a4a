// The table from SQLSTATE to class, and the reading of the server's reports.
#include "lib/pg/sqlstate.hpp"
#include "tests/store/pg/outcome.hpp"

#include <doctest/doctest.h>

using namespace holdfast::pg;
using holdfast::base::ErrorClass;

TEST_CASE("each SQLSTATE has the class that tells the catcher what to do") {
  const auto is = [](ErrorClass expected, std::initializer_list<const char*> sqlstates) {
    for (const char* const sqlstate : sqlstates) {
      CAPTURE(sqlstate);
      CHECK(class_of_sqlstate(sqlstate) == expected);
    }
  };
  is(ErrorClass::temporary,
     {"08000", "08006", "40001", "40P01", "53100", "53200", "53300", "55P03", "57014", "57P01", "57P02",
      "57P03", "57P05", "25006", "25P03", "25P04", "53400", "54000", "58030", "XX000", "F0000", "99999"});
  is(ErrorClass::lease_lost, {"HF002", "HF003"});
  is(ErrorClass::refused, {"HF004"});
  is(ErrorClass::schema_mismatch, {"42883", "42P01", "3F000"});
  is(ErrorClass::configuration, {"28000", "28P01", "3D000", "42501", "57P04"});
  is(ErrorClass::bug, {"HF001", "23505", "23503", "42601", "22P02", "25001", "P0001", ""});
}

TEST_CASE("a session is over after a shutdown or a lost link, not after a failed statement") {
  for (const char* const sqlstate : {"08006", "57P01", "57P02", "57P03", "25P03", "25006"})
    CHECK(ends_session(sqlstate));
  for (const char* const sqlstate : {"57014", "40001", "55P03", "23505", "HF002"})
    CHECK_FALSE(ends_session(sqlstate));
}

TEST_CASE("a report is taken apart into message, detail and hint") {
  const auto report = parse_server_report("ERROR:  no such\n  crawl\nDETAIL:  it was deleted\nHINT:  holdfast list\n"
                                          "CONTEXT:  PL/pgSQL function f()\nline 3 at RAISE\n");
  CHECK(report.message == "no such crawl");
  CHECK(report.detail == "it was deleted");
  CHECK(report.hint == "holdfast list");
}

TEST_CASE("a translated severity and a prefix of the client library are left out") {
  CHECK(parse_server_report("FEHLER:  kaputt").message == "kaputt");
  CHECK(parse_server_report("Failure during 'hf_1': ERROR:  broken\n").message == "broken");
  CHECK(parse_server_report("no server said this").message == "no server said this");
}

TEST_CASE("a refusal keeps the function's words and its hint") {
  const auto error = make_database_error("HF004", "ERROR:  the crawl is sealed\nHINT:  add a new one\n", "select f()");
  CHECK(error.error_class() == ErrorClass::refused);
  CHECK(std::string(error.what()) == "the crawl is sealed");
  CHECK(error.hint() == "add a new one");
  CHECK(error.sqlstate() == "HF004");
}

TEST_CASE("any other error names the SQLSTATE and the statement") {
  const auto error =
      make_database_error("23505", "ERROR:  duplicate key\nDETAIL:  Key (id)=(1) already exists.\n", "insert\ninto t");
  CHECK(std::string(error.what()) == "duplicate key: Key (id)=(1) already exists. (SQLSTATE 23505 in: insert into t)");
}
