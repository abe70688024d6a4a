#include "lib/store/binary.hpp"

#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::store {

namespace {

std::map<std::string, std::string> options_of(const std::string& text) {
  std::map<std::string, std::string> options;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object())
    for (const auto& [key, value] : json.items())
      options[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return options;
}

} // namespace

std::vector<BinaryClaim> binary_claim(pg::Connection& connection, const std::string& worker, int limit) {
  return connection.call("select * from holdfast.binary_claim($1::uuid, $2::integer)", worker, limit)
      .map([](const pg::Row& row) {
        return BinaryClaim{row["name"],
                           row["id"],
                           row["fence"],
                           row["providers"],
                           row["overrides"],
                           row["path"].value_or(""),
                           row["version"].value_or(""),
                           row["sha256"].value_or(""),
                           row["fingerprint"].value_or("")};
      });
}

void binary_set(pg::Connection& connection, const std::string& worker, const BinaryClaim& claim,
                const BinaryFound& found) {
  nlohmann::json json;
  if (found.path.empty()) {
    json["error"] = found.error;
  } else {
    json = {{"path", found.path},
            {"sha256", found.sha256},
            {"fingerprint", found.fingerprint},
            {"provider", found.provider}};
    if (!found.version.empty()) json["version"] = found.version;
  }
  connection.call("select holdfast.binary_set($1::uuid, $2, $3::bigint, $4::jsonb)", worker, claim.name, claim.fence,
                  json_text(json));
}

std::vector<KnownBinary> binary_known(pg::Connection& connection, const std::string& worker) {
  return connection.call("select * from holdfast.binary_known($1::uuid)", worker).map([](const pg::Row& row) {
    return KnownBinary{row["name"], row["path"].value_or(""), row["error"].value_or("")};
  });
}

std::map<std::string, std::string> machine_options(pg::Connection& connection, const std::string& worker) {
  return options_of(connection.call("select holdfast.machine_options($1::uuid)::text", worker).value().value_or("{}"));
}

CrawlOptions crawl_options(pg::Connection& connection, const std::string& crawl) {
  const auto rows =
      connection.call("select plugins, options::text as options, persona from holdfast.crawl_options($1::uuid)", crawl);
  const auto row = rows.one();
  return {row["plugins"], options_of(row["options"]), row["persona"]};
}

} // namespace holdfast::store
