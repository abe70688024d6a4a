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
                          outcome = &ListQuery::outcome, host = &ListQuery::host, since = &ListQuery::since;
  static const std::map<std::string, List, std::less<>> all = {
      {"crawls",
       {"holdfast.list_crawls($1::uuid, $2, $3, $4, $7::bigint, $5, $6::timestamptz)",
        {crawl, status, url, tag, outcome, since}}},
      {"snapshots",
       {"holdfast.list_snapshots($1::uuid, $2::uuid, $3, $4, $5, $9::bigint, $6, $7, $8::timestamptz)",
        {crawl, snapshot, status, url, tag, outcome, host, since}}},
      {"results", {"holdfast.list_results($1::uuid, $2::uuid, $3, $4, $5::bigint)", {crawl, snapshot, status, url}}},
      {"queue", {"holdfast.list_queue($1::uuid, $2::uuid, $3, $4, $5::bigint)", {crawl, snapshot, status, url}}},
      {"running", {"holdfast.list_running($1::uuid, $2::uuid, $3, $5::bigint, $4)", {crawl, snapshot, url, plugin}}},
      {"workers", {"holdfast.list_workers($1, $2::bigint)", {status}}},
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

CrawlProgress crawl_progress(pg::Connection& connection, const std::string& crawl_id) {
  const auto rows = connection.call("select * from holdfast.v_crawl where id = $1::uuid", pg::Params::of(crawl_id));
  if (rows.empty())
    throw base::Error(base::ErrorClass::refused, "there is no crawl " + crawl_id, "holdfast list crawls");
  const auto row = rows[0];
  return CrawlProgress{row.text("id"),
                       row.text("label"),
                       row.text("status"),
                       row.text_or("outcome", ""),
                       row.text("first_url"),
                       row.text_or("stop_reason", ""),
                       row.integer("total"),
                       row.integer("open"),
                       row.integer("succeeded"),
                       row.integer("partial"),
                       row.integer("failed"),
                       row.integer("cancelled"),
                       row.integer("seeds_left"),
                       row.integer("bytes")};
}

std::vector<RunningHook> running_hooks(pg::Connection& connection, const std::string& crawl_id, int limit) {
  const auto rows =
      connection.call("select url, plugin, hook_name, worker, extract(epoch from running_for) as seconds from "
                      "holdfast.v_running where crawl_id = $1::uuid order by running_for desc limit $2::integer",
                      pg::Params::of(crawl_id, limit));
  std::vector<RunningHook> hooks;
  for (std::size_t i = 0; i < rows.size(); ++i)
    hooks.push_back({rows[i].text("url"), rows[i].text("plugin"), rows[i].text("hook_name"), rows[i].text("worker"),
                     rows[i].number("seconds")});
  return hooks;
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
      {&ListQuery::since, "since"}};
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

pg::Result list(pg::Connection& connection, const ListQuery& query) {
  const auto [call, params] = list_call(query);
  return connection.call("select * from " + call, params);
}

std::vector<std::string> list_json(pg::Connection& connection, const ListQuery& query) {
  const auto [call, params] = list_call(query);
  const auto rows = connection.call("select to_jsonb(v)::text as json from " + call + " v", params);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < rows.size(); ++i)
    lines.push_back(rows[i].text("json"));
  return lines;
}

CrawlDetails crawl_details(pg::Connection& connection, const std::string& crawl_id) {
  const auto rows = connection.call(
      "select id, label, status, outcome, tags, max_depth, bytes, to_char(created_at, "
      "'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as created, "
      "to_char(sealed_at, 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') as sealed from holdfast.v_crawl where id = $1::uuid",
      pg::Params::of(crawl_id));
  if (rows.empty())
    throw base::Error(base::ErrorClass::refused, "there is no crawl " + crawl_id, "holdfast list crawls");
  const auto row = rows[0];
  CrawlDetails details;
  details.id = row.text("id");
  details.label = row.text("label");
  details.status = row.text("status");
  details.outcome = row.text_or("outcome", "");
  details.created_at = row.text("created");
  details.sealed_at = row.text_or("sealed", "");
  details.tags = row.text_array("tags");
  details.max_depth = static_cast<int>(row.integer("max_depth"));
  details.bytes = row.integer("bytes");
  return details;
}

std::vector<std::string> crawl_seeds(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit) {
  const auto rows = connection.call("select url from holdfast.crawl_seeds($1::uuid, $2::bigint) url",
                                    pg::Params::of(crawl_id, limit));
  std::vector<std::string> urls;
  for (std::size_t i = 0; i < rows.size(); ++i)
    urls.push_back(rows[i].text("url"));
  return urls;
}

std::vector<CrawlEntry> crawl_entries(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit) {
  const auto rows =
      connection.call("select * from holdfast.crawl_entries($1::uuid, $2::bigint)", pg::Params::of(crawl_id, limit));
  std::vector<CrawlEntry> entries;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    entries.push_back({row.text("url"), row.text("title"), row.text("outcome"), row.text_or("directory", ""),
                       row.text_or("thumbnail", ""), static_cast<int>(row.integer("depth")), row.integer("bytes")});
  }
  return entries;
}

pg::Result status(pg::Connection& connection) { return connection.call("select * from holdfast.v_status"); }

pg::Result totals(pg::Connection& connection) { return connection.call("select * from holdfast.v_total"); }

namespace {

Found find_one(pg::Connection& connection, const std::string& name, bool newest) {
  const auto url = base::try_parse_url(name);
  const auto rows = connection.call("select * from holdfast.find($1)", pg::Params::of(url ? url->text : name));
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
  return Found{rows[0].text("kind"), rows[0].text("id"), rows[0].text_or("crawl_id", "")};
}

} // namespace

Found find(pg::Connection& connection, const std::string& name) { return find_one(connection, name, false); }

Found find_newest(pg::Connection& connection, const std::string& name) { return find_one(connection, name, true); }

pg::Result check_invariants(pg::Connection& connection) {
  return connection.call("select * from holdfast.check_invariants()");
}

} // namespace holdfast::store
