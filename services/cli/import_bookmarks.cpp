#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/base/timestamp.hpp"
#include "lib/base/utf8.hpp"
#include "services/cli/import.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <utility>

namespace holdfast::cli {

namespace {

// The character references that exporters write; any other stays as it is.
std::string unescaped(std::string_view text) {
  static const std::map<std::string, std::string, std::less<>> names = {{"amp", "&"},   {"lt", "<"},   {"gt", ">"},
                                                                        {"quot", "\""}, {"apos", "'"}, {"nbsp", " "}};
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text[at] == '&' ? text.substr(at, 12).find(';') : std::string_view::npos;
    if (end == std::string_view::npos || end < 2) {
      result += text[at++];
      continue;
    }
    const std::string name(text.substr(at + 1, end - 1));
    if (name[0] == '#') {
      const bool hexadecimal = name.size() > 2 && (name[1] == 'x' || name[1] == 'X');
      const auto digits = name.substr(hexadecimal ? 2 : 1);
      const auto* allowed = hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
      if (!digits.empty() && digits.size() < 8 && digits.find_first_not_of(allowed) == std::string::npos)
        if (const auto code = std::stoul(digits, nullptr, hexadecimal ? 16 : 10); code != 0)
          result += base::utf8_of(static_cast<char32_t>(code));
    } else if (const auto found = names.find(name); found != names.end()) {
      result += found->second;
    } else {
      result += text[at++];
      continue;
    }
    at += end + 1;
  }
  return result;
}

// Attributes of the tag that begins before `at`; leaves `at` behind its ">".
std::map<std::string, std::string> read_attributes(std::string_view text, std::size_t& at) {
  std::map<std::string, std::string> attributes;
  while (at < text.size() && text[at] != '>') {
    if (base::is_blank(text[at]) || text[at] == '/') {
      ++at;
      continue;
    }
    const std::size_t from = at;
    while (at < text.size() && text[at] != '=' && text[at] != '>' && !base::is_blank(text[at]))
      ++at;
    const std::string name = base::lower_case(text.substr(from, at - from));
    while (at < text.size() && base::is_blank(text[at]))
      ++at;
    std::string value;
    if (at < text.size() && text[at] == '=') {
      ++at;
      while (at < text.size() && base::is_blank(text[at]))
        ++at;
      if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
        const auto end = std::min(text.find(text[at], at + 1), text.size());
        value = unescaped(text.substr(at + 1, end - at - 1));
        at = std::min(end + 1, text.size());
      } else {
        const std::size_t begin = at;
        while (at < text.size() && text[at] != '>' && !base::is_blank(text[at]))
          ++at;
        value = unescaped(text.substr(begin, at - begin));
      }
    }
    attributes.emplace(name, std::move(value));
  }
  if (at < text.size()) ++at;
  return attributes;
}

// Text up to the closing tag, without the tags inside, blanks as one.
std::string read_content(std::string_view text, std::size_t& at, std::string_view lowered) {
  const auto end = std::min({lowered.find("</a", at), lowered.find("<a ", at), lowered.size()});
  std::string plain;
  bool inside = false;
  for (const char character : text.substr(at, std::min<std::size_t>(end - at, 4096))) {
    if (character == '<') inside = true;
    if (!inside) plain += base::is_blank(character) ? ' ' : character;
    if (character == '>') inside = false;
  }
  at = end;
  return unescaped(base::trimmed(plain));
}

const nlohmann::json* first_of(const nlohmann::json& object, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = object.find(name); found != object.end() && found->is_string() && !found->empty())
      return &*found;
  return nullptr;
}

std::vector<std::string> json_tags(const nlohmann::json& object) {
  std::vector<std::string> tags;
  if (const auto found = object.find("tags"); found != object.end()) {
    if (found->is_string()) return split_tags(found->get<std::string>(), object.contains("href"));
    if (found->is_array())
      for (const auto& tag : *found)
        if (tag.is_string()) tags.push_back(tag.get<std::string>());
    if (found->is_object()) // Pocket: {"name": {...}}
      for (const auto& [name, ignored] : found->items())
        tags.push_back(name);
  }
  return tags;
}

} // namespace

std::string json_bookmarked_at(const nlohmann::json& object) {
  for (const char* name : {"bookmarked_at", "timestamp", "time_added", "time", "date_added", "date_published"}) {
    const auto found = object.find(name);
    if (found == object.end()) continue;
    const auto text = found->is_string() ? found->get<std::string>() : found->is_number() ? found->dump() : "";
    if (auto time = base::canonical_timestamp(text); !time.empty()) return time;
  }
  return {};
}

std::vector<std::string> split_tags(std::string_view text, bool blanks) {
  const bool separated = text.find_first_of(",;|") != std::string_view::npos;
  const std::string_view separators = separated || !blanks ? ",;|" : " \t";
  return base::split(text, separators);
}

