#include "lib/archive/attempt.hpp"
#include "lib/archive/html.hpp"
#include "lib/base/duration.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace holdfast::archive {

namespace {

constexpr std::size_t kTiles = 24;         // snapshots with a picture; the rest are rows
constexpr std::size_t kRowsPerTable = 200; // a browser lays out only the tables in sight
constexpr std::size_t kSeedsShown = 5;

using Entry = CrawlView::Entry;

// What the filter knows; anything else is "other".
constexpr auto kOutcomes = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"succeeded", "Succeeded"}, {"partial", "Partial"}, {"failed", "Failed"}, {"other", "Other"}});

std::string_view outcome_key(const Entry& entry) {
  for (const auto& [key, word] : kOutcomes)
    if (entry.outcome == key) return key;
  return "other";
}

std::string_view title_of(const Entry& entry) {
  return entry.title.empty() ? without_scheme(entry.url) : std::string_view(entry.title);
}

std::string link_to(const Entry& entry) {
  const std::string text = html_escape(title_of(entry));
  return entry.path.empty() ? text : "<a href=\"" + href_of_path(entry.path) + "\">" + text + "</a>";
}

std::string outcome_word(const Entry& entry) { return entry.outcome.empty() ? "pending" : entry.outcome; }

std::string render_tile(const Entry& entry) {
  const std::string tone(status_tone(entry.outcome));
  std::string picture;
  if (!entry.thumbnail.empty()) {
    picture = "<img loading=\"lazy\" alt=\"\" src=\"" + href_of_path(entry.thumbnail) + "\">";
  } else {
    std::string_view host = without_scheme(entry.url);
    picture = "<span>" + html_escape(host.substr(0, host.find_first_of("/?"))) + "</span>";
  }
  std::string out = "<li class=\"tile " + tone + "\" data-o=\"" + std::string(outcome_key(entry)) + "\">";
  // The title below is the link to tab to; the picture is a bigger target for the same.
  out += entry.path.empty() ? "<div class=\"thumb\">" + picture + "</div>"
                            : "<a class=\"thumb\" tabindex=\"-1\" aria-hidden=\"true\" href=\"" +
                                  href_of_path(entry.path) + "\">" + picture + "</a>";
  out += "<h3 dir=\"auto\">" + link_to(entry) + "</h3><p class=\"where\">" + html_escape(without_scheme(entry.url)) +
         "</p>";
  out += "<p class=\"meta\">" + icon(tone) + "<span>" + html_escape(outcome_word(entry)) + "</span><span>" +
         html_escape(base::format_size(entry.bytes)) + "</span><span class=\"depth\">depth " +
         std::to_string(entry.depth) + "</span></p></li>\n";
  return out;
}

std::string render_row(const Entry& entry) {
  return "<tr data-o=\"" + std::string(outcome_key(entry)) + "\"><td class=\"o\">" + status_badge(outcome_word(entry)) +
         "</td><td><span class=\"t\" dir=\"auto\">" + link_to(entry) + "</span><span class=\"t where\">" +
         html_escape(without_scheme(entry.url)) + "</span></td><td class=\"d\">" + std::to_string(entry.depth) +
         "</td><td class=\"b\">" + html_escape(base::format_size(entry.bytes)) + "</td></tr>\n";
}

std::string render_table(const std::vector<Entry>& entries, std::size_t begin, std::size_t end, bool first) {
  std::string out = "<div class=\"chunk\"><table class=\"rows\"><caption class=\"sr\">Pages " + grouped(begin + 1) +
                    " to " + grouped(end) + "</caption>";
  // Later tables continue the first one; their headings are there for screen readers.
  const std::string hide_from = first ? "" : "<span class=\"sr\">";
  const std::string hide_to = first ? "" : "</span>";
  out += "<thead><tr><th class=\"o\" scope=\"col\">" + hide_from + "Outcome" + hide_to + "</th><th scope=\"col\">" +
         hide_from + "Page" + hide_to + "</th><th class=\"d\" scope=\"col\">" + hide_from + "Depth" + hide_to +
         "</th><th class=\"b\" scope=\"col\">" + hide_from + "Size" + hide_to + "</th></tr></thead><tbody>\n";
  for (std::size_t i = begin; i < end; ++i)
    out += render_row(entries[i]);
  return out + "</tbody></table></div>\n";
}

