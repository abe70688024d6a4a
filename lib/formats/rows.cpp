#include "lib/formats/rows.hpp"

#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/formats/embedded.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace holdfast::formats {

namespace {

constexpr std::size_t kLongestTitle = 4096; // characters; also of a tag
constexpr std::size_t kLongestNotes = 10000;
constexpr std::size_t kMostTags = 500;  // of a bookmark
constexpr std::size_t kMostFolders = 8; // around a bookmark, of which each has all

// Returns the field names of programs for a property, by plain name, the best first.
std::vector<std::string> names_of(std::string_view what) {
  for (const auto& line : base::split(embedded::fields_txt, "\n"))
    if (const auto words = base::split(line, " "); words.front() == what) return {words.begin() + 1, words.end()};
  return {};
}
const auto kUrls = names_of("url"), kTitles = names_of("title"), kTags = names_of("tags"), kTimes = names_of("time"),
           kNotes = names_of("notes"), kAbout = names_of("about"), kFolders = names_of("folder"),
           kNoFolders = names_of("nofolder");

bool is_one_of(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// `day_first`: "06/05/2021" is the sixth of May (Wallabag).
std::string written_time(const std::string& text, bool day_first) {
  if (text.find_first_not_of("0.") == text.npos) return {}; // of a program without the time
  int day = 0, month = 0, year = 0, read = 0;
  if (!day_first || std::sscanf(text.c_str(), "%2d/%2d/%4d%n", &day, &month, &year, &read) != 3)
    return base::canonical_timestamp(text);
  std::array<char, 40> date{};
  std::snprintf(date.data(), date.size(), "%04d-%02d-%02d", year, month, day);
  return base::canonical_timestamp(date.data() + text.substr(static_cast<std::size_t>(read)));
}

} // namespace

std::string plain_name(std::string_view name) {
  std::string plain = base::lower_case(name);
  std::erase_if(plain, [](char c) { return base::is_blank(c) || c == '_' || c == '-'; });
  return plain;
}

bool names_url(std::string_view column) { return is_one_of(kUrls, plain_name(column)); }
bool names_tags(std::string_view field) { return is_one_of(kTags, plain_name(field)); }
bool holds_pages(std::string_view field) { return !names_tags(field) && !is_one_of(kAbout, base::lower_case(field)); }

void Row::add(std::string_view name, std::string_view value) {
  const std::string text(base::trimmed(value));
  if (text.empty()) return;
  if (is_one_of(kFolders, plain_name(name))) add_folders({&text, 1});
  fields_.emplace_back(plain_name(name), text);
}

void Row::add_tag(std::string_view tag) {
  if (tags_.size() == kMostTags) return;
  if (auto text = base::one_line(tag, kLongestTitle);
      !text.empty() && std::find(tags_.begin(), tags_.end(), text) == tags_.end())
    tags_.push_back(std::move(text));
}

void Row::add_folders(std::span<const std::string> names) {
  for (const auto& name : names.last(std::min(names.size(), kMostFolders)))
    if (!is_one_of(kNoFolders, plain_name(name))) add_tag(base::one_line(name, kLongestFolder));
}

void Row::add_tags(std::string_view text, bool blanks) {
  text = base::trimmed(text); // also ["a", 'b'] and {a,"b"} in a cell, of Python and PostgreSQL
  const bool array = (text.starts_with('[') && text.ends_with(']')) || (text.starts_with('{') && text.ends_with('}'));
  if (array) text = text.substr(1, text.size() - 2);
  const bool separated = text.find_first_of(",;|") != std::string_view::npos;
  for (std::string_view tag : base::split(text, separated || !blanks ? ",;|" : " \t")) {
    tag = base::trimmed(tag);
    const bool quoted =
        array && tag.size() > 1 && tag.front() == tag.back() && (tag.front() == '"' || tag.front() == '\'');
    add_tag(quoted ? tag.substr(1, tag.size() - 2) : tag);
  }
}

std::string_view Row::first_of(const std::vector<std::string>& names) const {
  for (const auto& name : names)
    for (const auto& [key, value] : fields_)
      if (key == name) return value;
  return {};
}

bool Row::has_url() const { return !first_of(kUrls).empty(); }

Entry Row::entry(std::string where) const {
  Entry entry{std::string(first_of(kUrls)), base::one_line(first_of(kTitles), kLongestTitle), tags_, std::move(where)};
  auto notes = first_of(kNotes);
  const auto about = first_of({"description"}); // or it is the title
  if (notes.empty() && about.data() != first_of(kTitles).data()) notes = about;
  entry.notes = base::repair_utf8(notes.substr(0, kLongestNotes));
  for (const auto& name : kTimes)
    for (const auto& [key, value] : fields_)
      if (key == name && entry.bookmarked_at.empty()) entry.bookmarked_at = written_time(value, name == "creationdate");
  return entry;
}

} // namespace holdfast::formats
