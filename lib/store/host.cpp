#include "lib/store/host.hpp"

namespace holdfast::store {

void host_set(pg::Connection& connection, const std::string& host, const HostLimits& limits, const std::string& by) {
  connection.call("select holdfast.host_set($1, $2::interval, $3::integer, $4)", host, limits.delay, limits.parallel,
                  by);
}

bool host_forget(pg::Connection& connection, const std::string& host, const std::string& by) {
  return connection.call("select holdfast.host_forget($1, $2)", host, by).value().as<int>() > 0;
}

std::int64_t host_cancel(pg::Connection& connection, const std::string& host, const Command& command) {
  for (std::int64_t all = 0;;) {
    const std::int64_t some =
        connection.call("select holdfast.host_cancel($1, $2, $3)", host, command.by, command.why).value();
    if (some == 0) return all;
    all += some;
  }
}

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
