#include "lib/sqlite/untrusted.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace holdfast::sqlite {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;

namespace {

constexpr const char* kCopy = "copy.sqlite";
constexpr std::array<const char*, 3> kParts = {"", "-wal", "-journal"};
// The end of a journal that names the journal of several databases. SQLite deletes that file after a rollback.
constexpr std::string_view kNamesAnother = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

// A query that reads each row a few times takes about one step per byte of the file.
constexpr std::int64_t kStepsInRound = 1000, kRoundsAtLeast = 10'000;
constexpr std::uintmax_t kStepsOfByte = 16;

[[noreturn]] void refuse(const fs::path& file, const std::string& why, const std::string& remedy = "") {
  throw Error(ErrorClass::refused, file.string() + " " + why, remedy);
}

// Changes if the file is written or replaced.
using Stamp = std::array<std::int64_t, 4>;
Stamp stamp_of(const fs::path& file) {
  struct stat about {};
  if (!base::stat_no_links(file, about)) return {};
  return {about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec, static_cast<std::int64_t>(about.st_ino)};
}

// Returns false if there is no such file.
bool copy_part(const fs::path& from, const fs::path& to, std::uintmax_t largest) {
  fs::remove(to);
  const auto source = base::open_no_links(from, O_RDONLY | O_NONBLOCK);
  if (!source && errno == ENOENT) return false;
  if (!source && errno == ELOOP) refuse(from, "is behind a symbolic link", "copy the file to its place");
  struct stat about {};
  if (!source || ::fstat(source.get(), &about) != 0) refuse(from, "cannot be read: " + base::errno_text(errno));
  if (!S_ISREG(about.st_mode)) refuse(from, "is not a file");
  const auto size = static_cast<std::uintmax_t>(about.st_size);
  if (size > largest) refuse(from, "is larger than " + std::to_string(largest >> 20) + " MB");
  const base::Fd copy(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  bool whole = static_cast<bool>(copy);
  const auto got = base::each_piece(
      source.get(), 0, size, [&](std::string_view piece) { whole = whole && base::write_all(copy.get(), piece); });
  if (got < 0 || !whole)
    throw Error(ErrorClass::input_output, "cannot copy " + from.string() + ": " + base::errno_text(errno));
  return true;
}

// Copies what belongs to the database, at a moment when nothing is written. Returns whether more than the file itself
// was copied.
bool copy_parts(const std::string& from, const std::string& to, std::uintmax_t largest) {
  for (int tries = 0; tries < 5; ++tries) {
    std::array<Stamp, kParts.size()> before{}, after{};
    bool more = false;
    for (std::size_t i = 0; i < kParts.size(); ++i)
      before[i] = stamp_of(from + kParts[i]);
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      const bool found = copy_part(from + kParts[i], to + kParts[i], largest);
      if (!found && i == 0) refuse(from, "cannot be read: " + base::errno_text(ENOENT));
      more = more || (found && i > 0);
    }
    for (std::size_t i = 0; i < kParts.size(); ++i)
      after[i] = stamp_of(from + kParts[i]);
    if (before == after) return more;
  }
  throw Error(ErrorClass::temporary, from + " changes while it is being copied",
              "stop the program that writes it, then try again");
}

void check_journal(const fs::path& copy, const fs::path& original) {
  const base::Fd file(::open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0 || about.st_size < static_cast<off_t>(kNamesAnother.size())) return;
  if (base::holds_at(file.get(), static_cast<std::uint64_t>(about.st_size) - kNamesAnother.size(), kNamesAnother))
    refuse(original, "names another file, which a recovery of the database would delete",
           "let the program that wrote the database recover it, then try again");
}

using Opened = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;
Opened open_copy(const std::string& copy, const fs::path& original, int flags, int longest_row) {
  sqlite3* opened = nullptr;
  const auto uri = "file:" + base::percent_encode(copy) + (flags == SQLITE_OPEN_READONLY ? "?immutable=1" : "");
  const int answer = sqlite3_open_v2(uri.c_str(), &opened, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW, nullptr);
  Opened database(opened, &sqlite3_close_v2);
  if (answer != SQLITE_OK) refuse(original, std::string("cannot be read: ") + sqlite3_errstr(answer));
  // The schema stays trusted, because that of ArchiveBox has checks that SQLite counts as unsafe. has_table() sees to
  // it that none of its expressions is evaluated.
  for (const int off : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                        SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER})
    sqlite3_db_config(opened, off, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, longest_row);
  sqlite3_limit(opened, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_exec(opened, "pragma cell_size_check = on", nullptr, nullptr, nullptr);
  return database;
}

} // namespace

