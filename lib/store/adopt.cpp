#include "lib/store/adopt.hpp"

#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

std::vector<std::string> directories_unknown(pg::Connection& connection, const std::vector<std::string>& directories) {
  const auto rows = connection.call("select directory from holdfast.directories_unknown($1::text[]) as directory",
                                    pg::Params::of(directories));
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < rows.size(); ++i)
    unknown.push_back(rows[i].text("directory"));
  return unknown;
}

void collection_adopt(pg::Connection& connection, const std::string& id) {
  connection.call("select holdfast.collection_adopt($1::uuid)", pg::Params::of(id));
}

std::string adopt(pg::Connection& connection, const nlohmann::json& page) {
  return connection.call("select holdfast.adopt($1::jsonb) as answer", pg::Params::of(json_text(page)))
      .one()
      .text("answer");
}

} // namespace holdfast::store
