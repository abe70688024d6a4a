#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/rows.hpp"

#include <algorithm>

namespace holdfast::formats {

namespace {

struct TableRow {
  std::size_t line{1};
  std::vector<std::string> cells;
};

// Between the cells stands `mark`; a cell in quotes may hold it, and line ends. Rows that are blank are left out.
// `unclosed`: the line of a quote that does not end; 0: there is none.
std::vector<TableRow> rows_of(std::string_view text, char mark, std::size_t& unclosed) {
  std::vector<TableRow> rows;
  TableRow row;
  std::string cell;
  bool quoted = false, blank = true; // blank: nothing but blanks is in the cell
  std::size_t line = 1;
  const auto put = [&](char character) {
    cell += character;
    blank = blank && base::is_blank(character);
  };
  const auto end_cell = [&] {
    row.cells.push_back(std::exchange(cell, ""));
    blank = true;
  };
  const auto end_row = [&] {
    if (!row.cells.empty() || !blank) {
      end_cell();
      rows.push_back(std::move(row));
    }
    row = {line, {}};
    cell.clear();
    blank = true;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char character = text[at];
    line += character == '\n';
    if (quoted) {
      if (character != '"')
        put(character);
      else if (at + 1 < text.size() && text[at + 1] == '"')
        put(text[++at]);
      else
        quoted = false;
    } else if (character == '"' && blank) {
      quoted = true;
      unclosed = line;
    } else if (character == mark) {
      end_cell();
    } else if (character == '\n') {
      end_row();
    } else if (character != '\r') {
      put(character);
    }
  }
  end_row();
  if (!quoted) unclosed = 0;
  return rows;
}

bool is_url(std::string_view cell) {
  const auto urls = urls_in(cell);
  return urls.size() == 1 && urls.front() == base::trimmed(cell);
}

// The column whose cell is a URL in each row from `first` on; the number of columns: there is none, or rows differ.
// Without a line of names (`first` is 0) there are words beside the URL, lest a comma within URLs be taken for a mark.
std::size_t url_column(const std::vector<TableRow>& rows, std::size_t first) {
  const auto columns = rows.front().cells.size();
  for (std::size_t column = 0; column < columns; ++column) {
    bool words = first > 0, fits = rows.size() > 1;
    for (std::size_t i = first; fits && i < rows.size(); ++i) {
      fits = rows[i].cells.size() == columns && is_url(rows[i].cells[column]);
      for (std::size_t other = 0; fits && first == 0 && other < columns; ++other) {
        if (other == column) continue;
        const auto cell = base::trimmed(rows[i].cells[other]);
        words = words || cell.find(' ') != std::string_view::npos;
        fits = urls_in(cell).empty();
      }
    }
    if (fits && words) return column;
  }
  return columns;
}

} // namespace

// Pocket, Raindrop, Instapaper, Wallabag, spreadsheets. The first row names the column of URLs; if it does not, that
// is the one with a URL in each row.
std::optional<List> read_csv(std::string_view text, bool asked) {
  const auto ink = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const auto first_line =
      text.substr(0, text.find('\n', ink)).substr(text.substr(0, ink).rfind('\n') + 1); // npos + 1 is 0
  for (const char mark : {',', ';', '\t', '|'}) {
    if (first_line.find(mark) == std::string_view::npos && !(asked && mark == ',')) continue;
    std::size_t unclosed = 0;
    auto rows = rows_of(text, mark, unclosed);
    if (!rows.empty() && rows.front().cells.front() == "sep=") rows.erase(rows.begin()); // Excel
    if (rows.empty()) break;
    std::vector<std::string> names;
    for (const auto& cell : rows.front().cells)
      names.push_back(plain_name(cell));
    std::size_t first = 1;
    if (unclosed > 0) { // what follows would be lost in a cell
      if (std::none_of(names.begin(), names.end(), names_url)) continue;
      throw base::Error(base::ErrorClass::refused,
                        "not valid CSV, line " + std::to_string(unclosed) + ": a quote that does not end",
                        asked ? "" : "--parser txt takes every URL in it");
    }
    if (std::none_of(names.begin(), names.end(), names_url)) {
      first = std::any_of(rows.front().cells.begin(), rows.front().cells.end(), is_url) ? 0 : 1;
      const auto column = url_column(rows, first);
      if (column == names.size()) continue;
      if (first == 0) names.assign(names.size(), "");
      names[column] = "url";
    }
    List list;
    bool any = rows.size() == 1;
    for (std::size_t i = first; i < rows.size(); ++i) {
      Row row;
      for (std::size_t column = 0; column < std::min(names.size(), rows[i].cells.size()); ++column)
        names_tags(names[column]) ? row.add_tags(rows[i].cells[column]) : row.add(names[column], rows[i].cells[column]);
      list.entries.push_back(row.entry("line " + std::to_string(rows[i].line)));
      any = any || !urls_in(list.entries.back().url).empty();
    }
    if (any || asked) return list;
  }
  if (asked) throw base::Error(base::ErrorClass::refused, "no column has URLs: its first line should name it \"url\"");
  return std::nullopt;
}

} // namespace holdfast::formats
