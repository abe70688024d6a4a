#pragma once
// Brings a database to the schema this binary was built with. Structure lives in numbered files that never change once
// released; functions live in files that are replaced whole whenever their text changes. Both are embedded in the
// binary (target holdfast_migrations). What has been applied is recorded in holdfast.schema_migration, which the
// migrator creates (schema included), so no file may create that schema unconditionally. Files must not contain
// transaction control. Blocking; one thread, one connection.
//
// Programs of different releases share one schema while a cluster is upgraded: a database that is ahead serves older
// programs as well, until a numbered file that begins with "-- Breaking:" has been applied. The number of the last such
// file is the least revision that a program must have. Of two releases of one revision the one with the higher version
// has the functions: it needs no numbered file to bring new ones, and the other does not take them back.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::pg {

struct MigrationFile {
  std::string_view name; // "0001_schema.sql" or "functions/node.sql"
  std::string_view text; // the whole file
};

struct MigrationReport {
  std::vector<std::string> applied; // names, in order; empty when nothing was to be done
  int revision{0};                  // highest numbered migration now in the database
};

// Called within the migration, before a file is applied that shuts out programs below `minimum`; throws to refuse.
using BeforeBreaking = std::function<void(Transaction& transaction, int minimum)>;

class Migrator {
public:
  // `numbered` sorted by number, `functions` in the order in which they must be applied. Throws Error(bug) otherwise.
  // `version`: of this release, "1.20.3"; empty: not told, then the functions of whoever comes last count.
  Migrator(std::vector<MigrationFile> numbered, std::vector<MigrationFile> functions, std::string version = {});

  // Applies what is missing, all in one transaction under an advisory lock of the database (waits for a rival at most
  // 60 s, then Error(temporary)). Functions are applied when their text differs from what is recorded, and all of them
  // after a change of structure. A database that is ahead of this binary, but serves it, is left as it is. Throws
  // Error(schema_mismatch) if the database demands a newer binary, or if an applied numbered file's checksum differs
  // from ours. A file that fails leaves nothing behind; the error names it. Begins anew, a few times, when it was
  // chosen to end a deadlock with programs that are running.
  MigrationReport migrate(Connection& connection, const BeforeBreaking& before_breaking = {}) const;

  // What a service calls at start: throws Error(schema_mismatch) if the schema demands a newer binary, and
  // Error(unavailable) with the hint "holdfast migrate" if it is older or absent, or has the functions of an earlier
  // release. Functions of another text are taken from the same release or a later one: their signatures are a promise.
  void require_current(Connection& connection) const;

  int revision() const noexcept; // highest number embedded

private:
  MigrationReport migrate_once(Connection& connection, const BeforeBreaking& before_breaking) const;

  std::vector<MigrationFile> numbered_;
  std::vector<MigrationFile> functions_;
  std::string version_;
};

} // namespace holdfast::pg
