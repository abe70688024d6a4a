#include "lib/store/adopt.hpp"

#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

std::vector<std::string> directories_unknown(pg::Connection& connection, const std::vector<std::string>& directories) {
  return connection.call("select directory from holdfast.directories_unknown($1::text[]) as directory", directories)
      .column("directory");
}

void collection_adopt(pg::Connection& connection, const std::string& id) {
  connection.call("select holdfast.collection_adopt($1::uuid)", id);
}

std::string adopt(pg::Connection& connection, const nlohmann::json& page) {
  return connection.call("select holdfast.adopt($1::jsonb)", json_text(page)).value();
}

bool adopt_kept(pg::Connection& connection, const std::string& directory, const nlohmann::json& record) {
  return connection.call("select holdfast.adopt_kept($1, $2::jsonb)", directory, json_text(record)).value();
}

} // namespace holdfast::store
