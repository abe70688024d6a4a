#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/link.hpp"
#include "lib/formats/rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <pugixml.hpp>

namespace holdfast::formats {

namespace {

// Elements at the top of a document that lists pages.
constexpr std::array<std::string_view, 9> kRoots{"rss",  "feed", "urlset",   "sitemapindex", "posts",
                                                 "opml", "xbel", "wallabag", "playlist"};
// Elements that are entries by themselves, and those of RDF that describe something other than a page.
constexpr std::string_view kEntries = " item entry article url bookmark sitemap note track ";
constexpr std::string_view kNoPages = " channel image textinput ";

constexpr std::size_t kLongestName = 100; // of the elements that are read

std::string local_name(const pugi::xml_node& node) {
  const std::string_view name(node.name(), ::strnlen(node.name(), kLongestName));
  return base::lower_case(name.substr(name.rfind(':') + 1)); // npos + 1 is 0
}

bool is_entry(const pugi::xml_node& node) {
  return node.type() == pugi::node_element &&
         (kEntries.find(" " + local_name(node) + " ") != std::string_view::npos || node.attribute("rdf:about"));
}

// With the text of the elements inside it, but for entries: these have texts of their own, and a reader of entries
// within entries would read each text once for each. Titles of feeds are often HTML within XML.
std::string all_text(const pugi::xml_node& top) {
  std::string text;
  for (auto node = top.first_child(); node;) {
    text += node.value();
    if (node.first_child() && !is_entry(node)) {
      node = node.first_child();
      continue;
    }
    while (node != top && !node.next_sibling())
      node = node.parent();
    if (node == top) break;
    node = node.next_sibling();
  }
  return unescape_html(text, true);
}

// Elements within an element of an entry that are read as if they were the entry's.
constexpr int kMostWrapped = 3;

void take_child(const pugi::xml_node& child, Row& row, int wrapped = 0) {
  const auto name = local_name(child);
  const bool track = local_name(child.parent()) == "track";                            // of XSPF
  if (!track && (name == "note-attributes" || name == "info" || name == "metadata")) { // Evernote, KDE
    if (wrapped < kMostWrapped)
      for (const auto& one : child.children())
        take_child(one, row, wrapped + 1);
    return;
  }
  const auto text = all_text(child);
  if (name == "link" && local_name(child.parent()) == "url") return; // a sitemap's: the page in another language
  if (name == "link") {
    // RSS: the text; Atom: href, and the page is rel="alternate" or has no rel.
    const std::string_view rel = child.attribute("rel").as_string("alternate");
    if (!child.attribute("href") || rel == "alternate") row.add(name, child.attribute("href").as_string(text.c_str()));
  } else if (track && (name == "location" || name == "info")) { // the file, or else a page about it
    row.add(name == "info" ? "enclosure" : "link", text);
  } else if (name == "enclosure") { // of a podcast whose episodes have no pages
    row.add(name, child.attribute("url").value());
  } else if (name == "category" || name == "tag") {
    row.add_tag(child.attribute("term").as_string(text.c_str()));
  } else if (name == "subject") { // RSS of RDF: words with blanks between
    row.add_tags(text, local_name(child.parent()) == "item");
  } else if (names_tags(name)) {
    if (child.find_child([](const auto& one) { return one.type() == pugi::node_element; }))
      for (const auto& tag : child.children())
        row.add_tag(all_text(tag));
    else
      row.add_tags(text);
  } else if (name == "guid") {
    if (std::string_view(child.attribute("isPermaLink").as_string("true")) == "true") row.add("permalink", text);
  } else if (name != "description" && name != "content") {
    row.add(name, text);
  }
}

// Collects every URL in texts and attributes of another kind of document, or a note, except for those that name a
// vocabulary.
struct Gatherer : pugi::xml_tree_walker {
  List list;
  void take(std::string_view text) {
    if (const auto type = text.find("<!DOCTYPE"); type != text.npos) // of the HTML that a note is
      text.remove_prefix(std::min(text.find('>', type), text.size()));
    for (auto& url : urls_in(text))
      list.entries.push_back({std::move(url), "", {}, "URL " + std::to_string(list.entries.size() + 1)});
  }
  bool for_each(pugi::xml_node& node) override {
    if (node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata) take(node.value());
    for (const auto& attribute : node.attributes())
      if (!std::string_view(attribute.name()).starts_with("xmlns")) take(attribute.value());
    return true;
  }
};

struct Walker : Gatherer {
  static constexpr int kMostLevels = 16;
  int gathered_depth{-1};                                // of the note that was gathered with all that is in it
  std::map<pugi::xml_node_struct*, std::string> folders; // names of those that were looked at; of others: ""

