#include "services/capture/links.hpp"

#include "services/capture/html.hpp"
#include "services/capture/link.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <pugixml.hpp>

namespace holdfast::capture {

namespace {

using Take = std::function<bool(const Link&)>;
constexpr int kMostWords = 50; // pieces of text inside one link
constexpr int kDeepestJson = 200;
// Elements inside a link that do not part its words.
constexpr std::array<std::string_view, 20> kInline{"a",    "abbr",  "b",    "cite",   "code", "del",  "em",
                                                   "font", "i",     "img",  "ins",    "kbd",  "mark", "q",
                                                   "s",    "small", "span", "strong", "sub",  "sup"};

// Calls take() for a reference if it is a link.
bool give(const Take& take, const std::string& base, std::string_view href, std::string title) {
  const auto url = absolute_link(base, href);
  return !url || take({*url, std::move(title), "", ""});
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find_first_of(" \t\r\n\f", begin), text.size());
    if (text.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

void in_html(const std::string& text, const std::string& url, const Take& take) {
  std::string base = url, words;
  std::optional<std::string> anchor;
  int pieces = 0;
  bool more = true;
  const auto end_anchor = [&] {
    if (anchor) more = take({*anchor, words, "", ""});
    anchor.reset();
  };
  scan_html(text, [&](const Token& token) {
    if (token.kind == Token::Kind::text) {
      if (anchor && pieces++ < kMostWords) words += token.text;
      return true;
    }
    const auto& name = token.text;
    if (anchor && name == "a") end_anchor();
    if (anchor && std::find(kInline.begin(), kInline.end(), name) == kInline.end()) words += ' ';
    if (token.kind != Token::Kind::start || !more) return more;
    if (name == "base" && base == url && !token.attribute("href").empty()) {
      base = join_url(url, token.attribute("href")).value_or(url);
    } else if (name == "a" && token.has("href")) {
      anchor = absolute_link(base, token.attribute("href"));
      words.clear();
      pieces = 0;
    } else if (name == "area" && token.has("href")) {
      more = give(take, base, token.attribute("href"), token.attribute("alt"));
    } else if ((name == "frame" || name == "iframe") && !token.attribute("src").empty()) {
      more = give(take, base, token.attribute("src"), token.attribute("title"));
    } else if (name == "link") {
      const auto relation = lower(token.attribute("rel"));
      if (has_word(relation, "next") || has_word(relation, "prev"))
        more = give(take, base, token.attribute("href"), "");
    } else if (name == "img" && anchor) {
      words += token.attribute("alt");
    }
    return more;
  });
  if (more) end_anchor();
}

// The file that browsers export: <DT><A HREF=... ADD_DATE=seconds TAGS="a,b">title</A>
void bookmarks(const std::string& text, const std::string& url, const Take& take) {
  std::optional<Link> link;
  scan_html(text, [&](const Token& token) {
    if (token.kind == Token::Kind::start && token.text == "a") {
      link.reset();
      const auto target = absolute_link(url, token.attribute("href"));
      if (!target) return true;
      link = Link{*target, "", token.attribute("tags"), ""};
      const auto& added = token.attribute("add_date");
      if (!added.empty() && added.size() <= 10 && added.find_first_not_of("0123456789") == std::string::npos) {
        const std::time_t seconds = std::stoll(added);
        std::tm date{};
        char when[40];
        std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S+00:00", ::gmtime_r(&seconds, &date));
        link->bookmarked_at = when;
      }
    } else if (token.kind == Token::Kind::text && link) {
      link->title += token.text;
    } else if (token.kind == Token::Kind::end && token.text == "a" && link) {
      const bool more = take(*link);
      link.reset();
      return more;
    }
    return true;
  });
}

// From each "http://" or "https://" to the first character that ends a URL in prose.
void in_text(const std::string& text, const Take& take) {
  constexpr std::size_t kLongest = 2048;
  const auto lowered = lower(text);
  for (auto at = lowered.find("http"); at != std::string::npos; at = lowered.find("http", at + 4)) {
    const std::size_t scheme = lowered.compare(at, 7, "http://") == 0    ? 7
                               : lowered.compare(at, 8, "https://") == 0 ? 8
                                                                         : 0;
    if (scheme == 0) continue;
    auto end = at + scheme;
    while (end < text.size() && end - at<kLongest&& static_cast<unsigned char>(text[end])> 0x20 &&
           std::string_view("<>\"'`{}|\\^").find(text[end]) == std::string_view::npos)
      ++end;
    if (end - at - scheme < 3) continue;
    std::string url = text.substr(at, end - at);
    const auto trim = [&] { url.erase(url.find_last_not_of(".,;:!?") + 1); };
    trim();
    while (url.ends_with(')') && std::count(url.begin(), url.end(), ')') > std::count(url.begin(), url.end(), '(')) {
      url.pop_back();
      trim();
    }
    if (!give(take, url, url, "")) return;
    at = end - 4;
  }
}

std::string local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  return lower(name.substr(name.rfind(':') + 1)); // npos + 1 is 0
}

std::string all_text(const pugi::xml_node& node) {
  struct Walker : pugi::xml_tree_walker {
    std::string text;
    bool for_each(pugi::xml_node& one) override {
      text += one.value();
      return true;
    }
  } walker;
  const_cast<pugi::xml_node&>(node).traverse(walker);
  return walker.text;
}

bool in_entry(const pugi::xml_node& entry, const std::string& url, const Take& take) {
  std::string title;
  for (const auto& child : entry.children())
    if (local_name(child) == "title") {
      title = all_text(child);
      break;
    }
  for (const auto& child : entry.children()) {
    if (local_name(child) != "link") continue;
    const auto href = child.attribute("href");
    if (!href) {
      if (!give(take, url, child.child_value(), title)) return false;
    } else if (std::string_view(child.attribute("rel").as_string("alternate")) == "alternate") {
      if (!give(take, url, href.value(), title)) return false;
    }
  }
  return true;
}

// RSS, Atom and sitemaps; a broken one is searched like plain text. pugixml expands no entities of a document's own.
void in_feed(const std::string& text, const std::string& url, const Take& take) {
  pugi::xml_document document;
  if (!document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8))
    return in_text(text, take);
  struct Walker : pugi::xml_tree_walker {
    const std::string& url;
    const Take& take;
    Walker(const std::string& page, const Take& taker) : url(page), take(taker) {}
    bool for_each(pugi::xml_node& node) override {
      const auto name = local_name(node);
      if (name == "item" || name == "entry") return in_entry(node, url, take);
      return name != "loc" || give(take, url, node.child_value(), "");
    }
  } walker(url, take);
  document.traverse(walker);
}

std::string json_string(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

bool in_item(const Json& item, const std::string& url, const Take& take) {
  if (item.is_string()) return give(take, url, item.get_ref<const std::string&>(), "");
  if (!item.is_object()) return true;
  std::string href;
  for (const char* key : {"url", "href", "link"})
    if (const auto found = item.find(key); href.empty() && found != item.end() && found->is_string())
      href = found->get<std::string>();
  const auto target = absolute_link(url, href);
  if (!target) return true;
  Link link{*target, json_string(item, "title"), "", ""};
  if (link.title.empty()) link.title = json_string(item, "description");
  if (const auto tags = item.find("tags"); tags != item.end() && tags->is_array()) {
    for (const auto& tag : *tags)
      link.tags += (link.tags.empty() ? "" : ",") + (tag.is_string() ? tag.get<std::string>() : json_text(tag));
  } else {
    link.tags = json_string(item, "tags");
  }
  if (const auto when = item.find("bookmarked_at"); when != item.end() && when->is_string())
    link.bookmarked_at = when->get<std::string>();
  return take(link);
}

// Null if it is no JSON or nests too deeply.
Json parse_json(std::string_view text) {
  bool deep = false;
  const auto value = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        deep = deep || depth > kDeepestJson;
        return !deep;
      },
      false);
  return deep || value.is_discarded() ? Json() : value;
}

