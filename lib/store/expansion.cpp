#include "lib/store/expansion.hpp"

#include "lib/store/call.hpp"
namespace holdfast::store {

std::optional<CrawlLease> crawl_claim(pg::Connection& connection, const std::string& worker,
                                      std::chrono::milliseconds lease, const std::vector<std::string>& only) {
  const auto rows = call(connection, "crawl_claim", worker, lease, only.empty() ? std::nullopt : std::optional(only));
  if (rows.empty()) return std::nullopt;
  return CrawlLease{rows[0]["crawl_id"], rows[0]["fence"], rows[0]["seeds_left"]};
}

Expansion crawl_expand(pg::Connection& connection, const std::string& worker, const CrawlLease& lease, int batch) {
  const auto result = call(connection, "crawl_expand", worker, lease.crawl_id, lease.fence, batch);
  const auto row = result.one();
  return {row["seeds_left"], row["inserted"], row["status"]};
}

} // namespace holdfast::store
