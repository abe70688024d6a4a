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

int binary_want(pg::Connection& connection, const std::string& worker, const std::string& wanted_json) {
  return static_cast<int>(
      connection.call("select holdfast.binary_want($1::uuid, $2::jsonb) as count", pg::Params::of(worker, wanted_json))
          .one()
          .integer("count"));
}

std::vector<BinaryClaim> binary_claim(pg::Connection& connection, const std::string& worker, int limit) {
  const auto rows =
      connection.call("select * from holdfast.binary_claim($1::uuid, $2::integer)", pg::Params::of(worker, limit));
  std::vector<BinaryClaim> claims;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    claims.push_back({row.text("name"), row.text("id"), row.integer("fence"), row.text("providers"),
                      row.text("overrides"), row.text_or("path", ""), row.text_or("version", ""),
                      row.text_or("sha256", ""), row.text_or("fingerprint", "")});
  }
  return claims;
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
  connection.call("select holdfast.binary_set($1::uuid, $2, $3::bigint, $4::jsonb)",
                  pg::Params::of(worker, claim.name, claim.fence, json_text(json)));
}

std::vector<KnownBinary> binary_known(pg::Connection& connection, const std::string& worker) {
  const auto rows = connection.call("select * from holdfast.binary_known($1::uuid)", pg::Params::of(worker));
  std::vector<KnownBinary> known;
  for (std::size_t i = 0; i < rows.size(); ++i)
    known.push_back({rows[i].text("name"), rows[i].text_or("path", ""), rows[i].text_or("error", "")});
  return known;
}

std::int64_t binary_recheck(pg::Connection& connection, const std::string& name, const std::string& host) {
  return connection
      .call("select holdfast.binary_recheck(nullif($1, ''), nullif($2, '')) as count", pg::Params::of(name, host))
      .one()
      .integer("count");
}

std::map<std::string, std::string> machine_options(pg::Connection& connection, const std::string& worker) {
  return options_of(
      connection.call("select holdfast.machine_options($1::uuid)::text as options", pg::Params::of(worker))
          .one()
          .text_or("options", "{}"));
}

void machine_set_options(pg::Connection& connection, const std::string& worker,
                         const std::map<std::string, std::string>& options) {
  connection.call("select holdfast.machine_set_options($1::uuid, $2::jsonb)",
                  pg::Params::of(worker, json_text(nlohmann::json(options))));
}

CrawlOptions crawl_options(pg::Connection& connection, const std::string& crawl) {
  const auto rows = connection.call(
      "select plugins, options::text as options, persona from holdfast.crawl_options($1::uuid)", pg::Params::of(crawl));
  const auto row = rows.one();
  return {row.text_array("plugins"), options_of(row.text("options")), row.text("persona")};
}

pg::Result session_logs(pg::Connection& connection, const std::string& crawl) {
  return connection.call("select plugin, hook_name, worker, error, log from holdfast.v_session_log where crawl_id = "
                         "$1::uuid order by ended_at, hook_name",
                         pg::Params::of(crawl));
}

} // namespace holdfast::store
