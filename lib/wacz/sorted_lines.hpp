#pragma once
// Any number of lines in the order of their bytes, in bounded memory: SQLite sorts them, in a temporary file. Used from
// one thread.

#include "lib/base/file.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::wacz {

class SortedLines {
public:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;
  SortedLines();
  void add(std::string_view line); // without a line end
  void each(const std::function<void(const std::string&)>& take);

private:
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_;
  Statement insert_;
};

// An open file without a name in the temporary directory.
base::Fd temporary_file();
void write_all(int file, std::string_view bytes);

} // namespace holdfast::wacz
