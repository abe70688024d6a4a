#include "services/serve/pages/parts.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/html/parts.hpp"
#include "services/serve/embedded.hpp"

#include <algorithm>

namespace holdfast::serve {

namespace {

constexpr std::size_t kTime = 19; // of "2026-11-22 02:48:46"

Html time_element(std::string_view time, bool relative) {
  if (time.size() < kTime) return html::escaped(time);
  if (time.starts_with("9999")) return html::Literal("never");
  const auto iso = base::iso_time(time);
  return html::fill(
      embedded::when_html,
      {{"iso", iso}, {"relative", relative}, {"text", iso.substr(0, 10) + " " + iso.substr(11, 8) + " UTC"}});
}

} // namespace

std::string short_id(const std::string& id) { return id.size() > 8 ? id.substr(id.size() - 8) : id; }

std::string number(std::int64_t value) {
  return html::grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)));
}

std::string number_unless_zero(std::int64_t value) { return value > 0 ? number(value) : ""; }

std::string size_of(std::int64_t bytes) {
  return bytes <= 0 ? "" : base::format_size(static_cast<std::uint64_t>(bytes));
}

std::string duration(std::optional<double> seconds) {
  if (!seconds) return "";
  return base::format_duration(std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000)));
}

std::string cut(const std::string& text, std::size_t limit) {
  return text.size() > limit ? text.substr(0, limit) + " …" : text;
}

Html when(std::string_view time) { return time_element(time, false); }
Html ago(std::string_view time) { return time_element(time, true); }

Html sentence(std::string_view text) {
  Html out;
  std::size_t done = 0;
  for (auto at = text.find(" UTC"); at != std::string_view::npos; at = text.find(" UTC", at + 1)) {
    if (at < done + kTime) continue;
    const auto time = text.substr(at - kTime, kTime);
    const std::string_view pattern = "dddd-dd-dd dd:dd:dd";
    const bool fits = std::equal(time.begin(), time.end(), pattern.begin(),
                                 [](char c, char like) { return like == 'd' ? c >= '0' && c <= '9' : c == like; });
    if (!fits) continue;
    out += html::escaped(text.substr(done, at - kTime - done));
    out += when(time);
    done = at + 4;
  }
  out += html::escaped(text.substr(done));
  return out;
}

Html crawl_link(const std::string& id, std::string_view text) { return html::link("/crawl/" + id, text); }
Html snapshot_link(const std::string& id, std::string_view text) { return html::link("/snapshot/" + id, text); }

std::string search_href(std::string_view query) { return "/search?q=" + base::percent_encode(query); }

Html tag_links(const std::vector<std::string>& tags) {
  html::List list;
  for (const auto& tag : tags)
    list.push_back({{"href", search_href(tag)}, {"tag", tag}});
  return list.empty() ? Html() : html::fill(embedded::tag_links_html, {{"tags", std::move(list)}});
}

Html progress(std::int64_t done, std::int64_t all) {
  return html::fill(
      embedded::progress_html,
      {{"max", std::max<std::int64_t>(all, 1)}, {"value", done}, {"done", number(done)}, {"all", number(all)}});
}

Html state_badge(const std::string& status, const std::string& outcome) {
  if (status != "sealed") return html::status_badge(status);
  return html::status_badge(outcome.empty() ? "sealed" : outcome);
}

std::vector<Act> acts_on(std::string_view kind, const std::string& id, std::string_view state) {
  const auto now = state == "paused" || state == "sealed" ? state : "open";
  const auto fits = [now](std::string_view when) {
    return when.starts_with('!') ? when.substr(1) != now : when.empty() || when == now;
  };
  std::vector<Act> acts;
  for (const auto& one : catalog::operations())
    if (one.kind() == kind && !one.button.empty() && fits(one.when))
      acts.push_back({one.name, one.button, id, {}, one.final});
  return acts;
}