// Radio buttons and :has() filter without a script; a browser that lacks :has() shows everything and no buttons.
std::string render_filter(const std::map<std::string_view, std::size_t>& counts, std::size_t total) {
  if (counts.size() < 2) return {};
  std::string out =
      "<fieldset class=\"sift\"><legend class=\"sr\">Show only</legend><label><input type=\"radio\" name=\"show\" "
      "id=\"only-all\" checked>All " +
      grouped(total) + "</label>";
  for (const auto& [key, word] : kOutcomes) {
    const auto count = counts.find(key);
    if (count == counts.end()) continue;
    out += "<label><input type=\"radio\" name=\"show\" id=\"only-" + std::string(key) + "\">" +
           icon(key == "other" ? "mute" : status_tone(key)) + std::string(word) + " " + grouped(count->second) +
           "</label>";
  }
  return out + "</fieldset>\n";
}

std::string render_seeds(const CrawlView& view) {
  if (view.seeds.empty()) return {};
  const auto item = [](const std::string& seed) { return "<li>" + outside_link(seed, seed) + "</li>"; };
  const std::size_t shown = view.seeds.size() <= kSeedsShown + 1 ? view.seeds.size() : kSeedsShown;
  std::string out = "<ul class=\"seeds\" aria-label=\"Seeds\">";
  for (std::size_t i = 0; i < shown; ++i)
    out += item(view.seeds[i]);
  out += "</ul>";
  if (view.seeds.size() > shown) {
    out +=
        "<details><summary>and " + counted(view.seeds.size() - shown, "more seed") + "</summary><ul class=\"seeds\">";
    for (std::size_t i = shown; i < view.seeds.size(); ++i)
      out += item(view.seeds[i]);
    out += "</ul></details>";
  }
  return out + "\n";
}

std::string fact(std::string_view name, const std::string& value, bool wide = false) {
  if (value.empty()) return {};
  return std::string(wide ? "<div class=\"wide\">" : "<div>") + "<dt>" + std::string(name) + "</dt><dd>" + value +
         "</dd></div>\n";
}

} // namespace

std::string render_crawl_html(const CrawlView& view) {
  std::string_view headline = view.label;
  if (headline.empty()) headline = view.seeds.empty() ? std::string_view("Crawl") : without_scheme(view.seeds.front());
  std::map<std::string_view, std::size_t> counts;
  for (const Entry& entry : view.snapshots)
    ++counts[outcome_key(entry)];

  std::string out = page_head(headline);
  out += "<a class=\"skip\" href=\"#pages\">Skip to the pages</a>\n<div class=\"page\">\n<header class=\"mast\">\n"
         "<p class=\"kicker\"><span>Archived crawl</span>" +
         status_badge(view.outcome.empty() ? view.status : view.outcome) + "</p>\n<h1 dir=\"auto\">" +
         html_escape(headline) + "</h1>\n" + render_seeds(view) + "<dl class=\"facts\">\n";
  out += fact("Pages", grouped(view.snapshots.size()));
  out += fact("Kept", html_escape(base::format_size(view.bytes)));
  out += fact("Depth limit", std::to_string(view.max_depth));
  out += fact("Started", time_element(view.created_at), true);
  out += fact("Sealed", time_element(view.sealed_at), true);
  if (!view.tags.empty()) {
    std::string tags = "<ul class=\"tags\">";
    for (const std::string& tag : view.tags)
      tags += "<li>" + html_escape(tag) + "</li>";
    out += fact("Tags", tags + "</ul>", true);
  }
  out += "</dl>\n</header>\n<main id=\"pages\" class=\"spread\"><div>\n<h2 class=\"sr\">Pages</h2>\n";
  out += render_filter(counts, view.snapshots.size());

  const std::vector<Entry>& entries = view.snapshots;
  std::size_t begin = std::min(entries.size(), kTiles);
  const bool pictures = std::any_of(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(begin),
                                    [](const Entry& entry) { return !entry.thumbnail.empty(); });
  if (pictures) {
    out += "<ul class=\"tiles\">\n";
    for (std::size_t i = 0; i < begin; ++i)
      out += render_tile(entries[i]);
    out += "</ul>\n";
  } else {
    begin = 0;
  }
  if (entries.empty()) out += "<p class=\"lede\">This crawl has no pages.</p>\n";
  for (const std::size_t first = begin; begin < entries.size();) {
    const std::size_t end = std::min(entries.size(), begin + kRowsPerTable);
    out += render_table(entries, begin, end, begin == first);
    begin = end;
  }
  out += "</div></main>\n<footer class=\"foot\"><p>Crawl <span class=\"mono\">" + html_escape(view.id) +
         "</span>. Kept by Holdfast.</p></footer>\n</div>\n" + page_foot();
  return out;
}

} // namespace holdfast::archive
