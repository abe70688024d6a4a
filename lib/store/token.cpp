#include "lib/store/token.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/runner.hpp"

namespace holdfast::store {

std::string new_token() { return "hf_" + base::random_hex32() + base::random_hex32(); }

std::string token_add(pg::Connection& connection, const std::string& name, const std::string& role,
                      std::optional<std::chrono::milliseconds> keep, const std::string& by) {
  auto token = new_token();
  call(connection, "token_add", name, role, base::sha256_hex(token), keep, by);
  return token;
}

std::string own_token_add(pg::Connection& connection, const std::string& name, const std::string& role,
                          std::optional<std::chrono::milliseconds> keep, const std::string& by) {
  auto token = new_token();
  call(connection, "own_token_add", name, role, base::sha256_hex(token), keep, by);
  return token;
}

std::optional<TokenOwner> token_check(pg::Connection& connection, const std::string& token) {
  const auto found = call(connection, "token_check", base::sha256_hex(token));
  if (found.empty()) return std::nullopt;
  return TokenOwner{found.one()["name"], found.one()["role"], found.one()["files_key"],
                    found.one()["account"].value_or("")};
}

std::string api_request_once(pg::Connection& connection, const std::string& caller, const std::string& key,
                             const std::string& body, const std::string& crawl) {
  return call(connection, "api_request_once", caller, key, base::sha256_hex(body), crawl).value();
}

std::set<std::string> tokens_valid(pg::Connection& connection, const std::vector<std::string>& names) {
  const auto rows = call(connection, "tokens_valid", names);
  std::set<std::string> valid;
  for (std::size_t i = 0; i < rows.size(); ++i)
    valid.insert(rows[i]["name"]);
  return valid;
}

std::string share_id(const std::string& uuid) { return uuid.substr(uuid.size() - 8); }

std::optional<std::string> share_add(pg::Connection& connection, const std::string& uuid, const SharedThing& what,
                                     std::chrono::milliseconds keep, const std::string& by) {
  auto secret = base::random_hex32() + base::random_hex32();
  const bool made = call(connection, "share_add", share_id(uuid), base::sha256_hex(secret), what.snapshot, what.url,
                         what.shelf, keep, by)
                        .value();
  return made ? std::optional(secret) : std::nullopt;
}

std::string role_of_requests(pg::Connection& connection, const std::string& role) {
  const std::string name = "holdfast_" + role;
  if (may_act_as(connection, name)) return name;
  const bool exists = connection.call("select to_regrole($1::text) is not null", name).value();
  if (!exists) return "";
  throw base::Error(base::ErrorClass::refused, "the database login of this server may not act as " + name,
                    "grant " + name +
                        " to the login in database.url of holdfast serve (from PostgreSQL 16 on, with set true)");
}

} // namespace holdfast::store
