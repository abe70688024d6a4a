#include "lib/archivebox/index.hpp"

#include "lib/archivebox/layout.hpp"
#include "lib/base/error.hpp"
#include "lib/base/strange_sqlite.hpp"
#include "lib/base/text/text.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace holdfast::archivebox {

using base::Error;
using base::ErrorClass;
namespace fs = std::filesystem;

namespace {

constexpr int kLongestRow = 64 * 1024 * 1024; // a longer one is not read
constexpr int kLongestText = 16 * 1024;
constexpr int kLongestResults = 2000; // of a snapshot
constexpr const char* kIndexFile = "index.sqlite3";
constexpr std::array<const char*, 3> kIndexFiles = {kIndexFile, "index.sqlite3-wal", "index.sqlite3-journal"};

using Stamp = std::array<std::array<std::int64_t, 4>, kIndexFiles.size()>;
Stamp stamp_of(const fs::path& directory) {
  Stamp stamp{};
  for (std::size_t i = 0; i < kIndexFiles.size(); ++i) {
    struct stat about {};
    if (::stat((directory / kIndexFiles[i]).c_str(), &about) == 0)
      stamp[i] = {about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec, static_cast<std::int64_t>(about.st_ino)};
  }
  return stamp;
}

// Copies a file. Returns false if it does not exist.
bool copy_one(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::status(from, error).type() == fs::file_type::not_found) return false;
  if (!error && !fs::is_regular_file(from, error)) throw Error(ErrorClass::refused, from.string() + " is not a file");
  if (!error) fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write, error);
  if (error) throw Error(ErrorClass::input_output, "cannot copy " + from.string() + ": " + error.message());
  return true;
}

// A copy that was taken while nothing was written.
void copy_index(const fs::path& data_dir, const fs::path& scratch) {
  for (int tries = 0; tries < 5; ++tries) {
    const auto before = stamp_of(data_dir);
    for (const char* name : kIndexFiles) {
      fs::remove(scratch / name);
      if (!copy_one(data_dir / name, scratch / name) && name == kIndexFile)
        throw Error(ErrorClass::usage,
                    data_dir.string() + " is not a data directory of ArchiveBox: it has no file " + kIndexFile);
    }
    if (stamp_of(data_dir) == before) return;
  }
  throw Error(ErrorClass::temporary, (data_dir / kIndexFile).string() + " changes while it is being copied",
              "stop ArchiveBox, then try again");
}

// A query; the destructor ends it.
class Query {
public:
  Query(sqlite3* database, const std::string& sql) : database_(database) {
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) fail();
  }
  ~Query() { sqlite3_finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& with(const std::string& text) {
    sqlite3_bind_text(statement_, 1, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Query& with(std::int64_t number) {
    sqlite3_bind_int64(statement_, 1, number);
    return *this;
  }
  bool next() {
    const int answer = sqlite3_step(statement_);
    if (answer == SQLITE_ROW) return true;
    if (answer != SQLITE_DONE) fail();
    return false;
  }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (bytes == nullptr) return "";
    auto text = base::repair_utf8({bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))});
    text.erase(std::remove(text.begin(), text.end(), '\0'), text.end());
    return text;
  }
  std::int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }

private:
  [[noreturn]] void fail() const { throw Error(ErrorClass::refused, sqlite3_errmsg(database_)); }
  sqlite3* const database_;
  sqlite3_stmt* statement_{nullptr};
};

// An id of Django in one spelling; "" if it is none.
std::string plain_id(const std::string& text) {
  auto id = base::lower_case(text);
  std::erase(id, '-');
  const bool plain =
      id.size() == 32 && std::all_of(id.begin(), id.end(), [](char c) { return base::hex_value(c) >= 0; });
  return plain ? id : "";
}

} // namespace

