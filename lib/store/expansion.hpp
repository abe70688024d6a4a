#pragma once
// Seeds of crawls, and their expansion to snapshots by workers. One free function per SQL function
// (migrations/functions/31_expand.sql). Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct Seed {
  std::string url; // canonical
  std::string title;
  std::vector<std::string> tags;
  std::string bookmarked_at{}; // as base::written_timestamp() writes it; "": not known
  std::string notes{};
};

struct CrawlLease {
  std::string crawl_id;
  std::int64_t fence{0};
  std::int64_t seeds_left{0};
};

struct Expansion {
  std::int64_t seeds_left{0}, inserted{0};
  std::string status;
};

// Claims one due crawl, of `only` unless that is empty. Nothing: none is due.
std::optional<CrawlLease> crawl_claim(pg::Connection& connection, const std::string& worker,
                                      std::chrono::milliseconds lease, const std::vector<std::string>& only = {});
// Turns up to `batch` seeds into snapshots. Errors: lease_lost if the fence is stale.
Expansion crawl_expand(pg::Connection& connection, const std::string& worker, const CrawlLease& lease, int batch);

} // namespace holdfast::store
