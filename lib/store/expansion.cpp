#include "lib/store/expansion.hpp"

namespace holdfast::store {

std::optional<CrawlLease> crawl_claim(pg::Connection& connection, const std::string& worker,
                                      std::chrono::milliseconds lease, const std::vector<std::string>& only) {
  const auto rows = connection.call("select * from holdfast.crawl_claim($1::uuid, $2::interval, $3::uuid[])", worker,
                                    lease, only.empty() ? std::nullopt : std::optional(only));
  if (rows.empty()) return std::nullopt;
  return CrawlLease{rows[0]["crawl_id"], rows[0]["fence"], rows[0]["seeds_left"]};
}

Expansion crawl_expand(pg::Connection& connection, const std::string& worker, const CrawlLease& lease, int batch) {
  const auto result =
      connection.call("select * from holdfast.crawl_expand($1::uuid, $2::uuid, $3::bigint, $4::integer)", worker,
                      lease.crawl_id, lease.fence, batch);
  const auto row = result.one();
  return {row["seeds_left"], row["inserted"], row["status"]};
}

} // namespace holdfast::store