Format format_of(std::string_view parser, std::string_view text) {
  if (parser == "txt" || parser == "jsonl") return Format::lines;
  if (parser == "json") return Format::json;
  if (parser == "netscape" || parser == "html") return Format::html;
  if (parser == "rss" || parser == "sitemap") return Format::xml;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text = base::trimmed(text.substr(0, 4096));
  const std::string start = base::lower_case(text.substr(0, 512));
  if (start.starts_with("<?xml") || start.starts_with("<rss") || start.starts_with("<feed") ||
      start.starts_with("<urlset") || start.starts_with("<sitemapindex") || start.starts_with("<posts"))
    return start.find("<html") == std::string::npos ? Format::xml : Format::html;
  if (start.starts_with("<")) return Format::html;
  if (start.starts_with("[")) return Format::json;
  // One object a line is the usual; an object that goes on over lines is one document.
  if (start.starts_with("{") && start.find('\n') != std::string::npos &&
      !nlohmann::json::accept(text.substr(0, text.find('\n'))))
    return Format::json;
  const auto header = start.substr(0, start.find('\n'));
  if (header.find(',') != std::string::npos && header.find("://") == std::string::npos &&
      header.find("url") != std::string::npos)
    return Format::csv;
  return Format::lines;
}

std::vector<Entry> read_html(std::string_view text) {
  std::vector<Entry> entries;
  const std::string lowered = base::lower_case(text);
  std::size_t line = 1, counted = 0;
  for (std::size_t at = 0; (at = lowered.find("<a", at)) != std::string::npos;) {
    line += static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                                text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    counted = at;
    at += 2;
    if (at >= text.size() || !base::is_blank(text[at])) continue;
    auto attributes = read_attributes(text, at);
    Entry entry;
    entry.url = attributes["href"];
    entry.tags = split_tags(attributes["tags"], false);
    entry.where = "line " + std::to_string(line);
    entry.title = read_content(text, at, lowered);
    const auto& added = attributes["add_date"].empty() ? attributes["time_added"] : attributes["add_date"];
    entry.bookmarked_at = base::canonical_timestamp(added);
    if (!entry.url.empty() && entry.url[0] != '#') entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<Entry> read_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) { // also a number out of range
    throw base::Error(base::ErrorClass::refused, std::string("not valid JSON: ") + error.what());
  }
  const nlohmann::json* list = &document;
  if (document.is_object() && first_of(document, {"url", "href", "link"}) == nullptr)
    for (const char* name : {"items", "list", "bookmarks", "posts", "entries", "data", "urls"})
      if (const auto found = document.find(name); found != document.end() && found->is_structured()) {
        list = &*found;
        break;
      }
  std::vector<Entry> entries;
  std::size_t number = 0;
  const auto take = [&](const nlohmann::json& item) {
    Entry entry;
    entry.where = "item " + std::to_string(++number);
    if (item.is_string()) {
      entry.url = item.get<std::string>();
    } else if (item.is_object()) {
      const auto* url = first_of(item, {"url", "href", "link", "resolved_url", "given_url", "uri"});
      if (url != nullptr) entry.url = url->get<std::string>();
      const auto* title = first_of(item, {"title", "resolved_title", "given_title", "description"});
      if (title != nullptr) entry.title = title->get<std::string>();
      entry.tags = json_tags(item);
      entry.bookmarked_at = json_bookmarked_at(item);
    }
    entries.push_back(std::move(entry)); // without a URL it is reported, not passed over in silence
  };
  const bool one = list->is_object() && first_of(*list, {"url", "href", "link"}) != nullptr;
  if (one || list->is_string())
    take(*list);
  else
    for (const auto& item : *list)
      take(item);
  return entries;
}

std::vector<Entry> read_csv(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<std::vector<std::string>> rows(1, {std::string()});
  std::vector<std::size_t> lines{1};
  std::size_t line = 1;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    line += character == '\n';
    if (quoted) {
      if (character != '"')
        rows.back().back() += character;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        rows.back().back() += text[++at];
      else
        quoted = false;
    } else if (character == '"') {
      quoted = true;
    } else if (character == ',') {
      rows.back().emplace_back();
    } else if (character == '\n') {
      rows.push_back({std::string()});
      lines.push_back(line);
    } else if (character != '\r') {
      rows.back().back() += character;
    }
  }
  std::map<std::string, std::size_t> columns;
  for (std::size_t i = 0; i < rows[0].size(); ++i)
    columns.emplace(base::lower_case(base::trimmed(rows[0][i])), i);
  if (!columns.contains("url")) throw base::Error(base::ErrorClass::refused, "the first line names no column \"url\"");
  const auto cell = [&](const std::vector<std::string>& row, const char* name) {
    const auto found = columns.find(name);
    return found == columns.end() || found->second >= row.size() ? std::string() : row[found->second];
  };
  std::vector<Entry> entries;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() == 1 && base::trimmed(rows[i][0]).empty()) continue;
    entries.push_back({cell(rows[i], "url"), cell(rows[i], "title"), split_tags(cell(rows[i], "tags"), false),
                       "line " + std::to_string(lines[i]), base::canonical_timestamp(cell(rows[i], "time_added"))});
  }
  return entries;
}

} // namespace holdfast::cli
