#include "lib/base/text/encoding.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <cmath>
#include <map>

namespace holdfast::serve {

namespace {

constexpr int kCrawls = 30; // open ones, and as many sealed ones
constexpr int kRows = 20, kHooks = 200, kRecent = 8;
constexpr std::string_view kOwned = "owned by "; // before the worker, in the state of a page in the queue

// Empty: nothing is archived, or about to be.
Html numbers(pg::Connection& connection) {
  const auto rows = store::status(connection);
  const auto now = rows.one();
  if (now.integer("archived") + now.integer("crawls_open") == 0) return {};
  html::List list;
  const auto add = [&](const char* name, const std::string& value) {
    list.push_back({{"name", name}, {"value", value}});
  };
  add("Pages archived", number(now.integer("archived")));
  if (now.integer("bytes") > 0) add("Size", size_of(now.integer("bytes")));
  add("Workers", number(now["workers"]));
  add("In work", number(now["snapshots_held"]) + " of " + number(now["slots"]));
  add("Open snapshots", number(now["snapshots_open"]));
  const auto paused = now.integer("crawls_paused");
  add("Open crawls", number(now["crawls_open"]) + (paused > 0 ? ", " + number(paused) + " paused" : ""));
  const bool idle = now.integer("crawls_to_do") > 0 && now.integer("workers") == 0 && now.integer("runners") == 0;
  return html::fill(embedded::numbers_html, {{"numbers", std::move(list)}, {"idle", idle}});
}

// Returns the buttons for a cause, or a link to where something can be done.
html::Value help(const pg::Row& cause, bool may_change) {
  const std::string kind = cause["kind"], id = cause["id"].value_or("");
  const bool asks = cause["reason"].value_or("").find("the site asks to sign in") != std::string::npos;
  if (kind == "persona" || asks) return html::link("/personas", "Sign in");
  if (kind == "host") return html::link("/search?outcome=failed&host=" + base::percent_encode(id), "Show");
  if (!may_change || id.empty() || (kind != "crawl" && kind != "snapshot")) return "";
  return buttons(acts_on(kind, id, "queued"), "/");
}

// One row for each cause.
Html attention(const PageRequest& request) {
  Table table({{"What", "long"}, {"Why", "long"}, {"Since", "nw"}, {"Do", ""}}, "Needs you");
  for (const auto cause : store::call(request.connection, "attention", kRows)) {
    const std::string kind = cause["kind"], id = cause["id"].value_or(""), name = cause["name"].value_or(short_id(id));
    const auto count = cause.integer("count");
    Html what = kind == "crawl"      ? crawl_link(id, name)
                : kind == "snapshot" ? snapshot_link(id, name)
                                     : html::escaped(name);
    if (kind == "host")
      what = html::escaped(html::counted(static_cast<std::uint64_t>(count), "page") + " of " + name + " failed");
    else
      what += html::escaped((count > 1 ? " and " + number(count - 1) + " more: " : ": ") + cause.text("what"));
    table.row({std::move(what), sentence(cause["reason"].value_or("")), ago(cause["since"].value_or("")),
               help(cause, request.may_change)});
  }
  return table.empty() ? Html() : table.html("");
}

// The latest changes of pages, with pictures; each leads to the comparison.
Html changed(const PageRequest& request) {
  const auto rows = catalog::list(request.connection, {"changes", kRecent});
  Table table({{"Page", "long"}, {"Change", "nw"}, {"Words", "nw"}, {"Found", "nw"}}, "Changed pages");
  for (const auto row : rows) {
    const auto from = row["change_from"].value_or("");
    const auto words = [&](const char* name) { return row[name].value_or<std::int64_t>(0); };
    table.row({html::link(from.empty() ? "/snapshot/" + row.text("id") : "/compare?a=" + from + "&b=" + row.text("id"),
                          name_of(row)),
               row.text("change"),
               words("words_added") + words("words_removed") > 0
                   ? "+" + number(words("words_added")) + " −" + number(words("words_removed"))
                   : "",
               ago(row.text("sealed_at"))});
  }
  return table.empty() ? Html() : table.html("");
}

struct Range {
  const char *name, *grain, *width, *title;
  int bars;
  std::size_t shown; // letters of a time
};
constexpr Range kRanges[] = {{"day", "hour", "1 hour", "Last day", 24, 16},
                             {"month", "day", "1 day", "Last month", 30, 10},
                             {"year", "day", "7 days", "Last year", 52, 10}};

Html curves(const PageRequest& request) {
  const auto* range = &kRanges[0];
  html::List links;
  for (const auto& one : kRanges)
    if (request.parameter("range") == one.name) range = &one;
  for (const auto& one : kRanges)
    links.push_back(
        {{"href", std::string("/?range=") + one.name}, {"name", one.title}, {"count", ""}, {"current", &one == range}});
  Table table({{"From (UTC)", "nw"},
               {"Succeeded", "n"},
               {"Partial", "n"},
               {"Failed", "n"},
               {"Changed", "n"},
               {"Size", "n"},
               {"Seconds a page", "n"},
               {"Queue", "n"}},
              range->title);
  Chart pages{"Pages", ""}, changes{"Changes", ""}, bytes{"Bytes", ""}, seconds{"Seconds a page", ""},
      queue{"Queue", ""};
  std::int64_t all = 0, all_changed = 0;
  double all_bytes = 0;
  for (const auto row : store::call(request.connection, "curve", range->grain, range->width, range->bars)) {
    const auto at = row.text("at").substr(0, range->shown);
    const std::int64_t good = row["succeeded"], partial = row["partial"], failed = row["failed"],
                       moved = row["changed"], open = row["queue"];
    const double size = row["bytes"].value_or(0.0), pace = row["seconds"].value_or(0.0);
    const auto size_text = size_of(std::llround(size)), pace_text = duration(pace);
    pages.bars.push_back(
        {at + ": " + number(good) + " succeeded, " + number(partial) + " partial, " + number(failed) + " failed",
         "",
         {{"ok", double(good)}, {"warn", double(partial)}, {"bad", double(failed)}}});
    changes.bars.push_back({at + ": " + number(moved) + " changed", "", {{"ok", double(moved)}}});
    bytes.bars.push_back({at + ": " + (size_text.empty() ? "none" : size_text), "", {{"mute", size}}});
    seconds.bars.push_back({at + ": " + pace_text, "", {{"mute", pace}}});
    queue.bars.push_back({at + ": " + number(open) + " open", "", {{"mute", double(open)}}});
    if (good + partial + failed + open > 0)
      table.row({at, number(good), number(partial), number(failed), number(moved), size_text, pace_text, number(open)});
    all += good + partial + failed;
    all_changed += moved;
    all_bytes += size;
  }
  pages.note = number(all);
  changes.note = number(all_changed);
  bytes.note = size_of(std::llround(all_bytes));
  html::List charts;
  for (const auto* one : {&pages, &changes, &bytes, &seconds, &queue})
    charts.push_back({{"chart", chart(*one)}});
  return html::fill(embedded::curves_html,
                    {{"ranges", html::fill(embedded::shown_links_html, {{"links", std::move(links)}})},
                     {"charts", std::move(charts)},
                     {"table", table.html("Nothing was archived in this time.")}});
}

// The newest pages, with pictures.
Html recent(const PageRequest& request) {
  const auto rows = catalog::list(request.connection, catalog::ListQuery{"snapshots", kRecent}.by("status", "sealed"));
  if (rows.empty()) return {};
  auto pictures = store::thumbnails(request.connection, rows.column("id"));
  html::List tiles;
  for (const auto row : rows)
    tiles.push_back(tile(row, request.links.picture(row["directory"].value_or(""), pictures[row.text("id")])));
  return gallery_of(std::move(tiles), "/search");
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
  return table.empty() ? Html() : table.html("");
}

} // namespace

std::optional<Page> overview_page(const PageRequest& request) {
  auto& connection = request.connection;
  Page page{"Overview", "Overview", {}};
  if (request.may_change) page.sections.push_back({"add", html::fill(embedded::quick_add_html, {}), "", false, false});
  page.sections.push_back({"attention", attention(request), "Needs you"});
  page.sections.push_back({"recent", recent(request), "Recently archived"});
  page.sections.push_back({"changed", changed(request), "Changed"});
  page.sections.push_back({"running", running(connection), "Running now"});
  const auto totals = numbers(connection);
  page.sections.push_back({"numbers", totals, "Totals"});
  page.sections.push_back({"curves", totals.empty() ? Html() : curves(request), ""});
  page.sections.push_back({"crawls",
                           crawl_table(store::latest_crawls(connection, kCrawls), false)
                               .html(Html(html::Literal(embedded::no_crawls_html))),
                           "Crawls"});
  return page;
}

} // namespace holdfast::serve