  const std::string& folder(const pugi::xml_node& node) {
    const auto [known, is_new] = folders.try_emplace(node.internal_object());
    if (!is_new) return known->second;
    const auto name = local_name(node);
    const char* const title = name == "folder" ? node.child_value("title")
                              : name == "outline" && !node.attribute("xmlUrl") && !node.attribute("url")
                                  ? node.attribute("text").as_string(node.attribute("title").value())
                                  : "";
    return known->second = std::string(title, ::strnlen(title, 4 * kLongestFolder));
  }
  // The names of the folders around an entry of OPML or XBEL are tags.
  void take_folders(pugi::xml_node node, Row& row) {
    std::vector<std::string> names;
    for (int level = 0; level < kMostLevels && (node = node.parent()); ++level)
      names.insert(names.begin(), folder(node));
    row.add_folders(names);
  }
  bool for_each(pugi::xml_node& node) override {
    if (node.type() != pugi::node_element || names_tags(local_name(node.parent()))) return true;
    const auto name = local_name(node);
    Row row;
    const std::string about = node.attribute("rdf:about").value();
    const bool page = base::is_web_url(about) && kNoPages.find(" " + name + " ") == std::string_view::npos;
    if (page || kEntries.find(" " + name + " ") != std::string_view::npos)
      for (const auto& child : node.children())
        take_child(child, row);
    if (page) row.add("permalink", about);
    // Pinboard and Delicious: <post href description tag time>; OPML: <outline text url>; XBEL: <bookmark href>.
    if (name == "post" || name == "outline" || name == "bookmark")
      for (const auto& attribute : node.attributes())
        names_tags(attribute.name()) ? row.add_tags(attribute.value(), true)
                                     : row.add(attribute.name(), attribute.value());
    if (row.has_url() && (name == "outline" || name == "bookmark")) take_folders(node, row);
    const bool entry = name == "item" || name == "entry";
    if (depth() <= gathered_depth) gathered_depth = -1;
    if (name == "note" && !row.has_url() && gathered_depth < 0) {
      gathered_depth = depth();
      Gatherer urls;
      node.traverse(urls);
      std::move(urls.list.entries.begin(), urls.list.entries.end(), std::back_inserter(list.entries));
    }
    if (entry || row.has_url())
      list.entries.push_back(row.entry((entry ? "entry " : name + " ") + std::to_string(list.entries.size() + 1)));
    list.index = list.index || name == "sitemapindex";
    return true;
  }
};

} // namespace

// Feeds, sitemaps, playlists (XSPF), OPML, XBEL, Pinboard's and Wallabag's XML. No entity is fetched or expanded beyond
// XML's own five and HTML's: pugixml has none.
std::optional<List> read_xml(std::string_view text, bool asked) {
  const auto begin = base::lower_case(base::trimmed(text.substr(0, 4096)));
  if (!asked && (!begin.starts_with('<') || begin.find("<html") != std::string::npos)) return std::nullopt;
  pugi::xml_document document;
  const auto parsed = document.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_trim_pcdata,
                                           pugi::encoding_utf8);
  if (!parsed) {
    const bool meant = begin.starts_with("<?xml") || std::any_of(kRoots.begin(), kRoots.end(), [&](auto root) {
                         return begin.starts_with("<" + std::string(root));
                       });
    if (!asked && !meant) return std::nullopt;
    const auto line = 1 + std::count(text.data(), text.data() + std::max<std::ptrdiff_t>(parsed.offset, 0), '\n');
    throw base::Error(base::ErrorClass::refused,
                      "not valid XML, line " + std::to_string(line) + ": " + parsed.description(),
                      asked ? "" : "--parser txt takes every URL in it");
  }
  const auto root = local_name(document.document_element());
  Walker walker;
  document.traverse(walker);
  const auto& entries = walker.list.entries;
  const bool known = std::find(kRoots.begin(), kRoots.end(), root) != kRoots.end();
  if (asked || known || std::any_of(entries.begin(), entries.end(), [](auto& one) { return !one.url.empty(); }))
    return std::move(walker.list);
  if (!begin.starts_with("<?xml")) return std::nullopt;
  Gatherer gatherer;
  document.traverse(gatherer);
  return std::move(gatherer.list);
}

} // namespace holdfast::formats
