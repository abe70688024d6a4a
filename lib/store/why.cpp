#include "lib/store/why.hpp"

#include "lib/base/url.hpp"

namespace holdfast::store {

Why why(pg::Connection& connection, const std::string& name) {
  const auto url = base::try_parse_url(name);
  const auto result = connection.call("select * from holdfast.why($1::text)", url ? url->text : name);
  const auto row = result.one();
  return {row["kind"], row["id"].value_or(""), row["reason"], row["facts"]};
}

CrawlLacks crawl_lacks(pg::Connection& connection, const std::string& crawl) {
  const auto rows = connection.call("select * from holdfast.crawl_lacks($1::uuid)", crawl);
  const auto row = rows.one();
  return {row["lacks"].value_or(""), row["may_pass"].value_or(false)};
}

} // namespace holdfast::store
