#pragma once
// The schema this binary was built with. Stateless; any thread.

#include "lib/pg/migrator.hpp"

namespace holdfast::store {

// For tests of upgrades: files of the directory HOLDFAST_TEST_MIGRATIONS (NNNN_name.sql, functions/NN_name.sql) are
// added to those in the binary, or replace them, as if it were of a later release.
const pg::Migrator& migrator();

// migrator().migrate(), but refuses (Error(refused)) to shut out programs that are running now, unless `force`.
pg::MigrationReport migrate(pg::Connection& connection, bool force = false);

} // namespace holdfast::store
