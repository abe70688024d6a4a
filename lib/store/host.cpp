#include "lib/store/host.hpp"

namespace holdfast::store {

namespace {

std::optional<std::string> interval(std::optional<std::chrono::milliseconds> value) {
  if (!value) return std::nullopt;
  return std::to_string(value->count()) + " milliseconds";
}

} // namespace

void host_set(pg::Connection& connection, const std::string& host, const HostLimits& limits, const std::string& by) {
  connection.call("select holdfast.host_set($1, $2::interval, $3::integer, $4)",
                  pg::Params::of(host, interval(limits.delay), limits.parallel, by));
}

bool host_forget(pg::Connection& connection, const std::string& host, const std::string& by) {
  return connection.call("select holdfast.host_forget($1, $2) as changed", pg::Params::of(host, by))
             .one()
             .integer("changed") > 0;
}

bool host_pause(pg::Connection& connection, const std::string& host, const Command& command) {
  return connection
             .call("select holdfast.host_pause($1, $2, $3) as changed", pg::Params::of(host, command.by, command.why))
             .one()
             .integer("changed") > 0;
}

bool host_resume(pg::Connection& connection, const std::string& host, const Command& command) {
  return connection
             .call("select holdfast.host_resume($1, $2, $3) as changed", pg::Params::of(host, command.by, command.why))
             .one()
             .integer("changed") > 0;
}

std::int64_t host_cancel(pg::Connection& connection, const std::string& host, const Command& command) {
  for (std::int64_t all = 0;;) {
    const auto some =
        connection
            .call("select holdfast.host_cancel($1, $2, $3) as some", pg::Params::of(host, command.by, command.why))
            .one()
            .integer("some");
    if (some == 0) return all;
    all += some;
  }
}

std::chrono::milliseconds host_rate_limited(pg::Connection& connection, const std::string& host, int status,
                                            std::optional<std::chrono::milliseconds> retry_after,
                                            const std::string& by) {
  const auto result =
      connection.call("select greatest(0, ceil(extract(epoch from holdfast.host_rate_limited($1, $2::integer, "
                      "$3::interval, $4) - clock_timestamp()) * 1000))::bigint as wait",
                      pg::Params::of(host, status, interval(retry_after), by));
  return std::chrono::milliseconds(result.one().integer("wait"));
}

Robots robots_get(pg::Connection& connection, const std::string& worker, const Lease& lease,
                  const std::string& origin) {
  const auto result = connection.call("select * from holdfast.robots_get($1::uuid, $2::uuid, $3::uuid, $4)",
                                      pg::Params::of(worker, lease.snapshot_id, lease.crawl_id, origin));
  const auto row = result.one();
  return {row.text("state"), row.text("rules"), row.text_or("error", ""), row.boolean("to_fetch"),
          row.boolean("too_early")};
}

bool robots_put(pg::Connection& connection, const std::string& worker, const std::string& origin,
                const std::string& host, const RobotsAnswer& answer) {
  const auto result = connection.call(
      "select holdfast.robots_put($1::uuid, $2, $3, $4::integer, $5, $6, $7::interval, $8::interval) as delayed",
      pg::Params::of(worker, origin, host, answer.status == 0 ? std::nullopt : std::optional<int>(answer.status),
                     answer.rules, answer.error.empty() ? std::nullopt : std::optional<std::string>(answer.error),
                     interval(answer.delay), interval(answer.keep)));
  return result.one().boolean("delayed");
}

} // namespace holdfast::store
