#pragma once
// Lists for users: rows of the stable views as a table or as lines of JSON. Blocking; call on the thread that owns the
// connection.

#include "lib/catalog/field.hpp"
#include "lib/pg/connection.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::catalog {

// Filter of a list: an option of `holdfast list` (--crawl), a parameter of the API (?crawl=).
struct Filter {
  Field field;
  std::string_view type;               // of its value in SQL
  std::string_view condition{"% = $"}; // in a view; %: its column, $: the value
  std::string_view examples{};         // how else it can be written on the command line
};
// `column`: of the view; empty: it has the filter's name.
struct ListFilter {
  std::string_view name, column{};
};

// Description of a list. The command line, its help and completion, and the API read it here.
struct List {
  std::string_view name, one, record, summary; // "crawls", "crawl"; record: the type of its lines of JSON
  std::string_view lifecycle;                  // whose states are its statuses; empty: it has none
  std::string_view source;                     // a view with its `order`; or a function with the arguments p_<filter>
  std::string_view order;
  std::vector<ListFilter> filters; // "before": only what has a lesser id
  // Columns that users see first; JSON has all of them. A name that ends in "?": left out if all its values are empty.
  std::vector<std::string> columns;
  std::string_view always{}; // columns that are never NULL; any other may be
  bool for_guests{true};     // the API and the page show it

  bool knows(std::string_view filter) const noexcept;
  std::string view() const; // that has its rows
};
const std::vector<List>& lists();
// By its name or that of one of its rows; throws Error(usage) if there is none.
const List& list_of(std::string_view name);
std::span<const Filter> filters();
const Filter& filter_of(std::string_view name);
// The values that a filter of the list, as its status or outcome, can have; empty: any.
std::vector<std::string> values_of(const List& list, std::string_view filter);
// Throws Error(usage) if no row of the list can have this status or outcome, as the filter is.
void check_filter(const List& list, std::string_view filter, const std::string& value);
std::vector<std::string> lists_by(std::string_view filter);

struct ListQuery {
  std::string view{"snapshots"}; // the name of a list
  std::int64_t limit{50}, offset{0};
  std::map<std::string, std::string, std::less<>> filters{}; // values as PostgreSQL reads them
  // For a list that is a view with ids: rows with the most in this column first, "before" then being the row before.
  // For crawls this reads all of them: with 100,000 it takes 0.13 s of processor time. An index for each order would
  // cost each seal more, because it counts in the row of its crawl.
  std::string most{};

  // Adds a filter; without a value, none.
  ListQuery& by(std::string_view filter, const std::optional<std::string>& value);
  std::optional<std::string> filter(std::string_view name) const;
};
inline constexpr const char* kNewest = "ffffffff-ffff-ffff-ffff-ffffffffffff"; // every id is less
pg::Result list(pg::Connection& connection, const ListQuery& query);
// Formats an interval for users: "1 day 00:02:05.753" -> "1 d". Anything else stays unchanged.
std::string written_interval(std::string_view interval);
// The id of the `number`th newest snapshot of a list, from 1, with the filters status, url_contains and tag; nullopt:
// it is shorter.
std::optional<std::string> snapshot_number(pg::Connection& connection, std::int64_t number, const ListQuery& query);
// Returns the same rows, each as one line of JSON.
std::vector<std::string> list_json(pg::Connection& connection, const ListQuery& query);

} // namespace holdfast::catalog
