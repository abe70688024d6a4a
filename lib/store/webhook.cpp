#include "lib/store/webhook.hpp"

#include "lib/base/error.hpp"
#include "lib/base/url.hpp"

#include <cmath>

namespace holdfast::store {

std::vector<Delivery> webhook_claim(pg::Connection& connection, const std::string& owner,
                                    const std::optional<std::vector<std::string>>& names,
                                    std::chrono::milliseconds lease, int room) {
  return connection
      .call("select * from holdfast.webhook_claim($1, $2::text[], $3::interval, $4::integer)", owner, names, lease,
            room)
      .map([](const pg::Row& row) {
        return Delivery{row["id"],      row["fence"], row["attempts"], row["message_id"],
                        row["webhook"], row["url"],   row["event"],    row["payload"]};
      });
}

bool webhook_report(pg::Connection& connection, const Delivery& delivery, int status, const std::string& error,
                    bool gone) {
  return connection
      .call("select holdfast.webhook_report($1::bigint, $2::bigint, nullif($3::integer, 0), nullif($4, ''), "
            "$5::boolean)",
            delivery.id, delivery.fence, status, error, gone)
      .value();
}

void webhook_release(pg::Connection& connection, const Delivery& delivery) {
  connection.call("select holdfast.webhook_release($1::bigint, $2::bigint)", delivery.id, delivery.fence);
}

std::optional<std::chrono::milliseconds> webhook_wait(pg::Connection& connection,
                                                      const std::optional<std::vector<std::string>>& names) {
  const auto wait = connection.call("select extract(epoch from holdfast.webhook_wait($1::text[])) * 1000", names)
                        .value()
                        .optional<double>();
  if (!wait) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*wait)));
}

std::string webhook_url(const std::string& text, bool allow_private) {
  const auto url = base::parse_url(text);
  if (!allow_private && base::is_private_host(url.host))
    throw base::Error(base::ErrorClass::refused, "\"" + url.host + "\" is not a public host",
                      "set urls.allow_private to true to send to your own network");
  return url.text;
}

void webhook_set(pg::Connection& connection, const std::string& name, const std::string& url,
                 const std::vector<std::string>& events, const std::string& by) {
  static const std::vector<std::string> all{"crawl.sealed", "snapshot.failed", "worker.lapsed", "persona.signed_out"};
  connection.call("select holdfast.webhook_set($1, $2, $3::text[], $4)", name, url, events.empty() ? all : events, by);
}

void webhook_enable(pg::Connection& connection, const std::string& name, bool enabled, const std::string& by) {
  connection.call("select holdfast.webhook_enable($1, $2::boolean, $3)", name, enabled, by);
}

void webhook_remove(pg::Connection& connection, const std::string& name) {
  connection.call("select holdfast.webhook_remove($1)", name);
}

std::int64_t webhook_retry(pg::Connection& connection, const std::string& name, const std::string& by) {
  return connection.call("select holdfast.webhook_retry($1, $2)", name, by).value();
}

std::int64_t webhook_test(pg::Connection& connection, const std::string& name, const std::string& by) {
  return connection.call("select holdfast.webhook_test($1, $2)", name, by).value();
}

} // namespace holdfast::store
