#include "lib/archive/attempt.hpp"
#include "lib/archive/embedded.hpp"
#include "lib/archive/page_text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/html/parts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace holdfast::archive {

namespace {

constexpr std::size_t kTiles = 24;         // snapshots with a thumbnail; the rest are rows
constexpr std::size_t kRowsPerTable = 200; // a browser lays out only the tables in sight
constexpr std::size_t kSeedsShown = 5;

using Entry = CrawlView::Entry;
using html::grouped;
using html::href_of_path;
using html::Html;

// Outcomes of the filter; anything else is "other".
constexpr auto kOutcomes = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"succeeded", "Succeeded"}, {"partial", "Partial"}, {"failed", "Failed"}, {"other", "Other"}});

std::string_view outcome_key(const Entry& entry) {
  for (const auto& [key, word] : kOutcomes)
    if (entry.outcome == key) return key;
  return "other";
}

Html title_of(const Entry& entry) {
  const auto text = entry.title.empty() ? html::without_scheme(entry.url) : std::string_view(entry.title);
  return entry.path.empty() ? html::escaped(text) : html::link(href_of_path(entry.path), text);
}

std::string outcome_word(const Entry& entry) { return entry.outcome.empty() ? "pending" : entry.outcome; }

// The title is the link to tab to; the thumbnail is a bigger target for the same.
html::Fields tile(const Entry& entry) {
  const auto tone = html::status_tone(entry.outcome);
  const auto host = html::without_scheme(entry.url);
  return {{"tone", tone},
          {"key", outcome_key(entry)},
          {"href", entry.path.empty() ? "" : href_of_path(entry.path)},
          {"picture", entry.thumbnail.empty() ? "" : href_of_path(entry.thumbnail)},
          {"host", host.substr(0, host.find_first_of("/?"))},
          {"title", title_of(entry)},
          {"where", html::without_scheme(entry.url)},
          {"icon", html::icon(tone)},
          {"outcome", outcome_word(entry)},
          {"size", base::format_size(entry.bytes)},
          {"depth", entry.depth}};
}

html::Fields row(const Entry& entry) {
  return {{"key", outcome_key(entry)}, {"badge", html::status_badge(outcome_word(entry))},
          {"title", title_of(entry)},  {"where", html::without_scheme(entry.url)},
          {"depth", entry.depth},      {"size", base::format_size(entry.bytes)}};
}

// Later tables continue the first one; their headings are there for screen readers.
html::Fields table(const std::vector<Entry>& entries, std::size_t begin, std::size_t end, bool first) {
  html::List columns, rows;
  for (const auto& [style, name] : {std::pair{"o", "Outcome"}, {"", "Page"}, {"d", "Depth"}, {"b", "Size"}})
    columns.push_back({{"style", style}, {"name", name}, {"hidden", !first}});
  for (std::size_t i = begin; i < end; ++i)
    rows.push_back(row(entries[i]));
  return {{"first", grouped(begin + 1)},
          {"last", grouped(end)},
          {"columns", std::move(columns)},
          {"rows", std::move(rows)}};
}

// Radio buttons and :has() filter without a script; a browser that lacks :has() shows everything and no buttons.
html::List filters_of(const std::vector<Entry>& entries) {
  std::map<std::string_view, std::size_t> counts;
  for (const Entry& entry : entries)
    ++counts[outcome_key(entry)];
  html::List filters;
  for (const auto& [key, word] : kOutcomes)
    if (const auto count = counts.find(key); count != counts.end() && counts.size() > 1)
      filters.push_back({{"key", key},
                         {"icon", html::icon(key == "other" ? "mute" : html::status_tone(key))},
                         {"word", word},
                         {"count", grouped(count->second)}});
  return filters;
}

html::List seeds_of(const CrawlView& view, std::size_t begin, std::size_t end) {
  html::List seeds;
  for (std::size_t i = begin; i < end; ++i)
    seeds.push_back({{"link", html::outside_link(view.seeds[i], view.seeds[i])}});
  return seeds;
}

Html facts_of(const CrawlView& view) {
  constexpr auto kWide = html::Facts::Width::wide;
  html::Facts facts;
  facts.add("Pages", grouped(view.snapshots.size()));
  facts.add("Kept", base::format_size(view.bytes));
  facts.add("Depth limit", view.max_depth);
  facts.add("Started", html::time_element(view.created_at), kWide);
  facts.add("Sealed", html::time_element(view.sealed_at), kWide);
  facts.add("Tags", tag_list(view.tags), kWide);
  return facts.html();
}

// Pictures first, if there are any; rows after.
std::pair<html::List, html::List> tiles_and_tables(const std::vector<Entry>& entries) {
  html::List tiles, tables;
  auto begin = std::min(entries.size(), kTiles);
  if (std::all_of(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(begin),
                  [](const Entry& entry) { return entry.thumbnail.empty(); }))
    begin = 0;
  for (std::size_t i = 0; i < begin; ++i)
    tiles.push_back(tile(entries[i]));
  while (begin < entries.size()) {
    const std::size_t end = std::min(entries.size(), begin + kRowsPerTable);
    tables.push_back(table(entries, begin, end, tables.empty()));
    begin = end;
  }
  return {std::move(tiles), std::move(tables)};
}

} // namespace

std::string render_crawl_html(const CrawlView& view) {
  std::string_view headline = view.label;
  if (headline.empty())
    headline = view.seeds.empty() ? std::string_view("Crawl") : html::without_scheme(view.seeds.front());
  const auto all = view.seeds.size();
  const std::size_t shown = all <= kSeedsShown + 1 ? all : kSeedsShown;
  auto [tiles, tables] = tiles_and_tables(view.snapshots);
  const Html body = html::fill(embedded::crawl_html,
                               {{"outcome", html::status_badge(view.outcome.empty() ? view.status : view.outcome)},
                                {"headline", headline},
                                {"seeds", seeds_of(view, 0, shown)},
                                {"more_seeds", seeds_of(view, shown, all)},
                                {"more_seeds_counted", html::counted(all - shown, "more seed")},
                                {"facts", facts_of(view)},
                                {"filters", filters_of(view.snapshots)},
                                {"total", grouped(view.snapshots.size())},
                                {"tiles", std::move(tiles)},
                                {"any", !view.snapshots.empty()},
                                {"tables", std::move(tables)},
                                {"id", view.id}});
  return page_frame(headline, "", body);
}

} // namespace holdfast::archive
