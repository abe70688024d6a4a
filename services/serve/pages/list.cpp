// The page of any list of `holdfast list`: its rows, and buttons for what can be done to each; and the page of all
// lists.
#include "lib/catalog/list.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/html/parts.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace holdfast::serve {

namespace {

constexpr int kRowsOfList = 200;
constexpr std::size_t kLongest = 400; // of an error

// "first_url" -> "First URL", "ended_at" -> "Ended".
std::string heading_of(std::string name) {
  if (name.ends_with("_at")) name.resize(name.size() - 3);
  const auto upper = [](char& letter) { letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter))); };
  auto words = base::split(name, "_");
  for (auto& word : words)
    if (word == "url" || word == "http" || word == "cpu" || word == "id")
      std::for_each(word.begin(), word.end(), upper);
  auto heading = base::join(words, " ");
  upper(heading.front());
  return heading;
}

bool is_size(std::string_view name) { return name == "bytes" || name == "size" || name.starts_with("peak_memory"); }
bool is_number(const std::string& text) { return text.find_first_not_of("0123456789.") == std::string::npos; }

struct Rows {
  const catalog::List& list;
  pg::Result all;

  // Empty: the list has no such column, or nothing there.
  std::string at(const pg::Row& row, const std::string& column) const {
    const auto& columns = all.columns();
    return std::find(columns.begin(), columns.end(), column) == columns.end() ? "" : row[column].value_or("");
  }
  std::string_view state(const pg::Row& row) const {
    for (const char* column : {"state", "status"})
      for (const std::string_view known : {"paused", "sealed"})
        if (at(row, column) == known) return known;
    return at(row, "enabled") == "f" ? "paused" : "";
  }
};

// The style of a column, by what is in it.
std::string style_of(const Rows& rows, const std::string& name) {
  for (const std::string_view text : {"url", "title", "reason", "error", "output", "detail", "why", "summary"})
    if (name.ends_with(text)) return "long";
  const auto& columns = rows.all.columns();
  const auto column = std::find(columns.begin(), columns.end(), name);
  if (column == columns.end() || rows.all.kind(static_cast<std::size_t>(column - columns.begin())) != pg::Kind::other)
    return "nw";
  constexpr std::size_t kShort = 24; // letters that stay in one line
  std::size_t longest = 0;
  bool numbers = true;
  for (const auto row : rows.all) {
    const auto text = rows.at(row, name);
    longest = std::max(longest, text.size());
    numbers &= is_number(text);
  }
  const bool id = name == "id" || name.ends_with("_id");
  return numbers ? "n" : longest <= kShort || id ? "nw" : "";
}

html::Value cell(const Rows& rows, const pg::Row& row, const std::string& name) {
  const auto text = rows.at(row, name);
  const auto column = std::find(rows.all.columns().begin(), rows.all.columns().end(), name);
  switch (rows.all.kind(static_cast<std::size_t>(column - rows.all.columns().begin()))) {
  case pg::Kind::time:
    return name.ends_with("ed_at") ? ago(text) : when(text);
  case pg::Kind::interval:
    return catalog::written_interval(text);
  case pg::Kind::list:
    return base::join(row[name].as<std::vector<std::string>>(), ", ");
  case pg::Kind::other:
    break;
  }
  const bool by_id = rows.list.record == "Snapshot" || rows.list.record == "Change";
  const auto snapshot = rows.at(row, by_id ? "id" : "snapshot_id");
  const auto lifecycle = rows.at(row, "lifecycle");
  if (name == "url" && !snapshot.empty()) return snapshot_link(snapshot, text);
  if (name == "crawl_id" || (name == "object_id" && lifecycle == "crawl")) return crawl_link(text, short_id(text));
  if (name == "snapshot_id" || (name == "object_id" && lifecycle == "snapshot"))
    return snapshot_link(text, short_id(text));
  if (name == "id" || name == "object_id") return short_id(text);
  if (name == "host") return html::link("/search?host=" + base::percent_encode(text), text);
  if (name == "status" && !rows.at(row, "outcome").empty()) return html::status_badge(rows.at(row, "outcome"));
  if (name == "status" || name.ends_with("outcome")) return text.empty() ? Html() : html::status_badge(text);
  if (is_size(name) && is_number(text)) return size_of(std::atoll(text.c_str()));
  if (name == "enabled" || name == "paused") return text == "t" ? "yes" : "no";
  return sentence(cut(text, kLongest));
}

