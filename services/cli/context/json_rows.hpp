#pragma once
// Rows that a server sent as JSON, as PostgreSQL writes them. Pure; any thread.

#include "lib/pg/result.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// A column of a list, by its schema in the server's document.
struct Column {
  std::string name;
  pg::Kind kind{pg::Kind::other};
  bool document{false}; // of any type

  Column(std::string name_in, const nlohmann::ordered_json& schema);
  // Returns the text of a value as PostgreSQL writes it.
  std::optional<std::string> cell(const nlohmann::ordered_json& value) const;
};
pg::Result table(const std::vector<Column>& columns, const std::vector<nlohmann::ordered_json>& items);
// Sets the age of what has not ended yet, which answers leave out, because it grows.
void fill_age(nlohmann::ordered_json& item);

} // namespace holdfast::cli
