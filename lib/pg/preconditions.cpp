#include "lib/pg/preconditions.hpp"

namespace holdfast::pg {

namespace {

// Only catalogs: the schema need not exist.
constexpr const char* kUnmet = R"(
select what, remedy
  from (values
    (current_setting('server_version_num')::integer >= 150000,
     'PostgreSQL 15 or newer, not ' || current_setting('server_version'), 'upgrade the server'),
    (getdatabaseencoding() = 'UTF8', 'a database in UTF8, not ' || getdatabaseencoding(),
     'create database NAME encoding ''UTF8'' template template0, and name that in database.url'),
    (not pg_is_in_recovery(), 'a primary; this server is a standby',
     'name the primary in database.url, or all servers'),
    (pg_is_in_recovery() or current_setting('transaction_read_only') = 'off', 'sessions that may write',
     'reset default_transaction_read_only (alter database, alter role, postgresql.conf)'),
    (current_setting('session_replication_role') = 'origin', 'triggers, which session_replication_role switches off',
     'reset session_replication_role'),
    (exists (select from pg_language where lanname = 'plpgsql'), 'the language plpgsql', 'create extension plpgsql'),
    (case when to_regnamespace('holdfast') is null then has_database_privilege(current_database(), 'create')
          else has_schema_privilege('holdfast', 'create') end,
     'the right to create in ' || case when to_regnamespace('holdfast') is null
                                       then 'the database ' || current_database() else 'the schema holdfast' end,
     format(case when to_regnamespace('holdfast') is null then 'grant create on database %I to %I'
                 else 'alter schema holdfast owner to %2$I' end, current_database(), current_user))
  ) as precondition (met, what, remedy)
  where not met)";

} // namespace

std::vector<Precondition> unmet_preconditions(Connection& connection) {
  const auto rows = connection.call(kUnmet);
  std::vector<Precondition> unmet;
  for (std::size_t i = 0; i < rows.size(); ++i)
    unmet.push_back({rows[i].text("what"), rows[i].text("remedy")});
  return unmet;
}

} // namespace holdfast::pg
