#pragma once
// Lists for users: rows of the stable views as a table or as lines of JSON, the rows of a crawl's page, and the objects
// that an id names. Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"
#include "lib/store/catalog/field.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

struct CrawlEntry {
  std::string url, title, outcome, directory, thumbnail; // thumbnail: relative to the directory, or empty
  int depth{0};
  std::int64_t bytes{0};
};

std::vector<CrawlEntry> crawl_entries(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit);

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
  bool for_guests{true}; // the API and the page show it

  bool knows(std::string_view filter) const noexcept;
};
const std::vector<List>& lists();
// By its name or that of one of its rows; throws Error(usage) if there is none.
const List& list_of(std::string_view name);
std::span<const Filter> filters();
const Filter& filter_of(std::string_view name);
// Throws Error(usage) if no row of the list can have this status or outcome, as the filter is.
void check_filter(const List& list, std::string_view filter, const std::string& value);
std::vector<std::string> lists_by(std::string_view filter);

struct ListQuery {
  std::string view{"snapshots"}; // the name of a list
  std::int64_t limit{50};
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

// Finds the object that a (possibly shortened) id, a URL or the label of a crawl names: ("crawl" | "snapshot" |
// "process", full id). A short id is the head or the tail of one, at least 4 hex digits. Throws Error(refused) if no
// object or more than one matches. find_newest() takes the newest of those that a URL or a label names.
struct Found {
  std::string kind, id, crawl_id;
};
Found find(pg::Connection& connection, const std::string& name);
Found find_newest(pg::Connection& connection, const std::string& name);

// Why a thing is where it is: holdfast.why() of the database.
struct Why {
  std::string kind;   // crawl, snapshot, process, host; "nothing" if the name means nothing, or more than one thing
  std::string id;     // empty for a host
  std::string reason; // one sentence
  std::string facts;  // a JSON object
};

// `name`: an id, the head or tail of one, or a host.
Why why(pg::Connection& connection, const std::string& name);

// Returns what all running workers lack for a crawl without a page in work, for users; empty: one of them can take it.
struct CrawlLacks {
  std::string what;
  bool may_pass{false}; // a full disk, not a plugin
};
CrawlLacks crawl_lacks(pg::Connection& connection, const std::string& crawl);

} // namespace holdfast::store
