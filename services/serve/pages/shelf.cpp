// The page of all shelves, and that of one: as a gallery, a list or a timeline.
#include "lib/base/text/encoding.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <map>
#include <utility>

namespace holdfast::serve {

namespace {

constexpr int kShelves = 500;
constexpr std::size_t kDescriptionShown = 160; // on the page of all shelves
constexpr std::array kViews{std::pair{"", "Gallery"}, std::pair{"list", "List"}, std::pair{"timeline", "Timeline"}};
constexpr std::array kRule{
    std::pair{"q", "Words"},        std::pair{"tag", "Tag"},         std::pair{"host", "Host"},
    std::pair{"url", "In the URL"}, std::pair{"outcome", "Outcome"}, std::pair{"since", "Since"},
    std::pair{"until", "Before"},   std::pair{"crawl", "Crawl"},     std::pair{"captures", "Captures"}};

std::string pages_of(const pg::Row& shelf) {
  const auto pages = shelf["pages"].optional<std::int64_t>();
  return pages ? html::counted(static_cast<std::uint64_t>(*pages), "page") : "";
}

Html shelf_gallery(const PageRequest& request, const pg::Result& rows, const std::string& more) {
  html::List tiles;
  for (const auto row : rows)
    tiles.push_back(tile(row, request.links.picture(row)));
  return gallery_of(std::move(tiles), more);
}

// A bar for each day with captures, the first day first.
Html days(const pg::Result& rows) {
  constexpr std::size_t kDay = 10; // letters of "2026-11-28"
  std::map<std::string, std::array<int, 3>> counts;
  for (const auto row : rows) {
    const auto at = row["sealed_at"].value_or(""), outcome = row["outcome"].value_or("");
    const auto part = outcome == "succeeded" ? 0U : outcome == "partial" ? 1U : 2U;
    ++counts[(at.empty() ? row.text("created_at") : at).substr(0, kDay)][part];
  }
  Chart bars{"Captures by day", ""};
  for (const auto& [day, count] : counts)
    bars.bars.push_back({day + ": " + html::counted(static_cast<std::uint64_t>(count[0] + count[1] + count[2]), "page"),
                         "",
                         {{"ok", double(count[0])}, {"warn", double(count[1])}, {"bad", double(count[2])}}});
  return chart(bars);
}

Html shelf_timeline(const PageRequest& request, const pg::Result& rows, const std::string& more) {
  html::List found;
  for (const auto row : rows) {
    const auto sealed = row["sealed_at"].value_or("");
    found.push_back({{"href", "/snapshot/" + row.text("id")},
                     {"picture", request.links.picture(row)},
                     {"name", name_of(row)},
                     {"url", row.text("url")},
                     {"state", state_badge(row["status"], row["outcome"].value_or(""))},
                     {"pieces", html::List()},
                     {"when", when(sealed.empty() ? row.text("created_at") : sealed)}});
  }
  auto html = rows.size() > 1 ? days(rows) : Html();
  html += html::fill(embedded::search_html,
                     {{"found", std::move(found)}, {"none", "None yet."}, {"more_name", "Older"}, {"more", more}});
  return html;
}

// With buttons that move each page, or take it off, if it stands there by hand.
Html shelf_list(const PageRequest& request, const pg::Result& rows, const std::string& more, bool by_hand) {
  const bool moves = request.may_change && by_hand;
  Table table({{"Page", "long"}, {"Captured", "nw"}, {"State", "nw"}, {moves ? "Change" : "", "nw"}},
              "Pages of this shelf");
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto row = rows[at];
    const auto id = row.text("id");
    std::vector<Act> acts;
    const auto move = [&](const char* label, const std::string& place) {
      acts.push_back({"shelve", label, id, {{"shelf", request.id}, {"place", place}}});
    };
    if (at > 0) move("Up", "before " + rows[at - 1].text("id"));
    if (at + 1 < rows.size()) move("Down", "after " + rows[at + 1].text("id"));
    move("First", "first");
    acts.push_back({"unshelve", "Take off", id, {{"shelf", request.id}}});
    table.row({snapshot_link(id, name_of(row)), ago(row["sealed_at"].value_or("")),
               state_badge(row["status"], row["outcome"].value_or("")), buttons(acts, request.here)});
  }
  auto html = table.html("None yet.");
  if (!more.empty()) html += html::fill(embedded::more_html, {{"href", more}});
  return html;
}

Html shelf_head(const PageRequest& request, const pg::Row& shelf, const nlohmann::json& rule) {
  std::string filled;
  for (const auto& [field, label] : kRule)
    if (rule.contains(field))
      filled += (filled.empty() ? "" : ", ") + std::string(label) + ": " + rule[field].get<std::string>();
  html::List views;
  for (const auto& [view, name] : kViews)
    views.push_back({{"href", "/shelf/" + request.id + (*view == '\0' ? "" : std::string("?as=") + view)},
                     {"name", name},
                     {"count", ""},
                     {"current", request.parameter("as") == view}});
  for (const auto& [href, name] : {std::pair("/atom?shelf=", "Atom feed"), {"/api/v1/export?shelf=", "Download"}})
    views.push_back({{"href", href + request.id}, {"name", name}, {"count", ""}, {"current", false}});
  return html::fill(embedded::shelf_html,
                    {{"name", shelf.text("name")},
                     {"count", pages_of(shelf)},
                     {"rule", filled},
                     {"changed", ago(shelf.text("changed_at"))},
                     {"description", shelf.text("description")},
                     {"views", html::fill(embedded::shown_links_html, {{"links", std::move(views)}})}});
}

Html shelf_edit(const PageRequest& request, const pg::Row& shelf, const nlohmann::json& rule) {
  html::List fields;
  for (const auto& [field, label] : kRule)
    if (rule.contains(field))
      fields.push_back({{"field", field}, {"label", label}, {"value", rule[field].get<std::string>()}});
  auto html = html::fill(embedded::shelf_edit_html, {{"id", request.id},
                                                     {"version", shelf.text("version")},
                                                     {"back", request.here},
                                                     {"name", shelf.text("name")},
                                                     {"description", shelf.text("description")},
                                                     {"rule", std::move(fields)}});
  html += share_form({{"shelf", request.id, "Make link"}}, request.here);
  html += buttons(acts_on("shelf", request.id, ""), "/shelves");
  return html;
}

} // namespace

