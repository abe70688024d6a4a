#pragma once
// Brings a database to the schema that this binary was built with. Numbered files hold tables and never change after
// their release. Function files hold their whole current text. Both are embedded in the binary (target
// holdfast_migrations). holdfast.schema_migration, which the first numbered file creates, records applied files. Files
// must not contain transaction control. Blocking; one thread, one connection.
//
// The highest number is the schema's revision. During an upgrade, programs of several releases share one schema. A
// database that is ahead serves older programs, until a numbered file that begins with "-- Breaking:" was applied.

#include "lib/pg/connection.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::pg {

struct MigrationFile {
  std::string_view name; // "0001_basics.sql" or "functions/21_worker.sql"
  std::string_view text; // the whole file
};

struct MigrationReport {
  std::vector<std::string> applied; // names, in order; empty if there was nothing to do
  int revision{0};                  // highest number in the database now
  bool may_change{true};            // false: the login may not change the schema, which is current
};

struct MigrateOptions {
  bool force{false}; // apply a breaking file although programs run that are too old for it
};

class Migrator {
public:
  // `numbered` sorted by number, `functions` in the order in which they are applied. Throws Error(bug) otherwise.
  Migrator(std::vector<MigrationFile> numbered, std::vector<MigrationFile> functions);

  // Applies the missing numbered files and, if any function file differs or structure changed, all function files. One
  // transaction, under an advisory lock; waits at most 60 s for locks, then throws Error(temporary). Retries when
  // PostgreSQL chose it to end a deadlock with running programs. Leaves a database that is ahead unchanged. A breaking
  // file is applied only if holdfast.shut_out_older_programs() agrees, else Error(refused) lists the running programs.
  // Throws as require_current() does if the history does not match, and Error(configuration) with all unmet
  // preconditions. A file that fails leaves nothing behind; the error names it.
  MigrationReport migrate(Connection& connection, const MigrateOptions& options = {}) const;

  // Called at the start of every program. Throws Error(schema_mismatch) if the database demands a newer program or was
  // made by another build, and Error(unavailable) with the hint "holdfast migrate" if it is behind or has other
  // functions of the same revision.
  void require_current(Connection& connection) const;
  bool is_current(Connection& connection) const;

  int revision() const noexcept; // highest number embedded

private:
  MigrationReport migrate_once(Connection& connection, const MigrateOptions& options) const;
  void apply_functions(Transaction& transaction, MigrationReport& report) const;

  std::vector<MigrationFile> numbered_;
  std::vector<MigrationFile> functions_;
};

// Precondition of a server for a schema in one of its databases: "a database in UTF8, not LATIN1", and its remedy.
struct Precondition {
  std::string what, remedy;
};
// Returns the preconditions that this session's database, server and user do not meet.
std::vector<Precondition> unmet_preconditions(Connection& connection);

} // namespace holdfast::pg
