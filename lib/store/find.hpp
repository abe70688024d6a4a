#pragma once
// Objects that ids, URLs and labels name; why an object is where it is; the rows of a crawl's page.
// Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

// Finds the object that a (possibly shortened) id, a URL or the label of a crawl names: ("crawl" | "snapshot" |
// "process", full id). A short id is the head or the tail of one, at least 4 hex digits. Throws Error(refused) if no
// object or more than one matches. newest: takes the newest of those that a URL or a label names. schedule, shelf: the
// one that a label or name, or an id, names.
struct Found {
  std::string kind, id, crawl_id;
};
enum class FindAs { only, newest, schedule, shelf };
inline constexpr std::array<std::string_view, 4> kFindAs{"only", "newest", "schedule", "shelf"};
Found find(pg::Connection& connection, const std::string& name, FindAs as = FindAs::only);

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

struct CrawlEntry {
  std::string url, title, outcome, directory, thumbnail; // thumbnail: relative to the directory, or empty
  int depth{0};
  std::int64_t bytes{0};
};

std::vector<CrawlEntry> crawl_entries(pg::Connection& connection, const std::string& crawl_id, std::int64_t limit);

} // namespace holdfast::store
