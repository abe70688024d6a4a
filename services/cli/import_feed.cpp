#include "lib/base/error.hpp"
#include "lib/base/timestamp.hpp"
#include "services/cli/import.hpp"

#include <algorithm>
#include <pugixml.hpp>

namespace holdfast::cli {

namespace {

std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

std::string text_of(const pugi::xml_node& node, std::string_view child) {
  for (const auto& one : node.children())
    if (local_name(one) == child) return one.text().as_string();
  return {};
}

// When the entry of a feed was published, or else last changed.
std::string time_of(const pugi::xml_node& item) {
  for (const auto* name : {"published", "pubDate", "date", "updated"})
    if (auto time = base::canonical_timestamp(text_of(item, name)); !time.empty()) return time;
  return {};
}

void take_feed_entry(const pugi::xml_node& item, std::vector<Entry>& entries) {
  Entry entry;
  entry.where = "entry " + std::to_string(entries.size() + 1);
  entry.title = text_of(item, "title");
  for (const auto& child : item.children()) {
    const auto name = local_name(child);
    if (name == "link") {
      // RSS: the text; Atom: href, and the page is rel="alternate" or has no rel.
      const std::string_view rel = child.attribute("rel").as_string("alternate");
      if (child.attribute("href") && rel == "alternate") entry.url = child.attribute("href").as_string();
      if (!child.attribute("href") && entry.url.empty()) entry.url = child.text().as_string();
    } else if (name == "category") {
      const std::string term = child.attribute("term").as_string(child.text().as_string());
      if (!term.empty()) entry.tags.push_back(term);
    } else if (name == "subject") { // RDF: words with blanks between
      const auto tags = split_tags(child.text().as_string(), true);
      entry.tags.insert(entry.tags.end(), tags.begin(), tags.end());
    }
  }
  if (entry.url.empty() && std::string_view(item.child("guid").attribute("isPermaLink").as_string("true")) == "true")
    entry.url = text_of(item, "guid");
  entry.bookmarked_at = time_of(item);
  entries.push_back(std::move(entry));
}

} // namespace

std::vector<Entry> read_xml(std::string_view text) {
  pugi::xml_document document;
  // No entity is ever fetched or expanded beyond XML's own five: pugixml has none.
  const auto parsed = document.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_trim_pcdata);
  if (!parsed) {
    const auto line =
        1 + std::count(text.begin(),
                       text.begin() + std::min<std::ptrdiff_t>(parsed.offset, static_cast<std::ptrdiff_t>(text.size())),
                       '\n');
    throw base::Error(base::ErrorClass::refused,
                      "not valid XML, line " + std::to_string(line) + ": " + parsed.description());
  }
  struct Walker : pugi::xml_tree_walker {
    std::vector<Entry> entries;
    bool index{false};
    bool for_each(pugi::xml_node& node) override {
      if (node.type() != pugi::node_element) return true;
      const auto name = local_name(node);
      if (name == "item" || name == "entry") {
        take_feed_entry(node, entries);
      } else if (name == "url" && local_name(node.parent()) == "urlset") {
        entries.push_back({text_of(node, "loc"), "", {}, "url " + std::to_string(entries.size() + 1)});
      } else if (name == "post" && node.attribute("href")) { // Pinboard, Delicious
        entries.push_back({node.attribute("href").as_string(), node.attribute("description").as_string(),
                           split_tags(node.attribute("tag").as_string(), true),
                           "post " + std::to_string(entries.size() + 1),
                           base::canonical_timestamp(node.attribute("time").as_string())});
      } else if (name == "sitemapindex") {
        index = true;
      }
      return true;
    }
  } walker;
  document.traverse(walker);
  if (walker.index && walker.entries.empty())
    throw base::Error(
        base::ErrorClass::refused, "this is an index of sitemaps, it names no pages",
        "add its URL with --depth 2: its sitemaps, then their pages; or fetch the sitemaps, and add these files");
  return walker.entries;
}

} // namespace holdfast::cli
