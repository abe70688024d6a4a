#include "lib/store/view.hpp"

#include "lib/base/error.hpp"
#include "lib/base/url.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace holdfast::store {

namespace {

using Filter = std::optional<std::string> ListQuery::*;

struct List {
  std::string_view call; // the function and the types of its filters
  std::vector<Filter> filters;
};

const std::map<std::string, List, std::less<>>& lists() {
  static constexpr Filter crawl = &ListQuery::crawl_id, snapshot = &ListQuery::snapshot_id, status = &ListQuery::status,
                          url = &ListQuery::url_contains, tag = &ListQuery::tag, plugin = &ListQuery::plugin,
                          outcome = &ListQuery::outcome, host = &ListQuery::host, since = &ListQuery::since,
                          before = &ListQuery::before, kind = &ListQuery::kind;
  static const std::map<std::string, List, std::less<>> all = {
      {"crawls",
       {"holdfast.list_crawls($1::uuid, $2, $3, $4, $8::bigint, $5, $6::timestamptz, $7::uuid)",
        {crawl, status, url, tag, outcome, since, before}}},
      {"snapshots",
       {"holdfast.list_snapshots($1::uuid, $2::uuid, $3, $4, $5, $10::bigint, $6, $7, $8::timestamptz, $9::uuid)",
        {crawl, snapshot, status, url, tag, outcome, host, since, before}}},
      {"results", {"holdfast.list_results($1::uuid, $2::uuid, $3, $4, $5::bigint)", {crawl, snapshot, status, url}}},
      {"queue", {"holdfast.list_queue($1::uuid, $2::uuid, $3, $4, $5::bigint)", {crawl, snapshot, status, url}}},
      {"running", {"holdfast.list_running($1::uuid, $2::uuid, $3, $5::bigint, $4)", {crawl, snapshot, url, plugin}}},
      {"workers", {"holdfast.list_workers($1, $3::bigint, $2)", {status, kind}}},
      {"events", {"holdfast.list_events($1::uuid, $2::uuid, $3::bigint)", {crawl, snapshot}}},
      {"failures",
       {"holdfast.list_failures($1::uuid, $2::uuid, $3, $7::bigint, $4, $5, $6::timestamptz)",
        {crawl, snapshot, url, plugin, host, since}}},
      {"binaries", {"holdfast.list_binaries($1, $2, $3::bigint)", {status, url}}},
      {"hosts", {"holdfast.list_hosts($1, $2::bigint)", {url}}},
      {"sessions", {"holdfast.list_sessions($1::uuid, $2, $3::bigint)", {crawl, status}}},
      {"webhooks", {"holdfast.list_webhooks($1::bigint)", {}}},
      {"deliveries", {"holdfast.list_deliveries($1, $2::bigint)", {status}}},
  };
  return all;
}

} // namespace

std::vector<std::string> list_names() {
  std::vector<std::string> names;
  for (const auto& [name, one] : lists())
    names.push_back(name);
  return names;
}

namespace {

// The call of the list's function with its parameters; throws Error(usage) for an unknown list or filter.
std::pair<std::string, pg::Params> list_call(const ListQuery& query) {
  const auto found = lists().find(query.view);
  if (found == lists().end()) {
    std::string known;
    for (const auto& [name, one] : lists())
      known += (known.empty() ? "" : ", ") + name;
    throw base::Error(base::ErrorClass::usage, "nothing called \"" + query.view + "\" can be listed",
                      "one of: " + known);
  }
  static constexpr std::pair<Filter, std::string_view> names[] = {
      {&ListQuery::crawl_id, "crawl"},  {&ListQuery::snapshot_id, "snapshot"},
      {&ListQuery::status, "status"},   {&ListQuery::url_contains, "url"},
      {&ListQuery::tag, "tag"},         {&ListQuery::plugin, "plugin"},
      {&ListQuery::outcome, "outcome"}, {&ListQuery::host, "host"},
      {&ListQuery::since, "since"},     {&ListQuery::before, "id"},
      {&ListQuery::kind, "kind"}};
  for (const auto& [filter, name] : names) {
    const auto& known = found->second.filters;
    if (query.*filter && std::find(known.begin(), known.end(), filter) == known.end())
      throw base::Error(base::ErrorClass::usage, query.view + " cannot be filtered by " + std::string(name));
  }
  pg::Params params;
  for (const Filter filter : found->second.filters)
    params.add(query.*filter);
  params.add(query.limit);
  return {std::string(found->second.call), params};
}

} // namespace

pg::Result crawls_by(pg::Connection& connection, const std::string& order, const ListQuery& query) {
  return connection.call("select * from holdfast.list_crawls_by($1, $2, $3, $4, $5, $6::uuid, $7::bigint)", order,
                         query.status, query.url_contains, query.tag, query.outcome, query.before, query.limit);
}

pg::Result list(pg::Connection& connection, const ListQuery& query) {
  const auto [call, params] = list_call(query);
  return connection.call("select * from " + call, params);
}

std::optional<std::string> snapshot_number(pg::Connection& connection, std::int64_t number, const ListQuery& query) {
  return connection
      .call("select holdfast.snapshot_number($1::bigint, $2, $3, $4)::text as id", number, query.status,
            query.url_contains, query.tag)
      .value()
      .optional<std::string>();
}

std::vector<std::string> list_json(pg::Connection& connection, const ListQuery& query) {
  const auto [call, params] = list_call(query);
  return connection.call("select to_jsonb(v)::text as json from " + call + " v", params).column("json");
}

std::vector<std::string> crawl_seeds(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit) {
  return connection.call("select url from holdfast.crawl_seeds($1::uuid, $2::bigint) url", crawl_id, limit)
      .column("url");
}

std::vector<CrawlEntry> crawl_entries(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit) {
  return connection.call("select * from holdfast.crawl_entries($1::uuid, $2::bigint)", crawl_id, limit)
      .map([](const pg::Row& row) {
        return CrawlEntry{
            row["url"],   row["title"], row["outcome"], row["directory"].value_or(""), row["thumbnail"].value_or(""),
            row["depth"], row["bytes"]};
      });
}

namespace {

Found find_one(pg::Connection& connection, const std::string& name, bool newest) {
  const auto url = base::try_parse_url(name);
  const auto rows = connection.call("select * from holdfast.find($1)", url ? url->text : name);
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

} // namespace

Found find(pg::Connection& connection, const std::string& name) { return find_one(connection, name, false); }

Found find_newest(pg::Connection& connection, const std::string& name) { return find_one(connection, name, true); }

pg::Result check_invariants(pg::Connection& connection) {
  return connection.call("select * from holdfast.check_invariants()");
}

pg::Result reference(pg::Connection& connection) { return connection.call("select * from holdfast.reference()"); }

} // namespace holdfast::store
