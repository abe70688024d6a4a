#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <array>
#include <span>

namespace holdfast::serve {

namespace {

constexpr int kSnapshotsOfTable = 100;

Html facts(pg::Connection& connection, const store::Crawl& crawl) {
  Html added = when(crawl.created_at);
  if (!crawl.created_by.empty()) added += html::escaped(" by " + crawl.created_by);
  html::Facts facts;
  facts.add("Succeeded", number(crawl.succeeded));
  facts.add("Partial", number(crawl.partial));
  facts.add("Failed", number(crawl.failed));
  facts.add("Cancelled", number_unless_zero(crawl.cancelled));
  facts.add("Size", size_of(crawl.bytes));
  facts.add("Depth", crawl.max_depth);
  facts.add("At most", crawl.max_urls > 0 ? number(crawl.max_urls) + " URLs" : "");
  facts.add("Added", added);
  facts.add("Sealed", when(crawl.sealed_at));
  facts.add("Tags", tag_links(crawl.tags));
  facts.add("Notes", crawl.notes);
  return html::fill(embedded::crawl_html,
                    {{"state", state_badge(crawl.status, crawl.outcome)},
                     {"progress", progress(crawl.total - crawl.open, crawl.total + crawl.seeds_left)},
                     {"why", sentence(store::why(connection, crawl.id).reason)},
                     {"facts", facts.html()},
                     {"download", crawl.total > crawl.open ? crawl.id : ""}});
}

// Where the gallery goes on; nothing: at its beginning.
std::optional<std::string> after(const PageRequest& request) {
  const auto id = request.parameter("after");
  return base::is_uuid(id) ? std::optional(id) : std::nullopt;
}

Html gallery(const PageRequest& request) {
  const auto snapshots =
      store::call(request.connection, "crawl_snapshots", request.id, after(request), kSnapshotsOfPage);
  html::List tiles;
  for (const auto snapshot : snapshots)
    tiles.push_back(tile(snapshot, request.links.picture(snapshot)));
  const bool full = snapshots.size() == kSnapshotsOfPage;
  return gallery_of(std::move(tiles),
                    full ? "/crawl/" + request.id + "?after=" + snapshots[snapshots.size() - 1].text("id") : "");
}

Html acts(const store::Crawl& crawl, const PageRequest& request) {
  const bool sealed = crawl.status == "sealed";
  std::vector<Act> acts;
  if (sealed && crawl.failed + crawl.partial > 0)
    acts.push_back({"retry", "Retry failed", crawl.id, {{"failed", "true"}}});
  if (sealed) acts.push_back({"retry", "Archive again", crawl.id});
  for (auto& act : acts_on("crawl", crawl.id, crawl.status))
    acts.push_back(std::move(act));
  return buttons(acts, sealed ? "/crawls" : request.here);
}

// Snapshots to show: all with their thumbnails, or those with an outcome or a status, as a table.
struct Shown {
  const char *name, *filter, *value;
};
constexpr Shown kShown[] = {{"All", "", ""},
                            {"Failed", "outcome", "failed"},
                            {"Partial", "outcome", "partial"},
                            {"Succeeded", "outcome", "succeeded"},
                            {"Waiting", "status", "queued"},
                            {"Started", "status", "started"},
                            {"Paused", "status", "paused"}};

std::string count_of(const store::Crawl& crawl, std::string_view outcome) {
  return outcome == "failed"      ? number(crawl.failed)
         : outcome == "partial"   ? number(crawl.partial)
         : outcome == "succeeded" ? number(crawl.succeeded)
                                  : "";
}

Html shown_links(const PageRequest& request, const store::Crawl& crawl) {
  html::List links;
  for (const auto& one : kShown) {
    const bool all = *one.filter == '\0';
    links.push_back({{"href", "/crawl/" + request.id + (all ? "" : std::string("?") + one.filter + "=" + one.value)},
                     {"name", one.name},
                     {"count", all ? number(crawl.total) : count_of(crawl, one.value)},
                     {"current", all ? request.parameter("outcome").empty() && request.parameter("status").empty()
                                     : request.parameter(one.filter) == one.value}});
  }
  return html::fill(embedded::shown_links_html, {{"links", std::move(links)}});
}

pg::Result snapshot_rows(const PageRequest& request) {
  catalog::ListQuery query{"snapshots", kSnapshotsOfTable};
  query.by("crawl", request.id).by("before", request.before.value_or(catalog::kNewest));
  for (const char* name : {"outcome", "status"})
    if (const auto value = request.parameter(name); !value.empty()) query.by(name, value);
  return catalog::list(request.connection, query);
}

Html snapshot_table(const PageRequest& request, const pg::Result& rows) {
  Table table({{"Snapshot", "long"},
               {"State", "nw"},
               {"Response", "n"},
               {"Size", "n"},
               {request.may_change ? "Select" : "", "nw"}},
              "Snapshots");
  for (const auto row : rows) {
    const std::string id = row["id"], url = row["url"];
    table.row({snapshot_link(id, url), state_badge(row["status"], row["outcome"].value_or("")),
               row["http_status"].value_or(""), size_of(row["bytes"].value_or<std::int64_t>(0)), select_box(id, url)});
  }
  auto all = table.html("There are none in this crawl.");
  if (static_cast<int>(rows.size()) == kSnapshotsOfTable)
    all += html::fill(embedded::more_html,
                      {{"href", "/crawl/" + request.id + "?before=" + rows[rows.size() - 1].text("id") +
                                    request.kept({"outcome", "status"})}});
  return all;
}

} // namespace

std::optional<Page> crawl_page(const PageRequest& request) {
  const auto crawl = store::find_crawl(request.connection, request.id);
  if (!crawl) return std::nullopt;
  const bool earlier = request.before.has_value() || after(request).has_value();
  const bool chosen = !request.parameter("outcome").empty() || !request.parameter("status").empty();
  std::vector<Section> sections{{"crawl", facts(request.connection, *crawl), "", false}};
  if (request.may_change) {
    sections.push_back({"acts", acts(*crawl, request), "", false});
    sections.push_back(
        {"edit",
         html::fill(embedded::crawl_edit_html,
                    {{"id", crawl->id}, {"back", request.here}, {"label", crawl->label}, {"notes", crawl->notes}}),
         "", false, false});
  }
  sections.push_back({"shown", shown_links(request, *crawl), earlier ? "Snapshots, continued" : "Snapshots"});
  if (chosen) {
    const auto rows = snapshot_rows(request);
    if (request.may_change && rows.size() > 0)
      sections.push_back({"selected", bulk_bar("snapshots", request.here), "", false, false});
    sections.push_back({"snapshots", snapshot_table(request, rows), "", false, !earlier});
  } else
    sections.push_back({"gallery", gallery(request), "", false, !earlier});
  return Page{crawl->name(), crawl->name(), std::move(sections), {}, "Crawl " + request.id};
}

// Crawls with filters, an order and commands for several at once; and the form that adds one.

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

std::string name_of(const pg::Row& snapshot) {
  const auto title = snapshot["title"].value_or("");
  return title.empty() ? snapshot.text("url") : title;
}

Html gallery_of(html::List tiles, const std::string& more) {
  return html::fill(embedded::gallery_html, {{"tiles", std::move(tiles)}, {"more", more}});
}

html::Fields tile(const std::string& id, const std::string& href, const std::string& picture, std::string_view name,
                  std::string_view where, html::Value state) {
  return {{"id", id},     {"href", href},   {"picture", picture},       {"short_name", name.substr(0, 60)},
          {"name", name}, {"where", where}, {"state", std::move(state)}};
}

html::Fields tile(const pg::Row& snapshot, const std::string& picture, const std::string& href) {
  const auto where = html::without_scheme(snapshot.text("url"));
  const auto title = snapshot["title"].value_or("");
  return tile(snapshot.text("id"), href.empty() ? "/snapshot/" + snapshot.text("id") : href, picture,
              title.empty() ? where : title, where, state_badge(snapshot["status"], snapshot["outcome"].value_or("")));
}

std::string captured_at(const pg::Row& snapshot) {
  for (const char* name : {"started_at", "sealed_at"})
    if (auto time = snapshot[name].value_or(""); !time.empty()) return time;
  return snapshot.text("created_at");
}

Table crawl_table(const pg::Result& rows, bool select) {
  Table table({{"Crawl", "long"},
               {"State", "nw"},
               {"Progress", "nw"},
               {"Failed", "n"},
               {"Partial", "n"},
               {"Size", "n"},
               {"Added", "nw"},
               {select ? "Select" : "", "nw"}},
              "Crawls");
  for (const auto row : rows) {
    const std::string id = row["id"], label = row["label"], url = row["first_url"];
    const auto& name = label.empty() ? url : label;
    const std::int64_t total = row["total"], open = row["open"], seeds = row["seeds_left"];
    auto named = crawl_link(id, name);
    named += tag_links(row["tags"]);
    table.row({std::move(named), state_badge(row["status"], row["outcome"].value_or("")),
               progress(total - open, total + seeds), number_unless_zero(row["failed"]),
               number_unless_zero(row["partial"]), size_of(row["bytes"]), ago(row.text("created_at")),
               select_box(id, name)});
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
  constexpr int kPersonasOffered = 500;
  html::List personas;
  for (const auto row : catalog::list(request.connection, {"personas", kPersonasOffered}))
    personas.push_back({{"name", row.text("name")}});
  return Page{"Add",
              "Add pages",
              {{"add",
                html::fill(embedded::add_html,
                           {{"personas", std::move(personas)},
                            {"text", request.parameter(request.parameter("url").empty() ? "text" : "url")}}),
                "", false, false}}};
}

} // namespace holdfast::serve