// The columns that are shown: of those that may be left out, the ones where something is.
std::vector<std::string> columns_of(const Rows& rows) {
  std::vector<std::string> columns;
  for (auto name : rows.list.columns) {
    const bool optional = name.ends_with('?');
    if (optional) name.pop_back();
    bool any = !optional;
    for (const auto row : rows.all)
      any |= !rows.at(row, name).empty() && rows.at(row, name) != "0" && rows.at(row, name) != "{}";
    // One badge has both: how it ended, else its status.
    if (name == "outcome" && !columns.empty() && columns.back() == "status") continue;
    if (any) columns.push_back(std::move(name));
  }
  return columns;
}

} // namespace

std::optional<Page> list_page(const PageRequest& request) {
  const auto& list = catalog::list_of(request.id);
  const auto part = list.knows("url") ? request.parameter("url") : "";
  catalog::ListQuery query{request.id, kRowsOfList};
  if (!part.empty()) query.by("url", part);
  const Rows rows{list, catalog::list(request.connection, query)};
  const auto names = columns_of(rows);
  bool acts = false;
  for (const auto row : rows.all)
    acts |= request.may_change && !acts_on(list.one, "", rows.state(row)).empty();
  std::vector<Table::Column> columns;
  for (const auto& name : names)
    columns.push_back({heading_of(name), style_of(rows, name)});
  if (acts) columns.push_back({"Change", ""});
  Table table(columns, list.summary);
  for (const auto row : rows.all) {
    std::vector<html::Value> cells;
    for (const auto& name : names)
      cells.push_back(cell(rows, row, name));
    if (acts) cells.emplace_back(buttons(acts_on(list.one, row.text(names[0]), rows.state(row)), request.here));
    table.row(std::move(cells));
  }
  Page page{heading_of(request.id), heading_of(request.id), {}};
  if (list.knows("url"))
    page.sections.push_back(
        {"filter",
         html::fill(embedded::list_filter_html, {{"list", list.name}, {"url", part}, {"sites", list.name == "sites"}}),
         "", false, false});
  page.sections.push_back({request.id, table.html("None."), "", false});
  return page;
}

// Pages that failed, one row each; `hooks=1`: the failed hooks, one row each.
std::optional<Page> failures_page(const PageRequest& request) {
  if (!request.parameter("hooks").empty()) return list_page(request);
  Table table({{"Page", "long"}, {"Failed", "nw"}, {"Reason", "long"}, {request.may_change ? "Change" : "", "nw"}},
              "Failed pages");
  const auto rows =
      catalog::list(request.connection, catalog::ListQuery{"snapshots", kRowsOfList}.by("outcome", "failed"));
  for (const auto row : rows) {
    const std::string id = row["id"], url = row["url"];
    table.row({snapshot_link(id, url), ago(row["sealed_at"].value_or("")),
               sentence(cut(row["reason"].value_or(""), kLongest)),
               buttons({{"retry", "Archive again", id}}, request.here)});
  }
  Html all = table.html("No page has failed.");
  all += html::fill(embedded::failed_hooks_html, {});
  return Page{"Failures", "Failures", {{"failures", std::move(all), "", false}}};
}

std::optional<Page> lists_page(const PageRequest&) {
  Table table({{"List", "nw"}, {"Contents", "long"}}, "Lists");
  for (const auto& list : catalog::lists())
    if (list.for_guests) table.row({html::link("/" + std::string(list.name), list.name), list.summary});
  return Page{"Lists", "Lists", {{"lists", table.html(""), "", false}}};
}

} // namespace holdfast::serve
