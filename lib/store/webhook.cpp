#include "lib/store/webhook.hpp"

#include "lib/store/call.hpp"

#include <cmath>

namespace holdfast::store {

std::vector<Delivery> webhook_claim(pg::Connection& connection, const std::string& owner, const Reach& reach,
                                    std::chrono::milliseconds lease, int room) {
  return call(connection, "webhook_claim", owner, reach.names, lease, room, reach.schemes).map([](const pg::Row& row) {
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

std::optional<std::chrono::milliseconds> webhook_wait(pg::Connection& connection, const Reach& reach) {
  const auto wait = connection
                        .call("select extract(epoch from holdfast.webhook_wait($1::text[], $2::text[])) * 1000",
                              reach.names, reach.schemes)
                        .value()
                        .optional<double>();
  if (!wait) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*wait)));
}

} // namespace holdfast::store
