#include "lib/store/host.hpp"

namespace holdfast::store {

std::chrono::milliseconds host_rate_limited(pg::Connection& connection, const std::string& host, int status,
                                            std::optional<std::chrono::milliseconds> retry_after,
                                            const std::string& by) {
  const std::int64_t wait =
      connection
          .call("select greatest(0, ceil(extract(epoch from holdfast.host_rate_limited($1, $2::integer, $3::interval, "
                "$4) - clock_timestamp()) * 1000))::bigint",
                host, status, retry_after, by)
          .value();
  return std::chrono::milliseconds(wait);
}

Robots robots_get(pg::Connection& connection, const std::string& worker, const Lease& lease,
                  const std::string& origin) {
  const auto result = connection.call("select * from holdfast.robots_get($1::uuid, $2::uuid, $3::uuid, $4)", worker,
                                      lease.snapshot_id, lease.crawl_id, origin);
  const auto row = result.one();
  return {row["state"], row["rules"], row["error"].value_or(""), row["to_fetch"], row["too_early"]};
}

bool robots_put(pg::Connection& connection, const std::string& worker, const std::string& origin,
                const std::string& host, const RobotsAnswer& answer) {
  return connection
      .call("select holdfast.robots_put($1::uuid, $2, $3, nullif($4::integer, 0), $5, nullif($6, ''), $7::interval, "
            "$8::interval)",
            worker, origin, host, answer.status, answer.rules, answer.error, answer.delay, answer.keep)
      .value();
}

} // namespace holdfast::store
