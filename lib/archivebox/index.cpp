#include "lib/archivebox/index.hpp"

#include "lib/archivebox/layout.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/sqlite/untrusted.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace holdfast::archivebox {

using base::Error;
using base::ErrorClass;
using sqlite::Query;
namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t kLargestFile = std::numeric_limits<std::int64_t>::max();
constexpr int kLongestRow = 64 * 1024 * 1024; // a longer one is not read
constexpr int kLongestText = 16 * 1024;
constexpr int kLongestResults = 2000; // of a snapshot
constexpr const char* kIndexFile = "index.sqlite3";

// A text of the index is valid UTF-8 without NUL.
std::string text_at(const Query& query, int column) {
  auto text = base::repair_utf8(query.bytes(column));
  text.erase(std::remove(text.begin(), text.end(), '\0'), text.end());
  return text;
}

// An id of Django in one spelling; "" if it is none.
std::string plain_id(const std::string& text) {
  auto id = base::lower_case(text);
  std::erase(id, '-');
  const bool plain =
      id.size() == 32 && std::all_of(id.begin(), id.end(), [](char c) { return base::hex_value(c) >= 0; });
  return plain ? id : "";
}

} // namespace

Index::Index(const fs::path& data_dir, const fs::path& scratch) {
  const auto name = (data_dir / kIndexFile).string();
  std::error_code none;
  if (fs::symlink_status(name, none).type() == fs::file_type::not_found)
    throw Error(ErrorClass::usage,
                data_dir.string() + " is not a data directory of ArchiveBox: it has no file " + kIndexFile);
  database_ = std::make_unique<sqlite::UntrustedDatabase>(data_dir, kIndexFile, scratch,
                                                          sqlite::UntrustedDatabase::Limits{kLargestFile, kLongestRow});
  if (!has_table("core_snapshot"))
    throw Error(ErrorClass::refused, name + " is not an index of ArchiveBox: it has no table core_snapshot",
                "ArchiveBox 0.7 and later have one");
}

Index::~Index() = default;

bool Index::has_table(const std::string& table) const { return database_->has_table(table); }

// The first of these columns that the table has, as a text of at most `length` characters; else an empty text.
std::string Index::first_column(const std::string& table, const std::vector<std::string>& names, int length) const {
  for (const auto& name : names)
    if (database_->has_column(table, name))
      return "substr(cast(\"" + name + "\" as text), 1, " + std::to_string(length) + ")";
  return "''";
}

namespace {

void read_tags(Query& query, Snapshot& snapshot) {
  while (query.next())
    if (auto tag = text_at(query, 0); !tag.empty()) snapshot.tags.push_back(std::move(tag));
}

void read_results(Query& query, Snapshot& snapshot) {
  while (query.next())
    snapshot.results.push_back({plugin_name(text_at(query, 0)), text_at(query, 1), text_at(query, 2), text_at(query, 3),
                                text_at(query, 6), text_at(query, 4), text_at(query, 5)});
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
    Query ids(*database_, "select rowid from core_snapshot order by id");
    while (ids.next())
      rows.push_back(ids.number(0));
  } catch (const Error& error) {
    problem("table core_snapshot after " + std::to_string(rows.size()) + " rows", error.what());
  }
  return rows;
}

std::optional<Snapshot> Index::snapshot(const Queries& queries, std::int64_t row) const {
  Query query(*database_, queries.snapshot);
  if (!query.with(row).next()) return std::nullopt;
  const auto id = text_at(query, 0);
  Snapshot snapshot{plain_id(id),
                    text_at(query, 1),
                    text_at(query, 2),
                    text_at(query, 3),
                    text_at(query, 4),
                    text_at(query, 5),
                    text_at(query, 6),
                    text_at(query, 7),
                    text_at(query, 8),
                    text_at(query, 9),
                    plain_id(text_at(query, 10)),
                    query.number(11),
                    {},
                    {}};
  if (snapshot.id.empty()) throw Error(ErrorClass::refused, "its id is not a UUID");
  if (!queries.tags.empty()) {
    Query tags(*database_, queries.tags);
    read_tags(tags.with(id), snapshot);
  }
  if (!queries.results.empty()) {
    Query results(*database_, queries.results);
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
  Query query(*database_, "select substr(cast(urls as text), 1, 16777216) from crawls_crawl where status in "
                          "('queued', 'started', 'paused') order by id");
  while (query.next()) {
    for (auto& line : base::split(text_at(query, 0), "\n"))
      urls.push_back(std::move(line));
  }
  return urls;
}

Crawl Index::crawl(const std::string& id) const {
  if (id.empty() || !has_table("crawls_crawl")) return {};
  const auto column = [&](const std::string& name, int length) { return first_column("crawls_crawl", {name}, length); };
  Query query(*database_,
              "select " + column("label", 1000) + ", " + column("notes", kLongestText) + ", " +
                  column("tags_str", 1000) + ", " + column("created_at", 64) + ", " + column("max_depth", 20) +
                  " from crawls_crawl where id in (?1, substr(?1, 1, 8) || '-' || substr(?1, 9, 4) || '-' || "
                  "substr(?1, 13, 4) || '-' || substr(?1, 17, 4) || '-' || substr(?1, 21))");
  if (!query.with(id).next()) return {};
  return {text_at(query, 0), text_at(query, 1), text_at(query, 2), text_at(query, 3), query.number(4)};
}

} // namespace holdfast::archivebox