// One JSON object a line, or an array of them, with a url (or href, link).
void in_json(const std::string& text, const std::string& url, const Take& take) {
  if (const auto whole = parse_json(text); whole.is_array()) {
    for (const auto& item : whole)
      if (!in_item(item, url, take)) return;
    return;
  } else if (!whole.is_null()) {
    in_item(whole, url, take);
    return;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (!in_item(parse_json(std::string_view(text).substr(begin, end - begin)), url, take)) return;
    begin = end + 1;
  }
}

} // namespace

void find_links(const Page& page, const Take& take) {
  const auto kind = page.type();
  const auto text = page.text();
  auto start = lower(std::string_view(text).substr(0, 2000));
  start.erase(0, std::min(start.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), start.size()));
  const auto begins = [&](std::string_view with) { return start.starts_with(with); };
  if (start.find("<!doctype netscape-bookmark-file") != std::string::npos) return bookmarks(text, page.url, take);
  if (page.is_html()) return in_html(text, page.url, take);
  if (kind == "application/json" || kind == "application/jsonl" || kind == "application/x-ndjson" ||
      kind == "application/jsonlines" || begins("{") || begins("["))
    return in_json(text, page.url, take);
  if (kind.ends_with("xml") || begins("<?xml") || begins("<rss") || begins("<feed") || begins("<urlset") ||
      begins("<sitemapindex"))
    return in_feed(text, page.url, take);
  if (kind.starts_with("text/") || kind.empty()) in_text(text, take);
}

} // namespace holdfast::capture
