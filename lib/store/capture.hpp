#pragma once
// Contents of the archive: the index of its WARC files, and the sealed snapshots with their files, for replay, exports
// and verification (migrations/functions/42_capture.sql, 42_replay.sql, 43_export.sql, 93_search.sql). Blocking; call
// on the thread that owns the connection.

#include "lib/pg/connection.hpp"
#include "lib/warc/capture.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::store {

// `file` is relative to the archive root.
struct Capture : warc::Capture {
  std::string snapshot_id, crawl_id;
};

struct CaptureQuery {
  std::string first, end;                        // keys k with first <= k < end
  std::string from{"-infinity"}, to{"infinity"}; // times as PostgreSQL reads them
  std::string filters{"[]"};                     // the argument of holdfast.capture_passes()
  bool newest{false};                            // the latest first
  std::int64_t offset{0}, limit{1000};
};
// By key, then by time.
std::vector<Capture> captures(pg::Connection& connection, const CaptureQuery& query);
// Counts them all, whatever offset and limit are.
std::int64_t captures_count(pg::Connection& connection, const CaptureQuery& query);
// Returns captures of one key, the closest to a time first: at most the query's limit, of its times and filters.
std::vector<Capture> captures_closest(pg::Connection& connection, const std::string& key, const std::string& at,
                                      const CaptureQuery& query);

// Records of other snapshots to which revisit records of this one refer.
std::vector<Capture> originals_of(pg::Connection& connection, const std::string& snapshot);
// Returns the record of what a URL answered with in a snapshot; of a revisit record, the one to which it refers.
std::optional<Capture> capture_in(pg::Connection& connection, const std::string& snapshot, const std::string& key);
// Revisit records of a snapshot to which no record holds the payload.
std::vector<Capture> revisits_broken(pg::Connection& connection, const std::string& snapshot);

// A body that a URL answered with: the URL's key and the payload's digest.
using Payload = std::pair<std::string, std::string>;
// Sealed records that hold some of these payloads, one for each, in files of the archive. `crawl`: only of this one.
std::vector<Capture> captures_stored(pg::Connection& connection, const std::vector<Payload>& payloads,
                                     const std::optional<std::string>& crawl, std::uint64_t least_length);

// A record of a removed snapshot that must stay, and where.
struct KeptCapture {
  std::string snapshot_id, file, source_file;
  std::int64_t position{0};
  std::uint64_t source_offset{0}, length{0};
};
// Returns records in directories that are to be deleted and have no file of their own yet.
std::vector<KeptCapture> captures_to_move(pg::Connection& connection, const std::vector<std::string>& directories);

// Queries of `holdfast export`:

struct ExportQuery {
  std::optional<std::vector<std::string>> ids; // crawls and snapshots; nullopt: all
  std::optional<std::string> tag, host, since, until;
  std::optional<std::string> shelf; // id: only its pages, in its order; then without ids
};

struct ExportedSnapshot {
  std::string id, crawl_id, url, title, date, directory; // date: "2026-01-31T23:59:59Z", when it was captured
  std::vector<std::string> tags;
  std::string notes, bookmarked; // bookmarked: as the date; "": not known
};

// Hands on all of them in the order of their ids or of the shelf, at most so many at once.
void each_exported(pg::Connection& connection, const ExportQuery& query, std::int64_t at_once,
                   const std::function<void(const std::vector<ExportedSnapshot>&)>& take);
// By snapshot and file.
std::vector<Capture> captures_of(pg::Connection& connection, const std::vector<std::string>& snapshots);

// Queries of `holdfast verify`:

struct SealedFiles {
  std::string snapshot_id, url, created_at;
  std::string directory, manifest_sha256; // empty: it was sealed without files
};

// Hands on the sealed snapshots in the order of their ids. `id`: a snapshot or a crawl; nullopt: all there are.
void each_sealed(pg::Connection& connection, const std::optional<std::string>& id,
                 const std::function<void(const SealedFiles&)>& take);
// Returns one in `every` recent snapshots that have records in WARC files and were not replayed (or tried): the newest
// first.
std::vector<SealedFiles> replays_due(pg::Connection& connection, int every, std::chrono::seconds within, int limit);
std::string collection_id(pg::Connection& connection);

} // namespace holdfast::store
