#include "lib/store/verify.hpp"

namespace holdfast::store {

namespace {

SealedFiles sealed_row(const pg::Row& row) {
  return {row["snapshot_id"], row["url"], row["created_at"], row["directory"].value_or(""),
          row["manifest_sha256"].value_or("")};
}

} // namespace

std::vector<SealedFiles> sealed_files(pg::Connection& connection, const std::optional<std::string>& id,
                                      const std::optional<std::string>& after, int limit) {
  return connection.call("select * from holdfast.sealed_files($1::uuid, $2::uuid, $3::integer)", id, after, limit)
      .map(sealed_row);
}

std::vector<SealedFiles> replays_due(pg::Connection& connection, int every, std::chrono::seconds within, int limit) {
  return connection
      .call("select * from holdfast.replays_due($1::integer, $2 * interval '1 second', $3::integer)", every,
            static_cast<std::int64_t>(within.count()), limit)
      .map(sealed_row);
}

std::string collection_id(pg::Connection& connection) {
  return connection.call("select id from holdfast.collection").value();
}

} // namespace holdfast::store