Index::Index(const fs::path& data_dir, const fs::path& scratch) : database_(nullptr, &sqlite3_close_v2) {
  copy_index(data_dir, scratch);
  const auto name = (data_dir / kIndexFile).string();
  sqlite3* opened = nullptr;
  const int answer = sqlite3_open_v2((scratch / kIndexFile).c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  database_.reset(opened);
  if (answer != SQLITE_OK)
    throw Error(ErrorClass::refused,
                "cannot open " + name + ": " + (opened == nullptr ? "no memory" : sqlite3_errmsg(opened)));
  base::distrust(opened, kLongestRow);
  try {
    if (!has_table("core_snapshot"))
      throw Error(ErrorClass::refused, "it has no table core_snapshot", "ArchiveBox 0.7 and later have one");
  } catch (const Error& error) {
    throw Error(ErrorClass::refused, name + " is not an index of ArchiveBox: " + error.what(), error.hint());
  }
}

bool Index::has_table(const std::string& table) const {
  return Query(database_.get(), "select 1 from sqlite_master where type = 'table' and name = ?1").with(table).next();
}

// The first of these columns that the table has, as a text of at most `length` characters; else an empty text.
std::string Index::first_column(const std::string& table, const std::vector<std::string>& names, int length) const {
  for (const auto& name : names)
    if (Query(database_.get(), "select 1 from pragma_table_info('" + table + "') where name = ?1").with(name).next())
      return "substr(cast(\"" + name + "\" as text), 1, " + std::to_string(length) + ")";
  return "''";
}

namespace {

void read_tags(Query& query, Snapshot& snapshot) {
  while (query.next())
    if (auto tag = query.text(0); !tag.empty()) snapshot.tags.push_back(std::move(tag));
}

void read_results(Query& query, Snapshot& snapshot) {
  while (query.next())
    snapshot.results.push_back({plugin_name(query.text(0)), query.text(1), query.text(2), query.text(3), query.text(6),
                                query.text(4), query.text(5)});
}

} // namespace

Index::Queries Index::queries() const {
  const auto column = [&](const std::vector<std::string>& names, int length = 64) {
    return first_column("core_snapshot", names, length);
  };
  const auto of_result = [&](const std::vector<std::string>& names, int length = 64) {
    return first_column("core_archiveresult", names, length);
  };
  Queries queries;
  queries.snapshot = "select " + column({"id"}) + ", " + column({"timestamp"}) + ", " + column({"url"}, 9000) + ", " +
                     column({"title"}, 2000) + ", " + column({"status"}) + ", " + column({"notes"}, kLongestText) +
                     ", " + column({"created_at", "added"}) + ", " + column({"bookmarked_at"}) + ", " +
                     column({"downloaded_at"}) + ", " + column({"modified_at", "updated"}) + ", " +
                     column({"crawl_id"}) + ", " + column({"depth"}) + ", id from core_snapshot where rowid = ?1";
  if (has_table("core_archiveresult")) {
    const bool processes = of_result({"process_id"}) != "''" && has_table("machine_process");
    queries.results =
        "select " + of_result({"plugin", "extractor"}) + ", " + of_result({"hook_name"}, 255) + ", " +
        of_result({"status"}) + ", " + of_result({"output_str", "output"}, 4000) + ", " + of_result({"start_ts"}) +
        ", " + of_result({"end_ts"}) + ", " +
        (processes ? "(select substr(cast(p.stderr as text), -2000) from machine_process p where p.id = process_id)"
                   : "''") +
        " from core_archiveresult where snapshot_id = ?1 order by start_ts limit " + std::to_string(kLongestResults);
  }
  if (has_table("core_snapshot_tags") && has_table("core_tag"))
    queries.tags = "select substr(cast(t.name as text), 1, 255) from core_snapshot_tags s join core_tag t "
                   "on t.id = s.tag_id where s.snapshot_id = ?1 order by t.name";
  return queries;
}

std::vector<std::int64_t> Index::rows(const Problem& problem) const {
  std::vector<std::int64_t> rows;
  try {
    Query ids(database_.get(), "select rowid from core_snapshot order by id");
    while (ids.next())
      rows.push_back(ids.number(0));
  } catch (const Error& error) {
    problem("table core_snapshot after " + std::to_string(rows.size()) + " rows", error.what());
  }
  return rows;
}

std::optional<Snapshot> Index::snapshot(const Queries& queries, std::int64_t row) const {
  Query query(database_.get(), queries.snapshot);
  if (!query.with(row).next()) return std::nullopt;
  const auto id = query.text(0);
  Snapshot snapshot{plain_id(id),
                    query.text(1),
                    query.text(2),
                    query.text(3),
                    query.text(4),
                    query.text(5),
                    query.text(6),
                    query.text(7),
                    query.text(8),
                    query.text(9),
                    plain_id(query.text(10)),
                    query.number(11),
                    {},
                    {}};
  if (snapshot.id.empty()) throw Error(ErrorClass::refused, "its id is not a UUID");
  if (!queries.tags.empty()) {
    Query tags(database_.get(), queries.tags);
    read_tags(tags.with(id), snapshot);
  }
  if (!queries.results.empty()) {
    Query results(database_.get(), queries.results);
    read_results(results.with(id), snapshot);
  }
  return snapshot;
}

void Index::each_snapshot(const std::function<bool(const Snapshot&)>& found, const Problem& problem) const {
  const auto queries = this->queries();
  for (const auto row : rows(problem)) {
    std::optional<Snapshot> one;
    try {
      one = snapshot(queries, row);
    } catch (const Error& error) {
      problem("row " + std::to_string(row) + " of core_snapshot", error.what());
    }
    if (one && !found(*one)) return;
  }
}

std::vector<std::string> Index::waiting_urls() const {
  if (!has_table("crawls_crawl") || first_column("crawls_crawl", {"urls"}, 1) == "''") return {};
  std::vector<std::string> urls;
  Query query(database_.get(), "select substr(cast(urls as text), 1, 16777216) from crawls_crawl where status in "
                               "('queued', 'started', 'paused') order by id");
  while (query.next()) {
    for (auto& line : base::split(query.text(0), "\n"))
      urls.push_back(std::move(line));
  }
  return urls;
}

Crawl Index::crawl(const std::string& id) const {
  if (id.empty() || !has_table("crawls_crawl")) return {};
  const auto column = [&](const std::string& name, int length) { return first_column("crawls_crawl", {name}, length); };
  Query query(database_.get(), "select " + column("label", 1000) + ", " + column("notes", kLongestText) + ", " +
                                   column("tags_str", 1000) + ", " + column("created_at", 64) + ", " +
                                   column("max_depth", 20) + " from crawls_crawl where replace(id, '-', '') = ?1");
  if (!query.with(id).next()) return {};
  return {query.text(0), query.text(1), query.text(2), query.text(3), query.number(4)};
}

} // namespace holdfast::archivebox
