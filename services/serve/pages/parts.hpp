#pragma once
// Small pieces that the pages are made of. Pure functions.

#include "lib/html/template.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::serve {

using html::Html;

// Returns the end of an id, which distinguishes it from its neighbours: they begin with the same time.
std::string short_id(const std::string& id);
std::string number(std::int64_t value);
std::string number_unless_zero(std::int64_t value);
// Empty for no bytes.
std::string size_of(std::int64_t bytes);
std::string duration(std::optional<double> seconds); // empty for none
// At most `limit` bytes, and an ellipsis if there were more.
std::string cut(const std::string& text, std::size_t limit);
// A time of the database, in UTC; the page's script shows it in the reader's zone. Empty for an empty text.
Html when(std::string_view time);
// Formats a past time for lists: the script shows how long ago it was.
Html ago(std::string_view time);
// A sentence of holdfast.why(), with its times as above.
Html sentence(std::string_view text);
Html crawl_link(const std::string& id, std::string_view text);
Html snapshot_link(const std::string& id, std::string_view text);
std::string search_href(std::string_view query);
// Links to a search for each; empty if there are none.
Html tag_links(const std::vector<std::string>& tags);
Html progress(std::int64_t done, std::int64_t all);
Html state_badge(const std::string& status, const std::string& outcome);

// A button for an operation of the API (api/table.hpp) on a thing, maybe with more fields of its body.
struct Act {
  std::string_view operation, label;
  std::string id;
  std::vector<std::pair<std::string_view, std::string>> fields{};
  bool final{false}; // it cannot be undone: the button is behind another
};
// The buttons that the table of operations has for a crawl, snapshot, schedule, host or webhook in this state.
std::vector<Act> acts_on(std::string_view kind, const std::string& id, std::string_view state);
// `back`: where the browser goes then.
Html buttons(const std::vector<Act>& acts, const std::string& back);
// Commands for what is selected on a page of "crawls" or "snapshots", and the box that selects one.
Html bulk_bar(std::string_view things, const std::string& back);
Html select_box(const std::string& id, std::string_view name);
// The values of a choice in a form, as {value, name, chosen}; an empty one is "any".
html::List options_of(std::span<const char* const> values, const std::string& chosen);

// A bar of a chart: its text at the pointer, where it leads (may be empty), and its parts from the ground up.
struct Bar {
  struct Part {
    std::string_view tone; // ok, warn, bad, mute
    double value;
  };
  std::string title, href;
  std::vector<Part> parts;
};
struct Chart {
  std::string name, note; // beside the name; may be empty
  double top{0};          // value of the full height; 0: the largest
  std::vector<Bar> bars{};
  bool links{false};
};
// Inline SVG. The bars fill the width; few ones stay slim.
Html chart(const Chart& chart);

// A table. A cell is text or Html; on a phone each row becomes a block.
class Table {
public:
  struct Column {
    std::string title; // empty: the column is left out, with its cells
    std::string style; // long (text), n (number), nw (in one line), or empty
  };
  enum class Phone { fold, scroll };
  Table(std::vector<Column> columns, std::string_view caption, Phone phone = Phone::fold)
      : columns_(std::move(columns)), caption_(caption), phone_(phone) {}

  void row(std::vector<html::Value> cells);
  bool empty() const noexcept { return rows_.empty(); }
  // `none`: shown instead of a table without rows.
  Html html(html::Value none) const;

private:
  std::vector<Column> columns_;
  std::string caption_;
  Phone phone_;
  html::List rows_;
};

} // namespace holdfast::serve
