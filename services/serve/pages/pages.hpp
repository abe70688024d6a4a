#pragma once
// The pages: each function reads the data of its page and returns it. Blocking, on the thread that owns the connection.
// The table of routes in site.cpp maps paths to pages.

#include "lib/base/text/encoding.hpp"
#include "lib/html/template.hpp"
#include "lib/pg/connection.hpp"
#include "services/serve/files.hpp"
#include "services/serve/pages/parts.hpp"

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::serve {

inline constexpr int kSnapshotsOfPage = 48;

struct Links {
  const Files* files{nullptr}; // null: nowhere
  std::string origin;
  std::string key;    // of the token that is shown them
  std::string replay; // where a replay tool shows the collection; may be empty

  bool shown() const noexcept { return files != nullptr; }
  std::string file(const std::string& path) const { return origin + files->href(path, key); }
  // Returns the thumbnail of a snapshot, for lists; empty: there is none.
  std::string picture(const std::string& directory, const std::string& thumbnail) const {
    return shown() && !directory.empty() && !thumbnail.empty() ? file(directory + "/" + thumbnail) : "";
  }
  std::string picture(const pg::Row& snapshot) const { // with both as columns
    return picture(snapshot["directory"].value_or(""), snapshot["thumbnail"].value_or(""));
  }
};

struct PageRequest {
  pg::Connection& connection;
  const Links& links;
  std::string id;                                            // of the path; of a list, its name
  std::string query;                                         // what to search for
  std::optional<std::string> before;                         // where a list goes on
  bool may_change;                                           // show what changes something
  std::string here;                                          // path and query of this page
  const std::multimap<std::string, std::string>& parameters; // all of the address
  std::string by;                                            // who asks, as commands are recorded
  std::string site;                                          // address of this server
  std::string account;                                       // of who asks; empty: none

  std::string parameter(const char* name) const {
    const auto found = parameters.find(name);
    return found == parameters.end() ? "" : found->second;
  }
  // "&name=value" for each of these that is given: the rest of an address that keeps them.
  std::string kept(std::initializer_list<const char*> names) const {
    std::string text;
    for (const char* name : names)
      if (const auto value = parameter(name); !value.empty())
        text += std::string("&") + name + "=" + base::percent_encode(value);
    return text;
  }
};

// A part of a page that is replaced on its own when it changes.
struct Section {
  std::string id;
  html::Html html;
  std::string name;  // its heading; may be empty
  bool framed{true}; // a part of its own, else one with what is above it
  bool live{true};
};

struct Page {
  std::string title;   // of the window
  std::string heading; // empty: a section has it
  std::vector<Section> sections;
  html::Html body{};    // after the sections
  std::string kicker{}; // above the heading
};

// Rows of v_crawl; with a box that selects each.
Table crawl_table(const pg::Result& rows, bool select);

// The title of a snapshot, else its URL.
std::string name_of(const pg::Row& snapshot);
// A picture of a snapshot with its name, for a gallery.
// `href`: where it leads; empty: to the snapshot.
html::Fields tile(const pg::Row& snapshot, const std::string& picture, const std::string& href = {});
html::Fields tile(const std::string& id, const std::string& href, const std::string& picture, std::string_view name,
                  std::string_view where, html::Value state);
// Returns when a snapshot was captured; of one that was not, when it was added.
std::string captured_at(const pg::Row& snapshot);
// `more`: address of what follows; empty: that is all.
Html gallery_of(html::List tiles, const std::string& more = {});
// Names something to share in a form: a field of the operation, its value, and the button.
struct Shareable {
  std::string_view field;
  std::string value, label;
};
html::Html share_form(const std::vector<Shareable>& things, const std::string& back);

// Return nothing if the object of the path does not exist.
std::optional<Page> overview_page(const PageRequest& request);
std::optional<Page> crawls_page(const PageRequest& request);
std::optional<Page> add_page(const PageRequest& request);
std::optional<Page> personas_page(const PageRequest& request);
std::optional<Page> persona_view_page(const PageRequest& request);
std::optional<Page> workers_page(const PageRequest& request);
std::optional<Page> hosts_page(const PageRequest& request);
std::optional<Page> list_page(const PageRequest& request);
std::optional<Page> failures_page(const PageRequest& request);
std::optional<Page> lists_page(const PageRequest& request);
std::optional<Page> search_page(const PageRequest& request);
std::optional<Page> crawl_page(const PageRequest& request);
std::optional<Page> snapshot_page(const PageRequest& request);
std::optional<Page> still_page(const PageRequest& request);
std::optional<Page> timeline_page(const PageRequest& request);
std::optional<Page> compare_page(const PageRequest& request);
std::optional<Page> shelves_page(const PageRequest& request);
std::optional<Page> shelf_page(const PageRequest& request);
std::optional<Page> tokens_page(const PageRequest& request);

// Returns the address of the page as it stood, on this server; empty: the snapshot has none.
std::string still_href(const pg::Row& snapshot, const pg::Result& results, const Links& links);
// Returns the address of the page of a URL.
std::string timeline_href(std::string_view url);
// "2026-01-31 23:59:59.5+00" -> "20260131235959"
std::string timestamp(const std::string& time);

// The captures of the same URL around a sealed snapshot; empty: none.
struct Neighbours {
  std::string previous, next;
  std::int64_t captures{0};
};
Neighbours neighbours(pg::Connection& connection, const std::string& snapshot);

} // namespace holdfast::serve
