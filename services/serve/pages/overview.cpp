#include "lib/catalog/list.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

namespace holdfast::serve {

namespace {

constexpr int kCrawls = 30; // open ones, and as many sealed ones
constexpr int kRows = 20;

Html numbers(pg::Connection& connection) {
  const auto rows = store::status(connection);
  const auto now = rows.one();
  html::List list;
  const auto add = [&](const char* name, const std::string& value) {
    list.push_back({{"name", name}, {"value", value}});
  };
  add("Workers", number(now["workers"]));
  add("In work", number(now["snapshots_held"]) + " of " + number(now["slots"]));
  add("Hooks running", number(now["hooks_running"]));
  add("Open snapshots", number(now["snapshots_open"]));
  const auto paused = now.integer("crawls_paused");
  add("Open crawls", number(now["crawls_open"]) + (paused > 0 ? ", " + number(paused) + " paused" : ""));
  const bool idle = now.integer("crawls_to_do") > 0 && now.integer("workers") == 0;
  return html::fill(embedded::numbers_html, {{"numbers", std::move(list)}, {"idle", idle}});
}

Html stuck(pg::Connection& connection) {
  const auto all = store::stuck(connection, kRows);
  if (all.empty()) return {};
  Table table({{"What", "long"}, {"Wrong", ""}, {"For", "nw"}, {"Why", "long"}}, "Stuck");
  for (const auto one : all) {
    const std::string kind = one["kind"], id = one["id"].value_or(""), name = one["name"].value_or(short_id(id));
    table.row({kind == "crawl"      ? crawl_link(id, name)
               : kind == "snapshot" ? snapshot_link(id, name)
                                    : html::escaped(name),
               one.text("what"), catalog::written_interval(one["stuck_for"].value_or("")),
               sentence(one["reason"].value_or(""))});
  }
  return html::fill(embedded::stuck_html, {{"table", table.html("")}});
}

Html running(pg::Connection& connection) {
  Table table({{"Hook", "nw"}, {"For", "nw"}, {"Snapshot", "long"}, {"Worker", ""}}, "Running hooks");
  for (const auto hook : store::running_in_front(connection, kRows))
    table.row({hook.text("plugin"), catalog::written_interval(hook.text("running_for")),
               snapshot_link(hook["snapshot_id"], hook.text("url")), hook.text("worker")});
  return table.html("Nothing runs.");
}

} // namespace

std::optional<Page> overview_page(const PageRequest& request) {
  auto& connection = request.connection;
  Page page{"Overview", "Overview", {}};
  if (request.may_change) page.sections.push_back({"add", html::fill(embedded::quick_add_html, {}), "", false, false});
  page.sections.push_back({"numbers", numbers(connection), "", false});
  page.sections.push_back({"stuck", stuck(connection), ""});
  page.sections.push_back({"running", running(connection), "Running now"});
  page.sections.push_back({"crawls",
                           crawl_table(store::latest_crawls(connection, kCrawls), false)
                               .html(Html(html::Literal(embedded::no_crawls_html))),
                           "Crawls"});
  return page;
}

} // namespace holdfast::serve
