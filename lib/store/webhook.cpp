#include "lib/store/webhook.hpp"

#include <cmath>

namespace holdfast::store {

std::vector<Delivery> webhook_claim(pg::Connection& connection, const std::string& owner,
                                    const std::optional<std::vector<std::string>>& names,
                                    std::chrono::milliseconds lease, int room) {
  pg::Params params = pg::Params::of(owner);
  params.add(names).add(lease.count()).add(room);
  const auto rows = connection.call(
      "select * from holdfast.webhook_claim($1, $2::text[], $3::bigint * interval '1 millisecond', $4::integer)",
      params);
  std::vector<Delivery> claimed;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    claimed.push_back({row.integer("id"), row.integer("fence"), static_cast<int>(row.integer("attempts")),
                       row.text("message_id"), row.text("webhook"), row.text("url"), row.text("event"),
                       row.text("payload")});
  }
  return claimed;
}

bool webhook_report(pg::Connection& connection, const Delivery& delivery, int status, const std::string& error,
                    bool gone) {
  pg::Params params = pg::Params::of(delivery.id, delivery.fence);
  params.add(status == 0 ? std::optional<int>() : std::optional<int>(status));
  params.add(error.empty() ? std::optional<std::string>() : std::optional<std::string>(error)).add(gone);
  return connection
      .call("select holdfast.webhook_report($1::bigint, $2::bigint, $3::integer, $4, $5::boolean) as ours", params)
      .one()
      .boolean("ours");
}

void webhook_release(pg::Connection& connection, const Delivery& delivery) {
  connection.call("select holdfast.webhook_release($1::bigint, $2::bigint)",
                  pg::Params::of(delivery.id, delivery.fence));
}

std::optional<std::chrono::milliseconds> webhook_wait(pg::Connection& connection,
                                                      const std::optional<std::vector<std::string>>& names) {
  pg::Params params;
  params.add(names);
  const auto rows =
      connection.call("select extract(epoch from holdfast.webhook_wait($1::text[])) * 1000 as wait", params);
  if (rows.one().is_null("wait")) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(rows.one().number("wait"))));
}

void webhook_set(pg::Connection& connection, const std::string& name, const std::string& url,
                 const std::vector<std::string>& events, const std::string& by) {
  connection.call("select holdfast.webhook_set($1, $2, $3::text[], $4)", pg::Params::of(name, url, events, by));
}

void webhook_enable(pg::Connection& connection, const std::string& name, bool enabled, const std::string& by) {
  connection.call("select holdfast.webhook_enable($1, $2::boolean, $3)", pg::Params::of(name, enabled, by));
}

void webhook_remove(pg::Connection& connection, const std::string& name) {
  connection.call("select holdfast.webhook_remove($1)", pg::Params::of(name));
}

std::int64_t webhook_retry(pg::Connection& connection, const std::string& name, const std::string& by) {
  return connection.call("select holdfast.webhook_retry($1, $2) as count", pg::Params::of(name, by))
      .one()
      .integer("count");
}

std::int64_t webhook_test(pg::Connection& connection, const std::string& name, const std::string& by) {
  return connection.call("select holdfast.webhook_test($1, $2) as id", pg::Params::of(name, by)).one().integer("id");
}

} // namespace holdfast::store
