#include "services/capture/extract/links.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "lib/formats/list.hpp"

#include <algorithm>
#include <array>

namespace holdfast::capture {

namespace {

using TakeLink = std::function<bool(const Link&)>;
constexpr int kMostWords = 50; // pieces of text inside one link
// Elements inside a link that do not part its words.
constexpr std::array<std::string_view, 20> kInline{"a",    "abbr",  "b",    "cite",   "code", "del",  "em",
                                                   "font", "i",     "img",  "ins",    "kbd",  "mark", "q",
                                                   "s",    "small", "span", "strong", "sub",  "sup"};

struct LinkPlace { // what references mean
  std::string base, encoding;
};

// Calls take() for a reference if it is a link.
bool give(const TakeLink& take, const LinkPlace& place, std::string_view href, std::string title) {
  const auto url = formats::absolute_link(place.base, href, place.encoding);
  return !url || take({*url, std::move(title), "", ""});
}

bool has_word(std::string_view text, std::string_view word) {
  const auto words = base::split(text, " \t\r\n\f");
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The URL in "5; url=/next" of a refresh; empty: the page itself.
std::string refresh_target(std::string_view content) {
  constexpr std::string_view kBlank = " \t\r\n\f";
  const auto skip = [&](std::string_view letters) {
    content.remove_prefix(std::min(content.find_first_not_of(letters), content.size()));
  };
  skip(kBlank);
  skip("0123456789.");
  skip(" \t\r\n\f;,");
  if (lower_case(content.substr(0, 3)) == "url") {
    auto behind = content.substr(3);
    behind.remove_prefix(std::min(behind.find_first_not_of(kBlank), behind.size()));
    if (behind.starts_with('=')) content = behind.substr(1);
    skip(kBlank);
  }
  if (content.empty() || (content[0] != '"' && content[0] != '\'')) return std::string(content);
  return std::string(content.substr(1, content.find(content[0], 1) - 1));
}

void in_html(const std::string& text, const std::string& url, const std::string& encoding, const TakeLink& take) {
  LinkPlace place{url, encoding};
  std::string words;
  std::optional<std::string> anchor;
  int pieces = 0;
  bool more = true;
  const auto end_anchor = [&] {
    if (anchor) more = take({*anchor, words, "", ""});
    anchor.reset();
  };
  formats::scan_html(text, [&](const formats::Token& token) {
    if (token.kind == formats::Token::Kind::text) {
      if (anchor && pieces++ < kMostWords) words += token.text;
      return true;
    }
    const auto& name = token.text;
    if (anchor && name == "a") end_anchor();
    if (anchor && std::find(kInline.begin(), kInline.end(), name) == kInline.end()) words += ' ';
    if (token.kind != formats::Token::Kind::start || !more) return more;
    if (name == "base" && place.base == url && !token.attribute("href").empty()) {
      place.base = formats::join_url(url, token.attribute("href")).value_or(url);
    } else if (name == "meta" && lower_case(token.attribute("http-equiv")) == "refresh") {
      more = give(take, place, refresh_target(token.attribute("content")), "");
    } else if (name == "a" && token.has("href")) {
      anchor = formats::absolute_link(place.base, token.attribute("href"), encoding);
      words.clear();
      pieces = 0;
    } else if (name == "area" && token.has("href")) {
      more = give(take, place, token.attribute("href"), token.attribute("alt"));
    } else if ((name == "frame" || name == "iframe" || name == "embed") && !token.attribute("src").empty()) {
      more = give(take, place, token.attribute("src"), token.attribute("title"));
    } else if (name == "object" && !token.attribute("data").empty()) {
      more = give(take, place, token.attribute("data"), token.attribute("title"));
    } else if (name == "link") {
      const auto relation = lower_case(token.attribute("rel"));
      if (has_word(relation, "next") || has_word(relation, "prev"))
        more = give(take, place, token.attribute("href"), "");
    } else if (name == "img" && anchor) {
      words += token.attribute("alt");
    }
    return more;
  });
  if (more) end_anchor();
}

void give_entries(formats::List& read, const Page& page, const TakeLink& take) {
  for (auto& entry : read.entries) {
    const auto url = formats::absolute_link(read.lines ? entry.url : page.url, entry.url);
    if (!url) continue;
    const auto tags = base::join(entry.tags, ",");
    if (!take({*url, std::move(entry.title), tags, std::move(entry.bookmarked_at)})) return;
  }
}

} // namespace

bool find_entries(const Page& page, const TakeLink& take) {
  const auto type = page.type();
  const bool typed = type.find("mpegurl") != std::string::npos; // also without the first line of M3U
  const bool playlist = typed || page.bytes.substr(0, 16).find("#EXTM3U") != std::string::npos;
  const bool list = playlist || type.find("json") != std::string::npos || type.ends_with("xml");
  if (page.is_html() || !list) return false;
  try {
    auto read = formats::read_list(page.text(), typed ? "m3u" : "auto");
    if (read.lines) return false;
    give_entries(read, page, take);
  } catch (const base::Error& error) {
    throw failed(std::string("the feed cannot be read: ") + error.what());
  }
  return true;
}

void find_links(const Page& page, const TakeLink& take) {
  const auto text = page.text();
  constexpr std::size_t kStart = 4096;
  const bool bookmarks =
      lower_case(std::string_view(text).substr(0, kStart)).find("<!doctype netscape-") != std::string::npos;
  const bool list = page.type().find("json") != std::string::npos || page.type().ends_with("xml") ||
                    page.type().starts_with("text/") || page.type().empty();
  if (page.is_html() && !bookmarks) return in_html(text, page.url, page.encoding(), take);
  if (!list && !text.starts_with('{') && !text.starts_with('[') && !text.starts_with('<')) return;
  formats::List read;
  try {
    read = formats::read_list(text);
  } catch (const base::Error&) { // broken: searched like plain text
    for (auto& url : formats::urls_in(text))
      read.entries.push_back({std::move(url), "", {}, ""});
  }
  give_entries(read, page, take);
}

} // namespace holdfast::capture
