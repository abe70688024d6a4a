#pragma once
// What `holdfast export` reads (migrations/functions/43_export.sql). Blocking; call on the thread that owns the
// connection.

#include "lib/store/capture.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct ExportQuery {
  std::optional<std::vector<std::string>> ids; // crawls and snapshots; nullopt: all
  std::optional<std::string> tag, host, since, until;
};

struct ExportedSnapshot {
  std::string id, crawl_id, url, title, date, directory; // date: "2026-01-31T23:59:59Z", when it was captured
};

// In the order of their ids, after `after`.
std::vector<ExportedSnapshot> export_snapshots(pg::Connection& connection, const ExportQuery& query,
                                               const std::optional<std::string>& after, std::int64_t limit);
// By snapshot and file.
std::vector<Capture> captures_of(pg::Connection& connection, const std::vector<std::string>& snapshots);

} // namespace holdfast::store
