#pragma once
// Queries of `holdfast verify` (migrations/functions/93_search.sql). Blocking; call on the thread that owns the
// connection.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct SealedFiles {
  std::string snapshot_id, url, created_at;
  std::string directory, manifest_sha256; // empty: it was sealed without files
};

// Sealed snapshots in the order of their ids, after `after`. `id`: a snapshot or a crawl; nullopt: all there are.
std::vector<SealedFiles> sealed_files(pg::Connection& connection, const std::optional<std::string>& id,
                                      const std::optional<std::string>& after, int limit);
// Returns one in `every` recent snapshots that have records in WARC files and were not replayed (or tried): the newest
// first.
std::vector<SealedFiles> replays_due(pg::Connection& connection, int every, std::chrono::seconds within, int limit);
std::string collection_id(pg::Connection& connection);

} // namespace holdfast::store
