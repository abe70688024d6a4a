#pragma once
// Crawls: adding, claiming, expanding. One free function per SQL function (migrations/functions/30_crawl.sql).
// Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct Seed {
  std::string url; // canonical
  std::string title;
  std::vector<std::string> tags;
  std::string bookmarked_at{}; // as base::written_timestamp() writes it; "": not known
};

struct NewCrawl {
  std::string id; // chosen by the caller, so that adding may be repeated
  std::string label, notes, persona{"Default"}, created_by;
  std::vector<std::string> tags, plugins;
  std::map<std::string, std::string> options; // hook options, frozen here
  int max_depth{0};
  std::int64_t max_urls{0};
  int priority{0};
  std::int64_t max_bytes{0};                             // 0: no cap, as for the others
  std::chrono::milliseconds max_time{0};                 // from its start, pauses not counted
  int max_parallel{0};                                   // snapshots at once, in the whole cluster
  std::map<std::string, std::vector<std::string>> scope; // schemes, deny, allow, hosts, domains, prefixes
  std::chrono::milliseconds host_delay{0};               // for hosts that have no rule of their own
  int host_parallel{0};
  bool only_new{false};                      // leave out what the collection holds
  std::chrono::milliseconds only_new_age{0}; // but not if that is older than this; 0: however old
  bool only_complete{false};                 // with only_new: what is only partly there does not count
  std::vector<std::string> wanted;           // with only_complete: plugins that a complete page has results of
  bool overwrite{false};                     // older snapshots of its URLs are removed once the new ones are sealed
  std::chrono::milliseconds keep{0};         // removed after this; 0: never
  std::int64_t max_snapshot_bytes{0};        // that the hooks of one snapshot may leave together
  bool robots{false};                        // robots.txt is honoured
  std::string paused_why{};                  // not empty: it is added paused, for this reason
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

// A crawl as the functions of SQL take it: the argument p_crawl.
std::string crawl_argument(const NewCrawl& crawl);

// Adds the crawl with all its seeds in one transaction (in batches, so that a million seeds need no million-element
// array). False if a crawl with this id was there already: then nothing changes.
bool crawl_add(pg::Connection& connection, const NewCrawl& crawl, const std::vector<Seed>& seeds);

// A seed that a crawl with only_new leaves out, and its newest snapshot.
struct ArchivedSeed {
  std::string url, snapshot_id, sealed_at, directory;
};
// Those of `seeds`, in their order, each once.
std::vector<ArchivedSeed> seeds_archived(pg::Connection& connection, const NewCrawl& crawl,
                                         const std::vector<Seed>& seeds);

// One due crawl, of `only` unless that is empty, or nothing.
std::optional<CrawlLease> crawl_claim(pg::Connection& connection, const std::string& worker,
                                      std::chrono::milliseconds lease, const std::vector<std::string>& only = {});
// Releases whatever crawl the worker owns, for one whose answer to a claim was lost. Returns how many.
std::int64_t crawl_release(pg::Connection& connection, const std::string& worker);
// Turns up to `batch` seeds into snapshots. Errors: lease_lost if the fence is stale.
Expansion crawl_expand(pg::Connection& connection, const std::string& worker, const CrawlLease& lease, int batch);

} // namespace holdfast::store
