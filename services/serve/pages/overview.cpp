#include "lib/catalog/list.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <map>

namespace holdfast::serve {

namespace {

constexpr int kCrawls = 30; // open ones, and as many sealed ones
constexpr int kRows = 20, kHooks = 200, kMostPersonas = 500, kRecent = 8;
constexpr std::string_view kOwned = "owned by "; // before the worker, in the state of a page in the queue

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
  const bool idle = now.integer("crawls_to_do") > 0 && now.integer("workers") == 0 && now.integer("runners") == 0;
  return html::fill(embedded::numbers_html, {{"numbers", std::move(list)}, {"idle", idle}});
}

Html stuck(pg::Connection& connection) {
  const auto all = store::stuck(connection, kRows);
  const auto personas = catalog::list(connection, {"personas", kMostPersonas});
  Table table({{"What", "long"}, {"Wrong", ""}, {"For", "nw"}, {"Why", "long"}}, "Stuck");
  for (const auto one : all) {
    const std::string kind = one["kind"], id = one["id"].value_or(""), name = one["name"].value_or(short_id(id));
    table.row({kind == "crawl"      ? crawl_link(id, name)
               : kind == "snapshot" ? snapshot_link(id, name)
                                    : html::escaped(name),
               one.text("what"), catalog::written_interval(one["stuck_for"].value_or("")),
               sentence(one["reason"].value_or(""))});
  }
  for (const auto persona : personas)
    if (!persona.is_null("signed_out_at"))
      table.row({html::link("/personas", persona.text("name")), "signed out", ago(persona.text("signed_out_at")),
                 sentence(persona["signed_out_reason"].value_or(""))});
  if (table.empty()) return {};
  return html::fill(embedded::stuck_html, {{"table", table.html("")}});
}

// The newest pages, with pictures.
Html recent(const PageRequest& request) {
  const auto rows = catalog::list(request.connection, catalog::ListQuery{"snapshots", kRecent}.by("status", "sealed"));
  if (rows.empty()) return {};
  auto pictures = store::thumbnails(request.connection, rows.column("id"));
  html::List tiles;
  for (const auto row : rows)
    tiles.push_back(tile(row, request.links.picture(row["directory"].value_or(""), pictures[row.text("id")])));
  return html::fill(embedded::gallery_html, {{"tiles", std::move(tiles)}, {"more", "/search"}});
}

// Pages that workers have, each with the hook that runs on it.
Html running(pg::Connection& connection) {
  std::map<std::string, pg::Row> hooks; // by snapshot: the longest
  const auto running = store::running_in_front(connection, kHooks);
  for (const auto hook : running)
    hooks.emplace(hook.text("snapshot_id"), hook);
  Table table({{"Page", "long"}, {"Hook", "nw"}, {"For", "nw"}, {"Worker", ""}}, "Pages in work");
  for (const auto page : catalog::list(connection, catalog::ListQuery{"queue", kRows}.by("status", "started"))) {
    const std::string id = page["id"], state = page["state"];
    const auto hook = hooks.find(id);
    const bool runs = hook != hooks.end();
    table.row({snapshot_link(id, page.text("url")), runs ? hook->second.text("plugin") : "",
               runs ? catalog::written_interval(hook->second.text("running_for")) : "",
               state.starts_with(kOwned) ? state.substr(kOwned.size()) : state});
  }
  return table.html("No page is in work.");
}

} // namespace

std::optional<Page> overview_page(const PageRequest& request) {
  auto& connection = request.connection;
  Page page{"Overview", "Overview", {}};
  if (request.may_change) page.sections.push_back({"add", html::fill(embedded::quick_add_html, {}), "", false, false});
  page.sections.push_back({"numbers", numbers(connection), "", false});
  page.sections.push_back({"stuck", stuck(connection), ""});
  page.sections.push_back({"running", running(connection), "Running now"});
  page.sections.push_back({"recent", recent(request), "Recently archived"});
  page.sections.push_back({"crawls",
                           crawl_table(store::latest_crawls(connection, kCrawls), false)
                               .html(Html(html::Literal(embedded::no_crawls_html))),
                           "Crawls"});
  return page;
}

} // namespace holdfast::serve