Html buttons(const std::vector<Act>& acts, const std::string& back) {
  html::List list;
  for (const auto& act : acts) {
    html::List fields;
    for (const auto& [name, value] : act.fields)
      fields.push_back({{"name", name}, {"value", value}});
    list.push_back({{"operation", act.operation},
                    {"label", act.label},
                    {"id", act.id},
                    {"final", act.final},
                    {"fields", std::move(fields)}});
  }
  return html::fill(embedded::buttons_html, {{"acts", std::move(list)}, {"back", back}});
}

Html bulk_bar(std::string_view things, const std::string& back) {
  const bool crawls = things == "crawls";
  return html::fill(embedded::bulk_html, {{"things", things},
                                          {"back", back},
                                          {"crawls", crawls},
                                          {"change", crawls ? "changeCrawl" : "changeSnapshot"},
                                          {"pause", crawls ? "pauseCrawl" : "pauseSnapshot"},
                                          {"resume", crawls ? "resumeCrawl" : "resumeSnapshot"},
                                          {"cancel", crawls ? "cancelCrawl" : "cancelSnapshot"}});
}

Html select_box(const std::string& id, std::string_view name) {
  return html::fill(embedded::select_box_html, {{"id", id}, {"name", name}});
}

html::List options_of(std::span<const char* const> values, const std::string& chosen) {
  html::List list;
  for (const std::string value : values)
    list.push_back({{"value", value}, {"name", value.empty() ? "any" : value}, {"chosen", value == chosen}});
  return list;
}

Html chart(const Chart& chart) {
  constexpr double kHeight = 64, kStep = 10, kGap = 2;
  constexpr std::size_t kFewest = 24;
  const auto text = [](double value) {
    auto digits = std::to_string(value);
    return digits.substr(0, digits.find('.') + 3);
  };
  double top = chart.top;
  for (const auto& bar : chart.bars) {
    double sum = 0;
    for (const auto& part : bar.parts)
      sum += part.value;
    top = std::max(top, sum);
  }
  html::List bars;
  for (std::size_t at = 0; at < chart.bars.size(); ++at) {
    const auto& bar = chart.bars[at];
    const auto x = text(kStep * static_cast<double>(at)), w = text(kStep - kGap);
    double y = kHeight;
    html::List parts;
    for (const auto& part : bar.parts) {
      if (part.value <= 0) continue;
      const double h = std::max(part.value / top * kHeight, 1.0);
      y -= h;
      parts.push_back({{"tone", part.tone}, {"x", x}, {"w", w}, {"y", text(std::max(y, 0.0))}, {"h", text(h)}});
    }
    bars.push_back({{"title", bar.title}, {"href", bar.href}, {"x", x}, {"w", w}, {"parts", std::move(parts)}});
  }
  return html::fill(embedded::chart_html, {{"name", chart.name},
                                           {"note", chart.note},
                                           {"links", chart.links},
                                           {"width", std::max(chart.bars.size(), kFewest) * 10},
                                           {"bars", std::move(bars)}});
}

void Table::row(std::vector<html::Value> cells) {
  html::List row;
  for (std::size_t at = 0; at < cells.size(); ++at) {
    const auto& column = columns_[at];
    if (column.title.empty()) continue;
    const bool acts = column.title == "Change" || column.title == "Do"; // buttons say what they are
    const auto label = at == 0 || acts || cells[at].empty() ? std::string() : column.title;
    row.push_back({{"style", column.style},
                   {"label", phone_ == Phone::fold ? label : std::string()},
                   {"cell", std::move(cells[at])}});
  }
  rows_.push_back({{"cells", std::move(row)}});
}

Html Table::html(html::Value none) const {
  html::List columns;
  for (const auto& column : columns_)
    if (!column.title.empty()) columns.push_back({{"style", column.style}, {"title", column.title}});
  return html::fill(embedded::table_html, {{"none", std::move(none)},
                                           {"fold", phone_ == Phone::fold},
                                           {"caption", caption_},
                                           {"columns", std::move(columns)},
                                           {"rows", rows_}});
}

} // namespace holdfast::serve
