#include "lib/pg/migrator.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/text.hpp"
#include "lib/pg/sqlstate.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace holdfast::pg {
namespace {

using base::Error;
using base::ErrorClass;

constexpr std::int64_t kAdvisoryLock = 0x686F6C6466617374; // "holdfast" in ASCII; the same in every release
constexpr const char* kLockWait = "60s";
constexpr int kDeadlocks = 10;

struct Recorded {
  std::optional<int> number; // none: a file of functions
  std::string checksum;
  bool breaking{false};
};
using Ledger = std::map<std::string, Recorded>;

int number_of(std::string_view name) {
  int number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || stop == name.data() + name.size() || *stop != '_' || number <= 0) {
    throw Error(ErrorClass::bug, "migration \"" + std::string(name) + "\" is not named NNNN_name.sql");
  }
  return number;
}

// Empty if the schema does not exist. Works on a Connection as well as on a Transaction.
template <class Session>
Ledger read_ledger(Session& session) {
  Ledger ledger;
  if (!session.call("select to_regclass('holdfast.schema_migration') is not null as found").one().boolean("found"))
    return ledger;
  const Result rows = session.call("select name, number, checksum, breaking from holdfast.schema_migration");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Recorded entry{std::nullopt, rows[i].text("checksum"), rows[i].boolean("breaking")};
    if (!rows[i].is_null("number")) entry.number = static_cast<int>(rows[i].integer("number"));
    ledger.emplace(rows[i].text("name"), std::move(entry));
  }
  return ledger;
}

int highest(const Ledger& ledger) {
  int revision = 0;
  for (const auto& [name, entry] : ledger)
    revision = std::max(revision, entry.number.value_or(0));
  return revision;
}

// Returns true if the ledger has this very text.
bool is_applied(const Ledger& ledger, const MigrationFile& file) {
  const auto found = ledger.find(std::string(file.name));
  return found != ledger.end() && found->second.checksum == base::sha256_hex(file.text);
}

bool is_breaking(const MigrationFile& file) { return file.text.starts_with("-- Breaking:"); }

// Throws unless one history is the beginning of the other. The database may be ahead, unless a breaking file shuts us
// out.
void check_history(const Ledger& ledger, const std::vector<MigrationFile>& numbered) {
  const auto mismatch = [](const std::string& message, const std::string& hint) {
    throw Error(ErrorClass::schema_mismatch, message, hint);
  };
  const std::string another_build = "this database was made by another build; use that one";
  const int ours = numbered.empty() ? 0 : number_of(numbered.back().name);
  const int theirs = highest(ledger);
  for (const auto& file : numbered) {
    if (number_of(file.name) > theirs || is_applied(ledger, file)) continue;
    const bool known = ledger.contains(std::string(file.name));
    mismatch(known ? "the database has migration " + std::string(file.name) + " with another content"
                   : "the database is at revision " + std::to_string(theirs) + " but lacks migration " +
                         std::string(file.name),
             another_build);
  }
  for (const auto& [name, entry] : ledger) {
    if (!entry.number) continue;
    const bool known =
        std::any_of(numbered.begin(), numbered.end(), [&](const auto& file) { return file.name == name; });
    if (!known && *entry.number <= ours)
      mismatch("the database has migration " + name + ", which this holdfast does not know", another_build);
    if (!known && entry.breaking)
      mismatch("the database has migration " + name + ", which needs programs of revision " +
                   std::to_string(*entry.number) + " or later; this one has revision " + std::to_string(ours),
               "use a newer holdfast");
  }
}

// All that is wrong at once, before anything is done.
void require_preconditions(Connection& connection) {
  std::vector<std::string> needs, remedies;
  for (auto& [what, remedy] : unmet_preconditions(connection)) {
    needs.push_back(std::move(what));
    remedies.push_back(std::move(remedy));
  }
  if (!needs.empty())
    throw Error(ErrorClass::configuration, "the schema needs " + base::join(needs, "; and "),
                base::join(remedies, "; "));
}

void lock_out_rivals(Transaction& transaction) {
  transaction.script(std::string("set local lock_timeout = '") + kLockWait + "'");
  transaction.script("set local statement_timeout = 0"); // building an index on a large table takes long
  try {
    transaction.call("select pg_advisory_xact_lock($1::bigint)", Params::of(kAdvisoryLock));
  } catch (const DatabaseError& error) {
    if (error.sqlstate() != kLockTimeout) throw;
    throw Error(ErrorClass::temporary,
                std::string("another process has been migrating this database for more than ") + kLockWait);
  }
}

