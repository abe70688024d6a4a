#pragma once
// Brings the archive after the collection: deletes the files of removed snapshots (holdfast.purge lists them) and
// writes the pages of crawls that have changed. And the collection after the archive: adds the texts of pages that were
// lost between their seal and text_keep(). Owned by a worker's housekeeping, and by the leading runner; main
// thread only, the deleting itself on the `files` thread.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/pg/connection.hpp"
#include "lib/pg/pool.hpp"

#include <boost/asio/thread_pool.hpp>
#include <spdlog/common.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::maintenance {

class ArchiveMaintenance {
public:
  // Minimum ages of work before it is done here; until then it is left to others.
  struct Ages {
    std::chrono::milliseconds files, pages;
  };

  // Constructs it. `level`: log level of failures, once each. `text_bytes`: most text of a page in the index; 0: texts
  // are left to others.
  ArchiveMaintenance(pg::Pool& pool, boost::asio::thread_pool& files, Ages ages, spdlog::level::level_enum level,
                     std::uint64_t text_bytes)
      : pool_(pool), files_(files), ages_(ages), level_(level), text_bytes_(text_bytes) {}

  awaitable<bool> due();
  // Deletes and writes a few; returns how many. A row leaves the list after its directory, so that a crash between the
  // two changes nothing.
  awaitable<int> step(const archive::Root& root);

private:
  awaitable<void> add_texts(const archive::Root& root);
  void refuse(const std::string& what, const std::string& why);

  pg::Pool& pool_;
  boost::asio::thread_pool& files_;
  const Ages ages_;
  const spdlog::level::level_enum level_;
  const std::uint64_t text_bytes_;
  std::optional<std::string> looked_at_; // the last snapshot whose text was looked for; nullopt: begin with the first
  std::set<std::string> refused_;        // logged once
};

// Before the files of removed snapshots are deleted: records to which others refer get files of their own.
// `directories`: as store::purge_list() lists them. Blocking; on the thread that owns the connection. May be repeated.
void keep_captures(pg::Connection& connection, const archive::Root& root, const std::vector<std::string>& directories);

// The page of a crawl: <archive root>/crawls/<crawl-id>/index.html, made from the database when the crawl is sealed,
// and again after each change or removal of a part (holdfast.crawl_page_stale). It is derived: losing it loses nothing.
// Blocking; any thread with a connection of its own.

// Returns the path of the page of a crawl, relative to the archive root.
std::filesystem::path crawl_page_path(const std::string& crawl_id);

// Writes pages that have been stale for `age`, and deletes those of removed crawls; with `crawl_id` only that one's. A
// few at a time; returns how many. Throws Error(cannot_create) if one cannot be written; it then stays to be done.
int refresh_crawl_pages(pg::Connection& connection, const archive::Root& root, std::chrono::milliseconds age,
                        const std::optional<std::string>& crawl_id = {});

} // namespace holdfast::maintenance
