// Crawls with filters, an order and commands for several at once; and the form that adds one.
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <array>
#include <span>

namespace holdfast::serve {

namespace {

constexpr int kCrawlsOfPage = 100;
constexpr std::array kCrawlStatuses = {"", "queued", "started", "paused", "sealed"};
constexpr std::array kCrawlOutcomes = {"", "succeeded", "partial", "failed", "cancelled"};
struct Order {
  const char *value, *name, *column;
};
constexpr Order kOrders[] = {{"", "newest", ""},
                             {"failed", "most failed", "failed"},
                             {"open", "most open", "open"},
                             {"size", "largest", "bytes"},
                             {"total", "most pages", "total"}};

html::List options_of(std::span<const char* const> values, const std::string& chosen) {
  html::List list;
  for (const std::string value : values)
    list.push_back({{"value", value}, {"name", value.empty() ? "any" : value}, {"chosen", value == chosen}});
  return list;
}

Html crawl_filter(const PageRequest& request) {
  html::List sorts;
  for (const auto& order : kOrders)
    sorts.push_back(
        {{"value", order.value}, {"name", order.name}, {"chosen", request.parameter("sort") == order.value}});
  return html::fill(embedded::crawl_filter_html,
                    {{"statuses", options_of(kCrawlStatuses, request.parameter("status"))},
                     {"outcomes", options_of(kCrawlOutcomes, request.parameter("outcome"))},
                     {"tag", request.parameter("tag")},
                     {"url", request.parameter("url")},
                     {"sorts", std::move(sorts)}});
}

pg::Result crawl_rows(const PageRequest& request) {
  catalog::ListQuery query{"crawls", kCrawlsOfPage};
  for (const char* name : {"status", "outcome", "tag", "url"})
    if (const auto value = request.parameter(name); !value.empty()) query.by(name, value);
  query.by("before", request.before);
  for (const auto& order : kOrders)
    if (request.parameter("sort") == order.value) query.most = order.column;
  return catalog::list(request.connection, query);
}

Html found_crawls(const PageRequest& request) {
  const auto rows = crawl_rows(request);
  auto all = crawl_table(rows, request.may_change).html("No crawl matches these filters.");
  if (static_cast<int>(rows.size()) == kCrawlsOfPage)
    all += html::fill(embedded::more_html, {{"href", "/crawls?before=" + rows[rows.size() - 1].text("id") +
                                                         request.kept({"status", "outcome", "tag", "url", "sort"})}});
  return all;
}

} // namespace

Table crawl_table(const pg::Result& rows, bool select) {
  std::vector<Table::Column> columns{{"Crawl", "long"}, {"State", "nw"}, {"Progress", "nw"}, {"Failed", "n"},
                                     {"Partial", "n"},  {"Size", "n"},   {"Added", "nw"}};
  if (select) columns.push_back({"Select", "nw"});
  Table table(columns, "Crawls");
  for (const auto row : rows) {
    const std::string id = row["id"], label = row["label"], url = row["first_url"];
    const auto& name = label.empty() ? url : label;
    const std::int64_t total = row["total"], open = row["open"], seeds = row["seeds_left"];
    auto named = crawl_link(id, name);
    named += tag_links(row["tags"]);
    std::vector<html::Value> cells{std::move(named),
                                   state_badge(row["status"], row["outcome"].value_or("")),
                                   progress(total - open, total + seeds),
                                   number_unless_zero(row["failed"]),
                                   number_unless_zero(row["partial"]),
                                   size_of(row["bytes"]),
                                   ago(row.text("created_at"))};
    if (select) cells.emplace_back(select_box(id, name));
    table.row(std::move(cells));
  }
  return table;
}

std::optional<Page> crawls_page(const PageRequest& request) {
  Page page{"Crawls", "Crawls", {{"filter", crawl_filter(request), "", false, false}}};
  if (request.may_change) page.sections.push_back({"selected", bulk_bar("crawls", request.here), "", false, false});
  page.sections.push_back({"crawls", found_crawls(request), "", false});
  return page;
}

std::optional<Page> add_page(const PageRequest& request) {
  if (!request.may_change)
    return Page{"Add", "Add", {{"add", Html(html::Literal(embedded::may_not_html)), "", false, false}}};
  return Page{"Add", "Add pages", {{"add", html::fill(embedded::add_html, {}), "", false, false}}};
}

} // namespace holdfast::serve
