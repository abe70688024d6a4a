#include "lib/wacz/sorted_lines.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <filesystem>

namespace holdfast::wacz {

namespace {

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw base::Error(base::ErrorClass::cannot_create,
                    what + " in " + std::filesystem::temp_directory_path().string() + ": " + why,
                    "TMPDIR names another directory");
}

void check(sqlite3* database, int answer) {
  if (answer != SQLITE_OK && answer != SQLITE_DONE && answer != SQLITE_ROW)
    fail("cannot sort lines", database == nullptr ? "no memory" : sqlite3_errmsg(database));
}

SortedLines::Statement prepared(sqlite3* database, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  check(database, sqlite3_prepare_v2(database, sql, -1, &statement, nullptr));
  return {statement, &sqlite3_finalize};
}

} // namespace

base::Fd temporary_file() {
  auto file = base::unnamed_file(std::filesystem::temp_directory_path());
  if (!file) fail("cannot create a file", base::errno_text(errno));
  return file;
}

void write_all(int file, std::string_view bytes) {
  if (!base::write_all(file, bytes)) fail("cannot write a file", base::errno_text(errno));
}

SortedLines::SortedLines() : database_(nullptr, &sqlite3_close), insert_(nullptr, &sqlite3_finalize) {
  sqlite3* database = nullptr;
  const int answer = sqlite3_open("", &database); // without a name: a temporary file, once memory does not suffice
  database_.reset(database);
  check(database, answer);
  check(database, sqlite3_exec(database,
                               "pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -65536;"
                               "create table line (line blob)",
                               nullptr, nullptr, nullptr));
  insert_ = prepared(database, "insert into line values (?)");
}

void SortedLines::add(std::string_view line) {
  if (sqlite3_get_autocommit(database_.get()) != 0)
    check(database_.get(), sqlite3_exec(database_.get(), "begin", nullptr, nullptr, nullptr));
  check(database_.get(), sqlite3_bind_blob64(insert_.get(), 1, line.data(), line.size(), SQLITE_STATIC));
  check(database_.get(), sqlite3_step(insert_.get()));
  sqlite3_reset(insert_.get());
}

void SortedLines::each(const std::function<void(const std::string&)>& take) {
  const auto sorted = prepared(database_.get(), "select line from line order by line");
  int answer = SQLITE_ROW;
  while ((answer = sqlite3_step(sorted.get())) == SQLITE_ROW) {
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(sorted.get(), 0));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(sorted.get(), 0));
    take(size == 0 ? std::string() : std::string(bytes, size));
  }
  check(database_.get(), answer);
}

} // namespace holdfast::wacz
