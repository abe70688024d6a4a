#include "lib/store/why.hpp"

#include "lib/base/url.hpp"

namespace holdfast::store {

Why why(pg::Connection& connection, const std::string& name) {
  const auto url = base::try_parse_url(name);
  const auto result = connection.call("select * from holdfast.why($1::text)", url ? url->text : name);
  const auto row = result.one();
  return {row["kind"], row["id"].value_or(""), row["reason"], row["facts"]};
}

std::string crawl_lacks(pg::Connection& connection, const std::string& crawl) {
  return connection.call("select coalesce(holdfast.crawl_lacks($1::uuid), '')", crawl).value();
}

} // namespace holdfast::store
