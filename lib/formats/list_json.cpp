#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/rows.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace holdfast::formats {

namespace {

using nlohmann::json;

constexpr int kDeepest = 200; // folders in folders

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

Row row_of(const json& value) {
  Row row;
  const auto take = [&](const json& fields) {
    for (const auto& [name, field] : fields.items()) {
      if (names_tags(name))
        take_tags(field, fields.contains("href"), row);
      else if (field.is_string())
        row.add(name, field.get_ref<const std::string&>());
      else if (field.is_number())
        row.add(name, field.dump());
    }
  };
  if (value.is_string()) row.add("url", value.get_ref<const std::string&>());
  if (!value.is_object()) return row;
  take(value);
  for (const auto* name : {"content", "canonical", "alternate"}) { // Karakeep; Google Reader, Inoreader
    const auto inner = value.find(name);
    if (inner != value.end() && inner->is_structured() && !inner->empty())
      if (const auto& one = inner->is_array() ? inner->front() : *inner; one.is_object()) take(one);
  }
  return row;
}

bool is_folder(const json& value) {
  for (const auto& [name, member] : value.items())
    if (value.is_object() && member.is_array() && holds_pages(name)) return true;
  return false;
}

// Walks lists of bookmarks, and folders of them: arrays, or objects whose members have numbers for names (Pocket). An
// element of such a list with a URL is a bookmark. For an element without one, the URLs in its texts are taken (chats,
// notes). Names of folders are tags; Firefox and Chrome have folders of their own, which are not.
class Walk {
public:
  // Returns true if there was a URL in it. `listed`: it is an element of a list.
  bool take(const json& value, bool listed, int depth) {
    if (depth > kDeepest) return false;
    if (value.is_array()) return take_members(value, listed, depth);
    if (value.is_object()) {
      // The document itself may have a link of its own beside its list.
      const auto row = row_of(value);
      const bool page = row.has_url() && (listed || depth > 0 || value.contains("url"));
      const bool added = page && add(row);
      const auto lists = [](const json& one) {
        return one.is_array() && !one.empty() && one.front().is_object() && row_of(one.front()).has_url();
      };
      if (page && !(listed ? value.contains("children") : std::any_of(value.begin(), value.end(), lists))) return added;
      const bool named = listed && !page && !value.contains("root") && is_folder(value);
      if (named) folders_.push_back(base::one_line(row.entry("").title, kLongestFolder));
      const bool found = take_members(value, false, depth);
      if (named) folders_.pop_back();
      if (found || added) return true;
    }
    return listed && gather(value, depth);
  }
  List list;

private:
  std::vector<std::string> folders_; // that are open

  std::string where() const { return "item " + std::to_string(list.entries.size() + 1); }

  bool add(Row row) {
    row.add_folders(folders_);
    auto entry = row.entry(where());
    const bool web = !urls_in(entry.url).empty();
    if (web) list.entries.push_back(std::move(entry));
    return web;
  }

  bool gather(const json& value, int depth) {
    bool found = false;
    if (value.is_string())
      for (auto& url : urls_in(value.get_ref<const std::string&>())) {
        list.entries.push_back({std::move(url), "", {}, where()});
        found = true;
      }
    else if (depth < kDeepest && value.is_structured())
      for (const auto& [name, member] : value.items())
        found = (holds_pages(name) && gather(member, depth + 1)) || found;
    return found;
  }

  // Reports elements without a URL beside others that have one, unless they are a folder, or a text within an element.
  bool take_members(const json& value, bool listed, int depth) {
    std::vector<const json*> left_out;
    bool found = false;
    for (const auto& [name, member] : value.items()) {
      if (!value.is_array() && (!member.is_structured() || !holds_pages(name))) continue;
      const bool element = value.is_array() || (!name.empty() && base::is_digit(name.front()));
      if (take(member, element, depth + 1))
        found = true;
      else if (element && !is_folder(member) && !member.is_array() && (member.is_object() || (!listed && depth < 2)))
        left_out.push_back(&member);
    }
    for (const auto* one : left_out)
      if (found) list.entries.push_back(row_of(*one).entry(where()));
    return found;
  }
};

// Programs cut texts within a character: "\ud83d" alone is no JSON.
std::string without_half_characters(std::string_view text) {
  std::string result;
  const auto begins = [&](std::size_t at, std::string_view third) {
    return text.size() > at + 5 && text[at] == '\\' && text[at + 1] == 'u' && (text[at + 2] | ' ') == 'd' &&
           third.find(text[at + 3]) != std::string_view::npos;
  };
  for (std::size_t at = 0; at < text.size();) {
    const bool high = begins(at, "89abAB"), whole = high && begins(at + 6, "cdefCDEF");
    const bool half = !whole && (high || begins(at, "cdefCDEF"));
    const std::size_t length = whole ? 12 : half ? 6 : text[at] == '\\' ? 2 : 1;
    result += half ? "\\ufffd" : text.substr(at, length);
    at += length;
  }
  return result;
}

} // namespace

std::vector<Entry> read_json_line(std::string_view line, const std::string& where) {
  const auto object = json::parse(without_half_characters(line), nullptr, false);
  if (const auto row = row_of(object); row.has_url()) return {row.entry(where)};
  Walk walk;
  walk.take(object, object.is_object(), 0);
  for (auto& entry : walk.list.entries)
    entry.where = where;
  return std::move(walk.list.entries);
}

// A document, on one line or many, or several in a row; objects on lines of their own are lines of a list.
std::optional<List> read_json(std::string_view text, bool asked) {
  text = base::trimmed(text);
  const auto first = text.substr(0, text.find('\n'));
  const bool begins = text.starts_with('{') || text.starts_with('[');
  if (!asked && !begins) return std::nullopt;
  if (!asked && first.size() < text.size() && json::accept(first)) return std::nullopt;
  try {
    Walk walk;
    std::istringstream values(without_half_characters(text));
    for (json value; (values >> std::ws).good() && values.peek() != EOF;) {
      values >> value;
      walk.take(value, false, 0);
    }
    return std::move(walk.list);
  } catch (const json::exception& error) { // also a number out of range
    const auto next = text.find_first_not_of("[{ \t\r\n", begins ? 1 : 0);
    const bool is_meant = next == std::string_view::npos || std::string_view("\"]}").find(text[next]) != text.npos;
    if (!asked && (!is_meant || first.find("](") != std::string_view::npos)) return std::nullopt;
    throw base::Error(base::ErrorClass::refused, std::string("not valid JSON: ") + error.what(),
                      asked ? "" : "--parser txt takes every URL in it");
  }
}

} // namespace holdfast::formats
