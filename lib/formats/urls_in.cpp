#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/list.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::formats {

namespace {

// Characters that end a URL wherever they stand: blanks, quotes and sentence marks of any script.
constexpr std::pair<char32_t, char32_t> kEnds[] = {
    {0x00, 0x20},     {0x22, 0x22},     {0x3C, 0x3C},     {0x3E, 0x3E},     {0x60, 0x60},     {0x7C, 0x7C},
    {0x7F, 0xA0},     {0xAB, 0xAB},     {0xBB, 0xBB},     {0x589, 0x589},   {0x5C3, 0x5C3},   {0x60C, 0x60C},
    {0x61B, 0x61F},   {0x6D4, 0x6D4},   {0x964, 0x965},   {0x104A, 0x104B}, {0x1361, 0x1368}, {0x17D4, 0x17D6},
    {0x2000, 0x200B}, {0x200E, 0x200F}, {0x2014, 0x202F}, {0x2039, 0x203A}, {0x205F, 0x206F}, {0x2190, 0x21FF},
    {0x3000, 0x3003}, {0x3008, 0x301F}, {0xFEFF, 0xFF0C}, {0xFF1A, 0xFF1F}, {0xFF5B, 0xFF65}};
constexpr std::string_view kSentence = ".,;:!?'*";
constexpr std::string_view kDash = "\xE2\x80\x93", kAmpersand = "&amp;";
constexpr std::string_view kHolds = "/=:?&#@+-_!$%"; // what a URL within another follows
constexpr std::string_view kAround = "_~=+/";        // marks of org-mode and the like on both sides of a URL
constexpr std::string_view kOpen = "([{", kClose = ")]}";
constexpr std::string_view kEscaped = "_%#&{}~$*-.()[]!+/"; // behind a backslash, in LaTeX, Markdown and JSON

bool ends_url(char32_t code) {
  return std::any_of(std::begin(kEnds), std::end(kEnds),
                     [&](const auto& range) { return code >= range.first && code <= range.second; });
}

bool is_blank(char32_t code) {
  return code == 0xA0 || (code >= 0x2000 && code <= 0x200F) || (code >= 0x2028 && code <= 0x202F) || code == 0x3000;
}

// Returns true if the mark that ends a URL is written as HTML writes it.
bool ends_by_name(std::string_view text) {
  constexpr std::array<std::string_view, 6> kNames{"&quot;", "&lt;", "&gt;", "&#34;", "&#39;", "&nbsp;"};
  return std::any_of(kNames.begin(), kNames.end(), [&](auto name) { return text.starts_with(name); });
}

// The length of "https://" in any case; 0: none stands here.
std::size_t scheme_at(std::string_view text, std::size_t at) {
  for (const std::string_view scheme : {"http://", "https://", "http:\\/\\/", "https:\\/\\/"})
    if (base::lower_case(text.substr(at, scheme.size())) == scheme) return scheme.size();
  return 0;
}

// The URL that begins at `at`, or nothing, and where the text goes on.
std::pair<std::string, std::size_t> url_at(std::string_view text, std::size_t at, std::size_t end) {
  const char before = at > 0 ? text[at - 1] : ' ';
  std::string url(text.substr(at, end - at));
  std::erase(url, '\\');
  const auto scheme = url.size();
  std::array<std::size_t, 3> open{}, opened{}; // brackets of a kind that stay open; where the first of them stands
  if (text.substr(0, at).ends_with("](<")) {   // Markdown, in which such a URL may have blanks
    const auto close = std::min(text.find_first_of(">\n", end), text.size());
    return {base::percent_encode(text.substr(at, close - at), [](char c) { return c != ' '; }), close};
  }
  bool authority = true;
  while (end < text.size()) {
    end += text[end] == '\\' && end + 1 < text.size() && kEscaped.find(text[end + 1]) != kEscaped.npos;
    const auto character = base::first_character(text.substr(end));
    const char c = text[end];
    if (ends_url(character.code) || c == '\\' || (c == before && c == '\'')) break;
    if ((c == 'h' || c == 'H') && scheme_at(text, end) != 0 &&
        (url.size() == scheme || kHolds.find(url.back()) == std::string_view::npos))
      break;                                                   // two URLs in a row
    if (c == '[' && text.substr(end).starts_with("[/")) break; // [url]https://example.org[/url]
    if (c == '&' && ends_by_name(text.substr(end))) break;
    if (const auto kind = kClose.find(c); kind != std::string_view::npos && open[kind]-- == 0) {
      open[kind] = 0; // it closes what began before the URL
      break;
    }
    if (authority && text.substr(end).starts_with("[.]")) return {"", end}; // https://example[.]org is no link
    if (const auto kind = kOpen.find(c); kind != std::string_view::npos) {
      if (authority && url.size() > scheme) break; // AsciiDoc: https://example.org[title]
      if (open[kind]++ == 0) opened[kind] = url.size();
    }
    authority = authority && c != '/' && c != '?' && c != '#';
    url.append(text.substr(end, character.length));
    end += character.length;
  }
  for (std::size_t kind = 0; kind < open.size(); ++kind) // "https://example.org/a(see"
    if (open[kind] > 0) url.resize(std::min(url.size(), opened[kind]));
  const bool marked = kAround.find(before) != std::string_view::npos &&
                      (at < 2 || !(base::is_alpha(text[at - 2]) || base::is_digit(text[at - 2])));
  const bool query = url.find('?') != std::string::npos;
  for (;;) {
    if (url.ends_with(kDash))
      url.resize(url.size() - kDash.size());
    else if (url.size() > scheme &&
             (kSentence.find(url.back()) != std::string_view::npos || (marked && url.back() == before)))
      url.pop_back();
    else if (const auto label = url.ends_with(']') && !query ? url.rfind('[') : std::string::npos;
             label != std::string::npos && label > scheme && base::is_alpha(url[label + 1]))
      url.resize(label); // AsciiDoc: https://example.org/[title]
    else
      break;
  }
  std::string plain;
  for (std::size_t from = 0; from < url.size();) { // it may have been HTML
    plain += url[from];
    from += std::string_view(url).substr(from).starts_with(kAmpersand) ? kAmpersand.size() : 1;
  }
  return {plain.size() > scheme ? plain : "", end};
}

} // namespace

bool is_bare_url(std::string_view line) {
  const auto scheme = scheme_at(line, 0);
  if (scheme == 0 || line.find_first_of("\\[") != line.npos || urls_in(line).size() != 1) return false;
  for (std::size_t at = scheme; at < line.size();) {
    const auto character = base::first_character(line.substr(at));
    if (ends_url(character.code) && character.code != '|' && (character.code < 0x80 || is_blank(character.code)))
      return false;
    at += character.length;
  }
  return line.size() > scheme;
}

std::vector<std::string> urls_in(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < text.size();) {
    const auto scheme = text[at] == 'h' || text[at] == 'H' ? scheme_at(text, at) : 0;
    if (scheme == 0) {
      ++at;
      continue;
    }
    auto [url, end] = url_at(text, at, at + scheme);
    if (!url.empty()) found.push_back(std::move(url));
    at = end;
  }
  return found;
}

} // namespace holdfast::formats
