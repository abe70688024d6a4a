#include "lib/formats/list.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"
#include "lib/formats/charset.hpp"
#include "lib/formats/gunzip.hpp"
#include "lib/formats/html.hpp"
#include "lib/formats/rows.hpp"

#include <algorithm>

namespace holdfast::formats {

namespace {

constexpr std::size_t kMostUnpacked = std::size_t{256} << 20; // sitemaps may have 50 MB

struct Reader {
  std::string_view names;
  std::optional<List> (*read)(std::string_view text, bool asked);
};
constexpr Reader kReaders[] = {{" rss sitemap opml xbel ", read_xml},
                               {" netscape html ", read_html},
                               {" json ", read_json},
                               {" csv ", read_csv},
                               {" txt jsonl ", read_lines}};

} // namespace

List read_list(std::string_view bytes, std::string_view parser) {
  std::string unpacked;
  if (is_gzip(bytes)) bytes = unpacked = gunzip(bytes, kMostUnpacked);
  const auto text = decode_file(bytes);
  const auto name = " " + std::string(parser) + " ";
  for (const auto& reader : kReaders)
    if (reader.names.find(name) != std::string_view::npos)
      if (auto list = reader.read(text, true)) return *std::move(list);
  for (const auto& reader : kReaders)
    if (auto list = reader.read(text, false)) return *std::move(list);
  return {};
}

// Links of an HTML page: bookmark files of browsers, HTML exports of Pocket and Pinboard, any saved page. A bookmark
// file's descriptions (<DD>) may hold links, which are no bookmarks.
std::optional<List> read_html(std::string_view text, bool asked) {
  const auto start = base::lower_case(base::trimmed(text.substr(0, 4096)));
  const bool bookmarks = start.find("<!doctype netscape-bookmark-file") != std::string::npos;
  const bool document = bookmarks || start.find("<!doctype html") != std::string::npos ||
                        start.find("<html") != std::string::npos || start.starts_with("<meta");
  if (!asked && !document && (!start.starts_with("<") || text.find("](http") != std::string_view::npos))
    return std::nullopt;
  List list;
  Row row;
  std::string title, where;
  bool inside = false, described = false;
  std::size_t line = 1, counted = 0;
  const auto end = [&] {
    if (std::exchange(inside, false)) {
      row.add("title", title);
      if (row.has_url()) list.entries.push_back(row.entry(where));
    }
    row = {};
    title.clear();
  };
  scan_html(text, [&](const Token& token) {
    if (token.kind == Token::Kind::text) {
      if (inside) title += token.text;
      return true;
    }
    const auto& name = token.text;
    if (bookmarks && (name == "dd" || name == "dt" || name == "dl")) {
      end();
      described = name == "dd" && token.kind == Token::Kind::start;
    }
    if (name != "a") return true;
    end();
    if (token.kind != Token::Kind::start || described || token.attribute("href").starts_with('#')) return true;
    inside = true;
    auto href = token.attribute("href");
    std::erase_if(href, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }); // as browsers do
    row.add("href", href);
    for (const auto* time : {"add_date", "time_added"})
      row.add(time, token.attribute(time));
    row.add_tags(token.attribute("tags"));
    line += static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                                text.begin() + static_cast<std::ptrdiff_t>(token.at), '\n'));
    counted = token.at;
    where = "line " + std::to_string(line);
    return true;
  });
  end();
  if (list.entries.empty() && !asked && !document) return std::nullopt;
  return list;
}

// With a header that names a column of URLs: Pocket, Raindrop, Instapaper, Wallabag, spreadsheets. Between the cells is
// what the header has there: a comma, a semicolon or a tab.
std::optional<List> read_csv(std::string_view text, bool asked) {
  const auto header = text.substr(0, text.find('\n'));
  char between = ',';
  std::vector<std::string> columns;
  bool named = false;
  for (const char mark : {',', ';', '\t'}) {
    if (named || header.find("://") != std::string_view::npos) break;
    columns.clear();
    for (std::size_t at = 0; at <= header.size();) {
      const auto cell = header.substr(at, std::min(header.find(mark, at), header.size()) - at);
      at += cell.size() + 1;
      auto name = plain_name(cell);
      std::erase(name, '"');
      named = named || names_url(name);
      columns.push_back(std::move(name));
    }
    between = mark;
    named = named && (columns.size() > 1 || asked);
  }
  if (!named && asked) throw base::Error(base::ErrorClass::refused, "the first line names no column \"url\"");
  if (!named) return std::nullopt;

  List list;
  Row row;
  std::string cell;
  std::size_t column = 0, line = 2, first_line = 2;
  bool quoted = false;
  const auto end_cell = [&] {
    const auto& name = column < columns.size() ? columns[column] : "";
    names_tags(name) ? row.add_tags(cell) : row.add(name, cell);
    cell.clear();
    ++column;
  };
  const auto end_row = [&] {
    const bool blank = column == 0 && base::trimmed(cell).empty();
    end_cell();
    if (!blank) list.entries.push_back(row.entry("line " + std::to_string(first_line)));
    row = {};
    column = 0;
    first_line = line;
  };
  for (std::size_t at = header.size() + 1; at < text.size(); ++at) {
    const char character = text[at];
    line += character == '\n';
    if (quoted) {
      if (character != '"')
        cell += character;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        cell += text[++at];
      else
        quoted = false;
    } else if (character == '"') {
      quoted = true;
    } else if (character == between) {
      end_cell();
    } else if (character == '\n') {
      end_row();
    } else if (character != '\r') {
      cell += character;
    }
  }
  end_row();
  const auto& rows = list.entries;
  const bool any = std::any_of(rows.begin(), rows.end(), [](const auto& one) { return !urls_in(one.url).empty(); });
  if (!any && !asked) return std::nullopt;
  return list;
}

// A line gives what is in it: one URL or several, or a JSON object.
std::optional<List> read_lines(std::string_view text, bool) {
  List list;
  list.lines = true;
  for (std::size_t number = 1, at = 0; at < text.size(); ++number) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = base::trimmed(text.substr(at, end - at));
    at = end + 1;
    if (line.empty()) continue;
    const auto where = std::to_string(number);
    const auto next = std::min(line.find_first_not_of(" \t", 1), line.size() - 1);
    if (line.front() == '{' && (line[next] == '"' || line[next] == '}' || next == 0)) {
      auto entry = read_json_line(line, where);
      if (!entry) entry = Entry{"", "", {}, where, "", "not a JSON object with a \"url\""};
      list.entries.push_back(*std::move(entry));
      continue;
    }
    auto urls = urls_in(line);
    if (line.front() == '#') {
      list.comments += urls.empty() ? 0 : 1;
      continue;
    }
    if (!urls.empty() && (urls.size() > 1 || urls.front().size() < line.size())) ++list.prose;
    if (urls.empty()) urls.emplace_back(line); // to be refused, with the reason
    for (auto& url : urls)
      list.entries.push_back({std::move(url), "", {}, where});
  }
  return list;
}

} // namespace holdfast::formats
