#pragma once
// A SQLite database that is untrusted input. A plain open would roll back a journal that names any file of the user as
// one to delete, follow links, and evaluate expressions of the schema. Therefore the constructor copies the file and
// what belongs to it into a private directory, refuses what has effects outside of that directory, and opens the copy
// read-only and immutable. The steps of all queries together are bounded by the size of the file. Blocking; any thread,
// one at a time.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::sqlite {

class UntrustedDatabase {
public:
  struct Limits {
    std::uintmax_t file; // bytes of the database, and of its journal
    int row;             // bytes of a row
  };
  // `name`: relative to `directory`. `scratch`: a directory that only this user may write. Throws Error(refused) if the
  // file cannot be read or is not safe to read, and Error(temporary) if it changes while it is copied.
  UntrustedDatabase(const std::filesystem::path& directory, const std::filesystem::path& name,
                    const std::filesystem::path& scratch, const Limits& limits);

  // False also for a view, a virtual table, and a table whose columns are computed: these run code of the file.
  bool has_table(const std::string& table) const;
  bool has_column(const std::string& table, const std::string& column) const;

private:
  friend class Query;
  const std::filesystem::path file_; // for messages
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_;
  std::unique_ptr<std::int64_t> rounds_left_; // of the progress handler
};

// A running query of text that is ours. Its functions throw Error(refused).
class Query {
public:
  Query(const UntrustedDatabase& database, const std::string& sql);

  Query& with(const std::string& text);
  Query& with(std::int64_t number);
  bool next(); // false: there are no more rows
  // Return a value of the row.
  std::string bytes(int column) const;
  std::int64_t number(int column) const;

private:
  [[noreturn]] void fail() const;
  const UntrustedDatabase& database_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_;
};

} // namespace holdfast::sqlite
