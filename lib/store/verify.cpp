#include "lib/store/verify.hpp"

namespace holdfast::store {

std::vector<SealedFiles> sealed_files(pg::Connection& connection, const std::optional<std::string>& id,
                                      const std::optional<std::string>& after, int limit) {
  const auto rows = connection.call("select * from holdfast.sealed_files($1::uuid, $2::uuid, $3::integer)",
                                    pg::Params::of(id, after, limit));
  std::vector<SealedFiles> all;
  for (std::size_t i = 0; i < rows.size(); ++i)
    all.push_back({rows[i].text("snapshot_id"), rows[i].text("url"), rows[i].text("created_at"),
                   rows[i].text_or("directory", ""), rows[i].text_or("manifest_sha256", "")});
  return all;
}

std::string collection_id(pg::Connection& connection) {
  return connection.call("select id from holdfast.collection").one().text("id");
}

} // namespace holdfast::store
