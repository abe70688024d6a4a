#include "lib/html/parts.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/url.hpp"
#include "lib/html/embedded.hpp"

#include <algorithm>
#include <array>

namespace holdfast::html {

namespace {

bool is_digits(std::string_view text) { return std::all_of(text.begin(), text.end(), base::is_digit); }

} // namespace

Html page_style() { return Literal(embedded::page_css); }
Html icon_sprite() { return Literal(embedded::icons_svg); }

std::string href_of_path(std::string_view path) {
  return (path.starts_with("../") ? "" : "./") + base::percent_encode(path);
}

Html outside_link(std::string_view url, std::string_view text) {
  if (!base::is_web_url(url)) return escaped(text);
  return fill(embedded::outside_link_html, {{"url", url}, {"text", text}});
}

std::string_view without_scheme(std::string_view url) {
  if (!base::is_web_url(url)) return url;
  url.remove_prefix(url.find("//") + 2);
  if (!url.empty() && url.back() == '/' && std::count(url.begin(), url.end(), '/') == 1) url.remove_suffix(1);
  return url;
}

Html link(std::string_view href, std::string_view text) {
  return fill(embedded::link_html, {{"href", href}, {"text", text}});
}

std::string human_time(std::string_view iso) {
  static constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                               "May",       "June",     "July",     "August",
                                                               "September", "October",  "November", "December"};
  const bool shaped = iso.size() >= 16 && is_digits(iso.substr(0, 4)) && iso[4] == '-' && is_digits(iso.substr(5, 2)) &&
                      iso[7] == '-' && is_digits(iso.substr(8, 2)) && (iso[10] == 'T' || iso[10] == ' ') &&
                      is_digits(iso.substr(11, 2)) && iso[13] == ':' && is_digits(iso.substr(14, 2));
  if (!shaped) return std::string(iso);
  const int month = (iso[5] - '0') * 10 + (iso[6] - '0');
  if (month < 1 || month > 12) return std::string(iso);
  std::string_view day = iso.substr(8, 2);
  if (day.front() == '0') day.remove_prefix(1);
  return std::string(day) + " " + std::string(kMonths[static_cast<std::size_t>(month - 1)]) + " " +
         std::string(iso.substr(0, 4)) + ", " + std::string(iso.substr(11, 5)) + " UTC";
}

Html time_element(std::string_view iso) {
  if (iso.empty()) return {};
  return fill(embedded::time_html, {{"iso", iso}, {"text", human_time(iso)}});
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return grouped(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

Html icon(std::string_view name) { return fill(embedded::icon_html, {{"name", name}}); }

std::string_view status_tone(std::string_view status) {
  if (status == "succeeded") return "ok";
  if (status == "partial") return "warn";
  if (status == "failed") return "bad";
  return "mute";
}

Html status_badge(std::string_view status) {
  std::string word = status == "noresults" ? "Found nothing" : std::string(status);
  if (!word.empty() && word.front() >= 'a' && word.front() <= 'z') word.front() = static_cast<char>(word.front() - 32);
  const auto tone = status_tone(status);
  return fill(embedded::badge_html, {{"tone", tone}, {"icon", icon(tone)}, {"word", word}});
}

Html with_sub(std::string_view text, std::string_view sub) {
  return fill(embedded::with_sub_html, {{"text", text}, {"sub", sub}});
}

void Facts::add(std::string_view name, Value value, Width width) {
  if (!value.empty()) facts_.push_back({{"name", name}, {"value", std::move(value)}, {"wide", width == Width::wide}});
}

Html Facts::html() const { return fill(embedded::facts_html, {{"facts", facts_}}); }

} // namespace holdfast::html
