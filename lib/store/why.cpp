#include "lib/store/why.hpp"

namespace holdfast::store {

Why why(pg::Connection& connection, const std::string& name) {
  const auto result = connection.call("select * from holdfast.why($1::text)", name);
  const auto row = result.one();
  return {row["kind"], row["id"].value_or(""), row["reason"], row["facts"]};
}

} // namespace holdfast::store
