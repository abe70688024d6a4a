#pragma once
// Small pieces of HTML that the pages are made of. Pure functions; everything returned is escaped.

#include "lib/pg/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::serve {

bool is_uuid(std::string_view text);
std::string short_id(const std::string& id);
std::string number(std::int64_t value);
// Empty for no bytes.
std::string size_of(std::int64_t bytes);
// A number of seconds; empty if it is NULL.
std::string seconds(const pg::Row& row, std::string_view column);
// A time of the database, in UTC; the page's script shows it in the reader's zone. Empty if it is NULL.
std::string when(const pg::Row& row, std::string_view column);
// An escaped sentence of holdfast.why(), with its times as above.
std::string sentence(const std::string& text);
std::string crawl_link(const std::string& id, const std::string& text);
std::string snapshot_link(const std::string& id, const std::string& text);
// Links to a search for each; empty if there are none.
std::string tag_links(const std::vector<std::string>& tags);
// "<query>" for an address.
std::string query_escape(std::string_view text);
std::string progress(std::int64_t done, std::int64_t all);
std::string state_of(const pg::Row& row);
// "<div><dt>name</dt><dd>html</dd></div>"; nothing if there is no html.
std::string fact(std::string_view name, const std::string& html);

// A table whose cells are HTML already; `fold`: on a phone each row becomes a block.
class Table {
public:
  struct Column {
    std::string title, style;
  };
  Table(std::vector<Column> columns, std::string caption)
      : columns_(std::move(columns)), caption_(std::move(caption)) {}
  void row(const std::vector<std::string>& cells) {
    rows_ += "<tr>";
    for (std::size_t at = 0; at < cells.size(); ++at)
      rows_ += "<td" + (columns_[at].style.empty() ? "" : " class=\"" + columns_[at].style + "\"") +
               (at == 0 || cells[at].empty() ? "" : " data-l=\"" + columns_[at].title + "\"") + ">" + cells[at] +
               "</td>";
    rows_ += "</tr>\n";
  }
  std::string html(const std::string& none) const {
    if (rows_.empty()) return "<p class=\"none\">" + none + "</p>";
    std::string out = "<div class=\"wide-table\"><table class=\"grid fold\"><caption class=\"sr\">" + caption_ +
                      "</caption><thead><tr>";
    for (const auto& column : columns_)
      out += "<th scope=\"col\"" + (column.style.empty() ? "" : " class=\"" + column.style + "\"") + ">" +
             column.title + "</th>";
    return out + "</tr></thead><tbody>\n" + rows_ + "</tbody></table></div>";
  }

private:
  std::vector<Column> columns_;
  std::string caption_, rows_;
};

} // namespace holdfast::serve
