#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"
#include "lib/formats/rows.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace holdfast::formats {

namespace {

using nlohmann::json;

constexpr int kDeepest = 200; // folders in folders

// Members that hold bookmarks, or folders of them: JSON Feed, Pocket, Wallabag, Karakeep, Linkwarden,
// Raindrop, linkding, Firefox, Chromium.
constexpr std::array<std::string_view, 14> kLists{"items",       "list",  "bookmarks", "posts",   "entries",
                                                  "data",        "urls",  "links",     "results", "children",
                                                  "collections", "roots", "_embedded", "articles"};

bool is_list(const std::string& name) {
  return std::find(kLists.begin(), kLists.end(), base::lower_case(name)) != kLists.end();
}

void take_tags(const json& tags, bool blanks, Row& row) {
  if (tags.is_string()) return row.add_tags(tags.get_ref<const std::string&>(), blanks);
  for (const auto& [name, tag] : tags.items()) {
    if (tags.is_object()) row.add_tag(name); // Pocket: {"name": {...}}
    if (!tags.is_array()) continue;
    if (tag.is_string()) row.add_tag(tag.get_ref<const std::string&>());
    for (const auto* field : {"name", "label"}) // Linkwarden, Wallabag
      if (tag.is_object() && tag.contains(field) && tag[field].is_string())
        row.add_tag(tag[field].get_ref<const std::string&>());
  }
}

Row row_of(const json& object) {
  Row row;
  const auto take = [&](const json& fields) {
    for (const auto& [name, value] : fields.items()) {
      if (names_tags(name))
        take_tags(value, fields.contains("href"), row);
      else if (value.is_string())
        row.add(name, value.get_ref<const std::string&>());
      else if (value.is_number())
        row.add(name, value.dump());
    }
  };
  take(object);
  for (const auto* name : {"content", "canonical", "alternate"}) { // Karakeep; Google Reader, Inoreader
    const auto inner = object.find(name);
    if (inner != object.end() && inner->is_structured() && !inner->empty())
      if (const auto& one = inner->is_array() ? inner->front() : *inner; one.is_object()) take(one);
  }
  return row;
}

class Walk {
public:
  // `any`: whatever has a URL in any array is a bookmark, because no list was found by its name.
  explicit Walk(bool any) : any_(any) {}

  // `listed`: it is an element of a list, so it should be a bookmark or a folder.
  void take(const json& value, bool listed, int depth) {
    if (depth > kDeepest) return;
    if (value.is_array()) {
      for (const auto& item : value)
        take(item, true, depth + 1);
    } else if (value.is_string()) {
      Row row;
      row.add("url", value.get_ref<const std::string&>());
      if (listed) add(row);
    } else if (value.is_object()) {
      take_object(value, listed, depth);
    } else if (listed) {
      add({});
    }
  }
  List list;

private:
  void add(const Row& row) {
    auto entry = row.entry("item " + std::to_string(list.entries.size() + 1));
    if (!any_ || !urls_in(entry.url).empty()) list.entries.push_back(std::move(entry));
  }

  void take_object(const json& object, bool listed, int depth) {
    const auto row = row_of(object);
    // The document itself may have a link of its own beside its list.
    if (row.has_url() && (listed || (!any_ && depth > 0) || object.contains("url"))) return add(row);
    bool folder = false;
    for (const auto& [name, value] : object.items()) {
      if (!value.is_structured() || (!any_ && !is_list(name))) continue;
      folder = true;
      if (!any_ && value.is_object() && !has_list(value) && !row_of(value).has_url())
        for (const auto& item : value) // by number or name: Pocket, Chromium
          take(item, item.is_structured(), depth + 2);
      else
        take(value, !any_ && value.is_object(), depth + 1);
    }
    if (!folder && (listed || (!any_ && row.has_url())))
      add(row); // one without a URL is told, not passed over in silence
  }

  static bool has_list(const json& object) {
    for (const auto& [name, value] : object.items())
      if (value.is_structured() && is_list(name)) return true;
    return false;
  }

  const bool any_;
};

} // namespace

std::optional<Entry> read_json_line(std::string_view line, std::string where) {
  const auto object = json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto row = row_of(object);
  if (!row.has_url()) return std::nullopt;
  return row.entry(std::move(where));
}

// A document, on one line or many; objects on lines of their own are lines of a list.
std::optional<List> read_json(std::string_view text, bool asked) {
  text = base::trimmed(text);
  const auto first = text.substr(0, text.find('\n'));
  const bool begins = text.starts_with('{') || text.starts_with('[');
  if (!asked && (!begins || first.find("](") != std::string_view::npos)) return std::nullopt;
  try {
    const auto document = json::parse(text);
    Walk named(false), any(true);
    named.take(document, false, 0);
    const auto& entries = named.list.entries;
    if (std::all_of(entries.begin(), entries.end(), [](const auto& entry) { return entry.url.empty(); }))
      any.take(document, false, 0);
    return std::move(any.list.entries.empty() ? named.list : any.list);
  } catch (const json::exception& error) { // also a number out of range
    const auto next = text.find_first_not_of("[{ \t\r\n", begins ? 1 : 0);
    const bool is_meant = next == std::string_view::npos || std::string_view("\"]}").find(text[next]) != text.npos;
    if (!asked && (!is_meant || json::accept(first))) return std::nullopt;
    throw base::Error(base::ErrorClass::refused, std::string("not valid JSON: ") + error.what(),
                      asked ? "" : "--parser txt takes every URL in it");
  }
}

} // namespace holdfast::formats