Html share_form(const std::vector<Shareable>& things, const std::string& back) {
  html::List list;
  for (const auto& [field, value, label] : things)
    list.push_back({{"field", field}, {"value", value}, {"name", label}});
  return html::fill(embedded::share_form_html, {{"things", std::move(list)}, {"back", back}});
}

std::optional<Page> shelves_page(const PageRequest& request) {
  html::List tiles;
  for (const auto row : store::call(request.connection, "shelves", kShelves)) {
    const auto id = row.text("id");
    tiles.push_back(tile(id, "/shelf/" + id, request.links.picture(row), row.text("name"),
                         cut(row.text("description"), kDescriptionShown),
                         row.boolean("by_rule") ? "filled by a rule" : pages_of(row)));
  }
  Page page{"Shelves", "Shelves", {}};
  page.body =
      html::fill(embedded::shelves_html, {{"gallery", gallery_of(std::move(tiles))}, {"may", request.may_change}});
  return page;
}

std::optional<Page> shelf_page(const PageRequest& request) {
  const auto shelves = catalog::list(request.connection, catalog::ListQuery{"shelf", 1}.by("shelf", request.id));
  if (shelves.empty()) return std::nullopt;
  const auto shelf = shelves.one();
  const auto rule = nlohmann::json::parse(shelf["rule"].value_or("{}"));
  const auto as = request.parameter("as"), after = request.parameter("after");
  const auto rows = store::call(request.connection, "shelf_entries", request.id, as == "timeline" ? "time" : "shelf",
                                after.empty() ? std::nullopt : std::optional(after), kSnapshotsOfPage);
  std::string more;
  if (static_cast<int>(rows.size()) == kSnapshotsOfPage)
    more = "/shelf/" + request.id + "?" + (as.empty() ? "" : "as=" + base::percent_encode(as) + "&") +
           "after=" + base::percent_encode(rows[rows.size() - 1].text("cursor"));
  Page page{shelf.text("name"), "", {{"head", shelf_head(request, shelf, rule), "", false}}};
  page.sections.push_back({"pages",
                           as == "list"       ? shelf_list(request, rows, more, shelf.is_null("rule"))
                           : as == "timeline" ? shelf_timeline(request, rows, more)
                                              : shelf_gallery(request, rows, more),
                           "", false});
  if (request.may_change) page.sections.push_back({"edit", shelf_edit(request, shelf, rule), "", false, false});
  return page;
}

} // namespace holdfast::serve