void apply(Transaction& transaction, const MigrationFile& file, std::optional<int> number) {
  try {
    transaction.script(std::string(file.text));
  } catch (const DatabaseError& error) {
    throw DatabaseError(error.error_class(), error.sqlstate(),
                        "migration " + std::string(file.name) + " failed, nothing was changed: " + error.what(),
                        error.hint());
  }
  transaction.call("insert into holdfast.schema_migration (name, number, checksum, breaking) "
                   "values ($1, $2::integer, $3, $4::boolean) "
                   "on conflict (name) do update set checksum = excluded.checksum, applied_at = clock_timestamp()",
                   Params::of(file.name, number, base::sha256_hex(file.text), number && is_breaking(file)));
}

// Reads only catalogs: the schema need not exist.
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

Migrator::Migrator(std::vector<MigrationFile> numbered, std::vector<MigrationFile> functions)
    : numbered_(std::move(numbered)), functions_(std::move(functions)) {
  int last = 0;
  for (const auto& file : numbered_) {
    const int number = number_of(file.name);
    if (number <= last) throw Error(ErrorClass::bug, "migration " + std::string(file.name) + " is out of order");
    last = number;
  }
}

MigrationReport Migrator::migrate(Connection& connection, const MigrateOptions& options) const {
  // The login of a worker, for example.
  if (!unmet_preconditions(connection).empty() && is_current(connection)) return {{}, revision(), false};
  require_preconditions(connection);
  for (int attempt = 1;; ++attempt) {
    try {
      return migrate_once(connection, options);
    } catch (const DatabaseError& error) {
      if (error.sqlstate() != kDeadlock || attempt == kDeadlocks) throw;
    }
  }
}

MigrationReport Migrator::migrate_once(Connection& connection, const MigrateOptions& options) const {
  MigrationReport report;
  connection.transaction([&](Transaction& transaction) {
    report = {};
    lock_out_rivals(transaction);
    const Ledger ledger = read_ledger(transaction);
    check_history(ledger, numbered_);
    report.revision = std::max(revision(), highest(ledger));
    if (report.revision > revision()) return; // the functions in the database belong to a newer release
    for (const auto& file : numbered_) {
      if (is_applied(ledger, file)) continue;
      const int number = number_of(file.name);
      if (is_breaking(file) && !ledger.empty())
        transaction.call("select holdfast.shut_out_older_programs($1::integer, $2::boolean)",
                         Params::of(number, options.force));
      apply(transaction, file, number);
      report.applied.emplace_back(file.name);
    }
    if (!report.applied.empty() ||
        !std::all_of(functions_.begin(), functions_.end(), [&](const auto& file) { return is_applied(ledger, file); }))
      apply_functions(transaction, report);
  });
  return report;
}

// All of them: functions depend on each other and on the tables, and the last file grants what the others define.
void Migrator::apply_functions(Transaction& transaction, MigrationReport& report) const {
  for (const auto& file : functions_) {
    apply(transaction, file, std::nullopt);
    report.applied.emplace_back(file.name);
  }
}

void Migrator::require_current(Connection& connection) const {
  const Ledger ledger = read_ledger(connection);
  check_history(ledger, numbered_);
  const auto behind = [](const std::string& message) {
    throw Error(ErrorClass::unavailable, message, "holdfast migrate");
  };
  const int theirs = highest(ledger);
  if (ledger.empty()) behind("the database has no Holdfast schema yet");
  if (theirs > revision()) return;
  if (theirs < revision())
    behind("the database schema is at revision " + std::to_string(theirs) + ", but this holdfast needs revision " +
           std::to_string(revision()));
  for (const auto& file : functions_)
    if (!is_applied(ledger, file)) behind("the database has other functions than " + std::string(file.name));
}

bool Migrator::is_current(Connection& connection) const {
  try {
    require_current(connection);
    return true;
  } catch (const Error&) {
    return false;
  }
}

int Migrator::revision() const noexcept { return numbered_.empty() ? 0 : number_of(numbered_.back().name); }

std::vector<Precondition> unmet_preconditions(Connection& connection) {
  const auto rows = connection.call(kUnmet);
  std::vector<Precondition> unmet;
  for (std::size_t i = 0; i < rows.size(); ++i)
    unmet.push_back({rows[i].text("what"), rows[i].text("remedy")});
  return unmet;
}

} // namespace holdfast::pg
