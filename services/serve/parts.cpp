#include "services/serve/parts.hpp"

#include "lib/archive/html.hpp"
#include "lib/base/duration.hpp"

#include <algorithm>
#include <chrono>

namespace holdfast::serve {

using archive::grouped;
using archive::html_escape;
using archive::status_badge;

namespace {

constexpr std::size_t kDay = 10, kTime = 19; // of "2026-11-22 02:48:46"

// `text` begins with a time in UTC, with " " or "T" in the middle.
std::string time_html(std::string_view text) {
  const std::string day(text.substr(0, kDay)), time(text.substr(kDay + 1, kTime - kDay - 1));
  if (day.starts_with("9999")) return "never";
  return "<time datetime=\"" + html_escape(day + "T" + time) + "Z\">" + html_escape(day + " " + time) + " UTC</time>";
}

} // namespace

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool dash = at == 8 || at == 13 || at == 18 || at == 23;
    const char c = text[at];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

std::string short_id(const std::string& id) { return id.size() > 8 ? id.substr(id.size() - 8) : id; }

std::string number(std::int64_t value) { return grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0))); }

std::string size_of(std::int64_t bytes) {
  return bytes <= 0 ? "" : base::format_size(static_cast<std::uint64_t>(bytes));
}

std::string seconds(const pg::Row& row, std::string_view column) {
  if (row.is_null(column)) return "";
  return base::format_duration(std::chrono::milliseconds(static_cast<std::int64_t>(row.number(column) * 1000)));
}

std::string crawl_link(const std::string& id, const std::string& text) {
  return "<a href=\"/crawl/" + html_escape(id) + "\">" + html_escape(text) + "</a>";
}
std::string snapshot_link(const std::string& id, const std::string& text) {
  return "<a href=\"/snapshot/" + html_escape(id) + "\">" + html_escape(text) + "</a>";
}

std::string progress(std::int64_t done, std::int64_t all) {
  return "<progress max=\"" + std::to_string(std::max<std::int64_t>(all, 1)) + "\" value=\"" + std::to_string(done) +
         "\" aria-label=\"" + number(done) + " of " + number(all) + " done\"></progress> " + number(done) + "/" +
         number(all);
}

std::string state_of(const pg::Row& row) {
  return status_badge(row.text("status") == "sealed" ? row.text_or("outcome", "sealed") : row.text("status"));
}

std::string when(const pg::Row& row, std::string_view column) {
  const auto text = row.text_or(column, "");
  return text.size() < kTime ? html_escape(text) : time_html(text);
}

std::string sentence(const std::string& text) {
  std::string out;
  std::size_t done = 0;
  for (auto at = text.find(" UTC"); at != std::string::npos; at = text.find(" UTC", at + 1)) {
    if (at < done + kTime) continue;
    const auto time = std::string_view(text).substr(at - kTime, kTime);
    const std::string_view pattern = "dddd-dd-dd dd:dd:dd";
    const bool fits = std::equal(time.begin(), time.end(), pattern.begin(),
                                 [](char c, char like) { return like == 'd' ? c >= '0' && c <= '9' : c == like; });
    if (!fits) continue;
    out += html_escape(std::string_view(text).substr(done, at - kTime - done)) + time_html(time);
    done = at + 4;
  }
  return out + html_escape(std::string_view(text).substr(done));
}

std::string query_escape(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char character : text) {
    escaped += '%';
    escaped += digits[static_cast<unsigned char>(character) >> 4];
    escaped += digits[static_cast<unsigned char>(character) & 15];
  }
  return escaped;
}

std::string tag_links(const std::vector<std::string>& tags) {
  if (tags.empty()) return {};
  std::string out = "<ul class=\"tags\">";
  for (const auto& tag : tags)
    out += "<li><a href=\"/search?q=" + query_escape(tag) + "\">" + html_escape(tag) + "</a></li>";
  return out + "</ul>";
}

std::string fact(std::string_view name, const std::string& html) {
  return html.empty() ? "" : "<div><dt>" + std::string(name) + "</dt><dd>" + html + "</dd></div>";
}

} // namespace holdfast::serve
