#pragma once
// Fields of bookmarks in exports of other programs. Internal to lib/formats.

#include "lib/formats/list.hpp"

#include <optional>
#include <span>
#include <utility>

namespace holdfast::formats {

constexpr std::size_t kLongestFolder = 100; // characters of a name that becomes a tag

// The fields of one bookmark, whatever the format: attributes, members of an object, cells, child elements.
class Row {
public:
  // Names count without case and marks: "createdAt", "created_at" and "Created at" are one. Empty is absent.
  void add(std::string_view name, std::string_view value);
  void add_tag(std::string_view tag);
  // Splits "a, b;c|d"; blanks separate only if no other mark does and `blanks` is set (Pinboard).
  void add_tags(std::string_view text, bool blanks = false);
  // The folders around the bookmark, the outermost first; empty names do not count.
  void add_folders(std::span<const std::string> names);
  bool has_url() const;
  Entry entry(std::string where) const;

private:
  std::string_view first_of(const std::vector<std::string>& names) const;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::vector<std::string> tags_;
};

bool names_url(std::string_view column); // of a table
bool names_tags(std::string_view field);
bool holds_pages(std::string_view field);      // else it describes a list or an entry, and may have URLs of its own
std::string plain_name(std::string_view name); // "createdat"

// Readers of one family each. nullopt: the text is of another format. `asked`: the user named this format.
std::optional<List> read_xml(std::string_view text, bool asked);
std::optional<List> read_html(std::string_view text, bool asked);
std::optional<List> read_json(std::string_view text, bool asked);
std::optional<List> read_csv(std::string_view text, bool asked);
std::optional<List> read_m3u(std::string_view text, bool asked);
std::optional<List> read_lines(std::string_view text, bool asked);

// A line that is a JSON object: what has its URL, else the URLs in its texts.
std::vector<Entry> read_json_line(std::string_view line, const std::string& where);

} // namespace holdfast::formats
