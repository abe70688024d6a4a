#pragma once
// The parts of the pages that follow the database, as HTML. Each reads what it shows; blocking, on the thread that owns
// the connection.

#include "lib/pg/connection.hpp"
#include "services/serve/files.hpp"

#include <optional>
#include <string>

namespace holdfast::serve {

inline constexpr int kPage = 48; // snapshots on a page

// Where the browser finds archived files.
struct Links {
  const Files* files{nullptr}; // null: nowhere
  std::string origin;

  std::string file(const std::string& path) const; // an address, escaped for HTML
};

std::string numbers_section(pg::Connection& connection);
std::string crawls_section(pg::Connection& connection);
std::string stuck_section(pg::Connection& connection);
std::string running_section(pg::Connection& connection);
std::string failures_section(pg::Connection& connection);
std::string workers_section(pg::Connection& connection);
std::string tree_section(pg::Connection& connection);
std::string ended_section(pg::Connection& connection);
std::string hosts_section(pg::Connection& connection);
std::string events_section(pg::Connection& connection);
// Empty if there is no such crawl.
std::string crawl_section(pg::Connection& connection, const std::string& id);
// Its snapshots older than `before`, newest first.
std::string gallery_section(pg::Connection& connection, const std::string& crawl,
                            const std::optional<std::string>& before, const Links& links);

// All empty if there is no such snapshot.
struct SnapshotSections {
  std::string title; // plain text
  std::string head, shot, results;
};
SnapshotSections snapshot_sections(pg::Connection& connection, const std::string& id, const Links& links);

} // namespace holdfast::serve
