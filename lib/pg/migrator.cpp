#include "lib/pg/migrator.hpp"

#include "lib/base/error.hpp"
#include "lib/pg/sha256.hpp"
#include "lib/pg/sqlstate.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace holdfast::pg {
namespace {

using base::Error;
using base::ErrorClass;

// Any constant does, as long as every version of Holdfast uses the same one: "holdfast" in ASCII.
constexpr std::int64_t kAdvisoryLock = 0x686F6C6466617374;
constexpr std::chrono::seconds kRivalPatience{60};
constexpr int kDeadlocks = 10;

struct Recorded {
  std::optional<int> number;
  std::string checksum;
  bool breaking{false};
  std::string version; // of the release that applied it; empty: not told
};
using Ledger = std::map<std::string, Recorded>;

int number_of(std::string_view name) {
  int number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || stop == name.data() + name.size() || *stop != '_' || number <= 0) {
    throw Error(ErrorClass::bug, "migration \"" + std::string(name) + "\" is not named NNNN_what.sql");
  }
  return number;
}

// Works on a Connection as well as on a Transaction.
template <class Session>
bool ledger_exists(Session& session) {
  return session.call("select to_regclass('holdfast.schema_migration') is not null as found").one().boolean("found");
}

template <class Session>
Ledger read_ledger(Session& session) {
  // By way of json: a ledger that was made before there was such a column has none.
  const Result rows = session.call("select name, number, checksum, coalesce((to_jsonb(m) ->> 'breaking')::boolean, "
                                   "false) as breaking, coalesce(to_jsonb(m) ->> 'version', '') as version from "
                                   "holdfast.schema_migration m");
  Ledger ledger;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Recorded entry{std::nullopt, rows[i].text("checksum"), rows[i].boolean("breaking"), rows[i].text("version")};
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

// "1.20.3" -> {1, 20, 3}; what follows the numbers does not count.
std::vector<int> version_numbers(std::string_view version) {
  std::vector<int> numbers;
  for (const char* at = version.data(); at < version.data() + version.size(); ++at) {
    int number = 0;
    const auto [stop, error] = std::from_chars(at, version.data() + version.size(), number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    at = stop;
    if (at == version.data() + version.size() || *at != '.') break;
  }
  return numbers;
}

bool is_earlier(std::string_view version, std::string_view than) {
  return !version.empty() && !than.empty() && version_numbers(version) < version_numbers(than);
}

// The latest release that has applied functions.
std::string functions_version(const Ledger& ledger) {
  std::string latest;
  for (const auto& [name, entry] : ledger)
    if (!entry.number && (latest.empty() || is_earlier(latest, entry.version))) latest = entry.version;
  return latest;
}

const MigrationFile* find(const std::vector<MigrationFile>& files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

bool is_breaking(std::string_view text) { return text.starts_with("-- Breaking:"); }

// One history must be the beginning of the other; the database may be ahead as long as nothing in it shuts us out.
void check_history(const Ledger& ledger, const std::vector<MigrationFile>& numbered) {
  const int ours = numbered.empty() ? 0 : number_of(numbered.back().name);
  const int theirs = highest(ledger);
  for (const auto& [name, entry] : ledger) {
    if (!entry.number) continue;
    const auto* file = find(numbered, name);
    if (file == nullptr && *entry.number > ours) {
      if (!entry.breaking) continue;
      throw Error(ErrorClass::schema_mismatch,
                  "the database has migration " + name + ", which programs below revision " +
                      std::to_string(*entry.number) + " cannot work with (this one has " + std::to_string(ours) + ")",
                  "use a newer holdfast");
    }
    if (file == nullptr) {
      throw Error(ErrorClass::schema_mismatch,
                  "the database has migration " + name + ", which this holdfast does not know (its own revision is " +
                      std::to_string(ours) + ")",
                  "this database was made by another build; use that one");
    }
    if (sha256_hex(file->text) != entry.checksum) {
      throw Error(ErrorClass::schema_mismatch,
                  "migration " + name + " was applied to this database with another content",
                  "use the holdfast that made this database, or one that was released after it");
    }
  }
  for (const auto& file : numbered) {
    if (number_of(file.name) < theirs && !ledger.contains(std::string(file.name))) {
      throw Error(ErrorClass::schema_mismatch,
                  "the database is at revision " + std::to_string(theirs) + " but never had migration " +
                      std::string(file.name),
                  "this database was made by another build; use that one");
    }
  }
}

bool differs(const Ledger& ledger, const MigrationFile& file) {
  const auto found = ledger.find(std::string(file.name));
  return found == ledger.end() || found->second.checksum != sha256_hex(file.text);
}

void wait_for_rivals(Transaction& transaction) {
  transaction.script("set local lock_timeout = '" + std::to_string(kRivalPatience.count()) + "s'");
  transaction.script("set local statement_timeout = 0"); // an index on a large table takes as long as it takes
  try {
    transaction.call("select pg_advisory_xact_lock($1::bigint)", Params::of(kAdvisoryLock));
  } catch (const DatabaseError& error) {
    if (error.sqlstate() != "55P03") throw;
    throw Error(ErrorClass::temporary, "another process has been migrating this database for more than " +
                                           std::to_string(kRivalPatience.count()) + " s");
  }
}

void create_ledger(Transaction& transaction) {
  // Asked first, because "if not exists" demands the privilege even if there is nothing to create.
  const auto has_schema = transaction.call("select to_regnamespace('holdfast') is not null as found");
  if (!has_schema.one().boolean("found")) transaction.script("create schema holdfast");
  transaction.script(
      "create table holdfast.schema_migration ("
      "name text primary key, number int, checksum text not null,"
      "applied_at timestamptz not null default now(), breaking boolean not null default false, version text);"
      "comment on table holdfast.schema_migration is "
      "'Which files of migrations/ made this schema; number is null for files of functions.'");
}

// Ledgers of the first builds.
void complete_ledger(Transaction& transaction) {
  transaction.script("alter table holdfast.schema_migration add column if not exists breaking boolean not null default "
                     "false; comment on column holdfast.schema_migration.breaking is "
                     "'Programs that do not know this file cannot work with what it has changed.';"
                     "alter table holdfast.schema_migration add column if not exists version text;"
                     "comment on column holdfast.schema_migration.version is "
                     "'Release that applied it; an earlier one leaves its functions alone.'");
}

void apply(Transaction& transaction, const MigrationFile& file, std::optional<int> number, const std::string& version) {
  try {
    transaction.script(std::string(file.text));
  } catch (const DatabaseError& error) {
    throw DatabaseError(error.error_class(), error.sqlstate(),
                        "migration " + std::string(file.name) + " failed, nothing was changed: " + error.what(),
                        error.hint());
  }
  transaction.call(
      "insert into holdfast.schema_migration (name, number, checksum, breaking, version) values ($1, $2::int, $3, "
      "$4::boolean, nullif($5, '')) on conflict (name) do update set checksum = excluded.checksum, "
      "version = excluded.version, applied_at = now()",
      Params::of(file.name, number, sha256_hex(file.text), number && is_breaking(file.text), version));
}

} // namespace

Migrator::Migrator(std::vector<MigrationFile> numbered, std::vector<MigrationFile> functions, std::string version)
    : numbered_(std::move(numbered)), functions_(std::move(functions)), version_(std::move(version)) {
  int last = 0;
  for (const auto& file : numbered_) {
    const int number = number_of(file.name);
    if (number <= last) throw Error(ErrorClass::bug, "migration " + std::string(file.name) + " is out of order");
    last = number;
  }
}

MigrationReport Migrator::migrate(Connection& connection, const BeforeBreaking& before_breaking) const {
  // Programs that run meanwhile lock tables in orders of their own, and of two that wait for each other one must go:
  // then nothing was changed, and the next try finds other traffic.
  for (int attempt = 1;; ++attempt) {
    try {
      return migrate_once(connection, before_breaking);
    } catch (const DatabaseError& error) {
      if (error.sqlstate() != "40P01" || attempt == kDeadlocks) throw;
    }
  }
}

MigrationReport Migrator::migrate_once(Connection& connection, const BeforeBreaking& before_breaking) const {
  MigrationReport report;
  connection.transaction([&](Transaction& transaction) {
    report = {};
    wait_for_rivals(transaction);
    if (!ledger_exists(transaction)) create_ledger(transaction);
    const Ledger ledger = read_ledger(transaction);
    check_history(ledger, numbered_);
    report.revision = std::max(revision(), highest(ledger));
    if (report.revision > revision()) return; // our functions would take back what a newer release has changed
    bool structure_changed = false;
    for (const auto& file : numbered_) {
      if (ledger.contains(std::string(file.name))) continue;
      if (!structure_changed) complete_ledger(transaction);
      if (is_breaking(file.text) && !ledger.empty() && before_breaking)
        before_breaking(transaction, number_of(file.name));
      apply(transaction, file, number_of(file.name), version_);
      report.applied.emplace_back(file.name);
      structure_changed = true;
    }
    if (!structure_changed && is_earlier(version_, functions_version(ledger))) return;
    for (const auto& file : functions_) {
      // A change of structure may have dropped or outdated a function whose text is the same as before.
      // The last files say who may call what: replacing a function takes that away.
      const bool closing = file.name.starts_with("functions/99_") && !report.applied.empty();
      if (!structure_changed && !closing && !differs(ledger, file)) continue;
      if (report.applied.empty()) complete_ledger(transaction);
      apply(transaction, file, std::nullopt, version_);
      report.applied.emplace_back(file.name);
    }
  });
  return report;
}

void Migrator::require_current(Connection& connection) const {
  constexpr const char* kMend = "holdfast migrate";
  if (!ledger_exists(connection)) {
    throw Error(ErrorClass::unavailable, "the database has no Holdfast schema yet", kMend);
  }
  const Ledger ledger = read_ledger(connection);
  check_history(ledger, numbered_);
  if (highest(ledger) < revision()) {
    throw Error(ErrorClass::unavailable,
                "the database schema is at revision " + std::to_string(highest(ledger)) +
                    ", but this holdfast needs revision " + std::to_string(revision()),
                kMend);
  }
  for (const auto& file : functions_) {
    if (!ledger.contains(std::string(file.name)))
      throw Error(ErrorClass::unavailable, "the database lacks the functions of " + std::string(file.name), kMend);
  }
  const std::string theirs = functions_version(ledger);
  const bool changed =
      std::any_of(functions_.begin(), functions_.end(), [&](const auto& file) { return differs(ledger, file); });
  if (highest(ledger) == revision() && changed && is_earlier(theirs, version_)) {
    throw Error(ErrorClass::unavailable,
                "the database has the functions of release " + theirs + ", but this is release " + version_, kMend);
  }
}

int Migrator::revision() const noexcept { return numbered_.empty() ? 0 : number_of(numbered_.back().name); }

} // namespace holdfast::pg