UntrustedDatabase::UntrustedDatabase(const fs::path& directory, const fs::path& name, const fs::path& scratch,
                                     const Limits& limits)
    : file_(directory / name), database_(nullptr, &sqlite3_close_v2) {
  const auto copy = fs::canonical(scratch) / kCopy;
  if (copy_parts((fs::canonical(directory) / name).string(), copy.string(), limits.file)) {
    check_journal(copy.string() + "-journal", file_.string() + "-journal");
    const auto recovered = open_copy(copy.string(), file_, SQLITE_OPEN_READWRITE, limits.row);
    const int answer = sqlite3_exec(recovered.get(), "select 1 from sqlite_schema", nullptr, nullptr, nullptr);
    if (answer != SQLITE_OK) refuse(file_, std::string("cannot be read: ") + sqlite3_errstr(answer));
  }
  database_ = open_copy(copy.string(), file_, SQLITE_OPEN_READONLY, limits.row);
  const auto steps = static_cast<std::int64_t>(fs::file_size(copy) * kStepsOfByte);
  rounds_left_ = std::make_unique<std::int64_t>(kRoundsAtLeast + steps / kStepsInRound);
  sqlite3_progress_handler(
      database_.get(), static_cast<int>(kStepsInRound),
      [](void* left) { return --*static_cast<std::int64_t*>(left) < 0 ? 1 : 0; }, rounds_left_.get());
}

bool UntrustedDatabase::has_table(const std::string& table) const {
  return Query(*this, "select 1 from sqlite_schema where type = 'table' and name = ?1 and rootpage > 0")
             .with(table)
             .next() &&
         !Query(*this, "select 1 from pragma_table_xinfo(?1) where hidden > 0").with(table).next();
}

bool UntrustedDatabase::has_column(const std::string& table, const std::string& column) const {
  return Query(*this, "select 1 from pragma_table_info('" + table + "') where name = ?1").with(column).next();
}

Query::Query(const UntrustedDatabase& database, const std::string& sql)
    : database_(database), statement_(nullptr, &sqlite3_finalize) {
  sqlite3_stmt* prepared = nullptr;
  const int answer = sqlite3_prepare_v2(database.database_.get(), sql.c_str(), -1, &prepared, nullptr);
  statement_.reset(prepared);
  if (answer != SQLITE_OK) fail();
}

Query& Query::with(const std::string& text) {
  sqlite3_bind_text(statement_.get(), 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  return *this;
}

Query& Query::with(std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), 1, number);
  return *this;
}

bool Query::next() {
  const int answer = sqlite3_step(statement_.get());
  if (answer != SQLITE_ROW && answer != SQLITE_DONE) fail();
  return answer == SQLITE_ROW;
}

std::string Query::bytes(int column) const {
  const bool blob = sqlite3_column_type(statement_.get(), column) == SQLITE_BLOB;
  const void* const bytes = blob ? sqlite3_column_blob(statement_.get(), column)
                                 : static_cast<const void*>(sqlite3_column_text(statement_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes == nullptr ? "" : std::string(static_cast<const char*>(bytes), size);
}

std::int64_t Query::number(int column) const { return sqlite3_column_int64(statement_.get(), column); }

void Query::fail() const {
  const bool endless = *database_.rounds_left_ < 0;
  refuse(database_.file_,
         std::string("cannot be read: ") + (endless ? "it takes more steps than a file of its size needs"
                                                    : sqlite3_errmsg(database_.database_.get())));
}

} // namespace holdfast::sqlite
