#include "lib/store/find.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/call.hpp"

namespace holdfast::store {

namespace {

Found find_one(pg::Connection& connection, const std::string& name, bool newest) {
  const auto url = base::try_parse_url(name);
  const auto rows = call(connection, "find", url ? url->text : name);
  if (rows.empty())
    throw base::Error(base::ErrorClass::refused, "nothing is called \"" + name + "\"",
                      "an id is 32 hexadecimal digits, or the first or last few of one; a URL and the label of a "
                      "crawl will do; see holdfast list");
  const bool is_id = name.find_first_not_of("0123456789abcdefABCDEF-") == std::string::npos;
  if (rows.size() > 1 && is_id)
    throw base::Error(base::ErrorClass::refused, "\"" + name + "\" is short for more than one id: " +
                                                     rows[0].text("id") + " and " + rows[1].text("id"));
  if (rows.size() > 1 && !newest)
    throw base::Error(base::ErrorClass::refused,
                      "\"" + name + "\" names more than one " + rows[0].text("kind") + "; the newest is " +
                          rows[0].text("id"),
                      "give the id");
  return {rows[0]["kind"], rows[0]["id"], rows[0]["crawl_id"].value_or("")};
}

std::string schedule_find(pg::Connection& connection, const std::string& text) {
  const auto rows = connection.call("select * from holdfast.schedule_find($1) as id", text);
  if (rows.size() != 1)
    throw base::Error(base::ErrorClass::refused,
                      rows.empty() ? "there is no schedule \"" + text + "\""
                                   : "\"" + text + "\" names " + std::to_string(rows.size()) + " schedules",
                      "holdfast schedule list shows ids and labels");
  return rows.value();
}

} // namespace

Found find(pg::Connection& connection, const std::string& name, FindAs as) {
  if (as == FindAs::schedule) return {"schedule", schedule_find(connection, name), ""};
  if (as == FindAs::shelf) return {"shelf", call_for<std::string>(connection, "shelf_find", name), ""};
  return find_one(connection, name, as == FindAs::newest);
}

Why why(pg::Connection& connection, const std::string& name) {
  const auto url = base::try_parse_url(name);
  const auto result = call(connection, "why", url ? url->text : name);
  const auto row = result.one();
  return {row["kind"], row["id"].value_or(""), row["reason"], row["facts"]};
}

CrawlLacks crawl_lacks(pg::Connection& connection, const std::string& crawl) {
  const auto rows = call(connection, "crawl_lacks", crawl);
  const auto row = rows.one();
  return {row["lacks"].value_or(""), row["may_pass"].value_or(false)};
}

std::vector<CrawlEntry> crawl_entries(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit) {
  return call(connection, "crawl_entries", crawl_id, limit).map([](const pg::Row& row) {
    return CrawlEntry{
        row["url"],   row["title"], row["outcome"], row["directory"].value_or(""), row["thumbnail"].value_or(""),
        row["depth"], row["bytes"]};
  });
}

} // namespace holdfast::store
