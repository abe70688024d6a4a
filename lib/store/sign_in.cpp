#include "lib/store/sign_in.hpp"

#include "lib/base/sha256.hpp"
#include "lib/base/uuid.hpp"

namespace holdfast::store {

pg::Result sign_in_row(pg::Connection& connection, const std::string& id) {
  return connection.call("select * from holdfast.v_persona where sign_in = $1::uuid", id);
}

SignInAddress sign_in_open(pg::Connection& connection, const std::string& id, const std::string& by) {
  const auto key = base::random_hex32() + base::random_hex32();
  const auto found =
      connection.call("select * from holdfast.sign_in_open($1::uuid, $2, $3)", id, by, base::sha256_hex(key));
  if (found.empty()) return {"", "", 0, "", "", "it has ended; its worker's log says why"};
  const auto row = found.one();
  return {row["address"].value_or(""), row["certificate_hash"].value_or(""), row["port"].value_or(0), key, row["waits"],
          row["problem"].value_or("")};
}

std::optional<SignIn> sign_in_take(pg::Connection& connection, const std::string& worker) {
  const auto found = connection.call("select * from holdfast.sign_in_take($1::uuid)", worker);
  if (found.empty()) return std::nullopt;
  const auto row = found.one();
  return SignIn{row["id"],       row["persona"], row["url"],
                row["asked_by"], row["address"], std::chrono::milliseconds(row.integer("left_ms"))};
}

bool sign_in_ready(pg::Connection& connection, const std::string& worker, const std::string& id,
                   const SignInAddress& place) {
  return connection
      .call("select holdfast.sign_in_ready($1::uuid, $2::uuid, $3::inet, $4::integer, $5)", worker, id, place.address,
            place.port, place.certificate_hash)
      .value();
}

std::string sign_in_check(pg::Connection& connection, const std::string& worker, const std::string& key) {
  const auto answer = connection.call("select holdfast.sign_in_check($1::uuid, $2)", worker, base::sha256_hex(key));
  return answer.value().value_or("");
}

} // namespace holdfast::store
