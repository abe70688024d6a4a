// The schema as its own documentation, and programs that are older than it. The tables alone: table_test.cpp.
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::string names(const pg::Result& result) {
  std::string all;
  for (std::size_t i = 0; i < result.size(); ++i)
    all += (all.empty() ? "" : ", ") + result.cell(i, 0).value_or("");
  return all;
}

} // namespace

TEST_CASE("every table, view and column, and every function that a role may call, has a comment") {
  Stage stage;
  CHECK(names(stage.connection.call(
            "select c.relname from pg_class c where c.relnamespace = 'holdfast'::regnamespace and "
            "c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition and obj_description(c.oid, 'pg_class') is "
            "null")) == "");
  CHECK(names(stage.connection.call(
            "select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid "
            "where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and "
            "a.attnum > 0 and "
            "not a.attisdropped and col_description(c.oid, a.attnum) is null")) == "");
  // A column of a view may leave it to the column of its name in a table.
  CHECK(names(stage.connection.call("select name || '.' || part from holdfast.reference() where kind = 'view' and "
                                    "part_about is null")) == "");
  CHECK(names(stage.connection.call(
            "select distinct p.proname from pg_proc p, unnest(array['holdfast_reader', 'holdfast_operator', "
            "'holdfast_worker']) r(role) where p.pronamespace = 'holdfast'::regnamespace and "
            "has_function_privilege(r.role, p.oid, 'execute') and obj_description(p.oid, 'pg_proc') is null "
            "order by 1")) == "");
  CHECK(stage.value("select obj_description('holdfast'::regnamespace, 'pg_namespace') is not null") == "t");
}

TEST_CASE("plpgsql_check finds no mistake in a PL/pgSQL function") {
  Stage stage;
  if (stage.value("select count(*) from pg_available_extensions where name = 'plpgsql_check'") == "0") {
    MESSAGE("skipped: PostgreSQL has no plpgsql_check");
    return;
  }
  stage.run("create extension plpgsql_check schema public");
  // All maintenance tasks have the same parameters; never_changes() looks into the row for the table snapshot alone.
  CHECK(names(stage.connection.call(
            "select distinct format('%s line %s: %s %s', p.oid::regprocedure, c.lineno, c.message, c.detail) "
            "from pg_proc p join pg_language l on l.oid = p.prolang and l.lanname = 'plpgsql' "
            "left join pg_trigger t on t.tgfoid = p.oid and not t.tgisinternal "
            "cross join lateral public.plpgsql_check_function_tb(p.oid, relid => coalesce(t.tgrelid, 0), "
            "oldtable => t.tgoldtable, newtable => t.tgnewtable, extra_warnings => true, other_warnings => false, "
            "performance_warnings => false) c "
            "where p.pronamespace = 'holdfast'::regnamespace and c.message <> 'unused parameter \"p_task\"' and "
            "(p.proname <> 'never_changes' or t.tgrelid = 'holdfast.snapshot'::regclass)")) == "");
}

TEST_CASE("a program that is too old for a breaking migration cannot join") {
  Stage stage;
  stage.worker();
  stage.run("insert into holdfast.schema_migration (name, number, checksum, breaking) values ('9999_next.sql', 9999, "
            "'x', true)");
  CHECK(stage.value("select holdfast.schema_minimum()") == "9999");
  CHECK(refusal([&] { stage.worker(); }) == pg::kRefused);
  CHECK(stage.value("select count(*) from holdfast.process") == "1");
}
