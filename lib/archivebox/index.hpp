#pragma once
// The index of an ArchiveBox data directory (index.sqlite3), as versions 0.7 to 0.9 write it. Columns that a version
// does not have are empty. Hostile input: a value may have any type, size and bytes. Works on a copy, so that nothing
// in the directory changes and a running ArchiveBox is not disturbed. Blocking; any thread, one at a time.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sqlite {
class UntrustedDatabase;
}

namespace holdfast::archivebox {

// Texts are valid UTF-8 without NUL; times are as the index has them.
struct Result {
  std::string plugin; // as version 0.9 names it: "archivedotorg", not "archive_org"
  std::string hook;   // "" before version 0.9
  std::string status, output, error;
  std::string started_at, ended_at;
};

struct Snapshot {
  std::string id;        // 32 hex digits
  std::string timestamp; // "1700000000.5": unique in the collection, and the name of its directory before version 0.9
  std::string url, title, status, notes;
  std::string added_at, bookmarked_at, downloaded_at, updated_at;
  std::string crawl_id; // 32 hex digits; "" before version 0.9
  std::int64_t depth{0};
  std::vector<std::string> tags;
  std::vector<Result> results; // in the order of time
};

struct Crawl {
  std::string label, notes, tags, added_at;
  std::int64_t max_depth{0};
};

class Index {
public:
  // Copies the index of `data_dir` into `scratch`, an empty directory. Throws Error(usage) if there is none,
  // Error(refused) if it is no index of ArchiveBox, Error(temporary) if it changes all the time.
  Index(const std::filesystem::path& data_dir, const std::filesystem::path& scratch);
  ~Index();

  // Calls `found` with each snapshot, in the order of ids, and `problem` with rows that cannot be read: "row 12 of
  // core_snapshot", the reason. A false from `found` ends it.
  using Problem = std::function<void(const std::string& where, const std::string& why)>;
  void each_snapshot(const std::function<bool(const Snapshot&)>& found, const Problem& problem) const;
  // Empty if there is none.
  Crawl crawl(const std::string& id) const;
  // Lines of crawls that have not ended and may be URLs; only since version 0.9.
  std::vector<std::string> waiting_urls() const;

private:
  // With the columns that this version has; empty: it has no such table.
  struct Queries {
    std::string snapshot;      // by rowid
    std::string tags, results; // by id
  };
  Queries queries() const;
  std::vector<std::int64_t> rows(const Problem& problem) const;
  // Reads a snapshot again. Empty if the row was deleted. Throws Error if it cannot be read.
  std::optional<Snapshot> snapshot(const Queries& queries, std::int64_t row) const;
  std::string first_column(const std::string& table, const std::vector<std::string>& names, int length) const;
  bool has_table(const std::string& table) const;

  std::unique_ptr<sqlite::UntrustedDatabase> database_;
};

} // namespace holdfast::archivebox
