#pragma once
// Opens an untrusted SQLite database. Needs libsqlite3.

#include <sqlite3.h>

namespace holdfast::base {

// The file may be made to do harm: views and triggers do nothing, and a row has a bound. The schema stays trusted: that
// of ArchiveBox has checks with json_valid(), which SQLite counts as unsafe.
inline void distrust(sqlite3* database, int longest_row) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, longest_row);
  sqlite3_exec(database, "pragma cell_size_check = on", nullptr, nullptr, nullptr);
}

} // namespace holdfast::base
