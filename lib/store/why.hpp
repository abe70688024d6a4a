#pragma once
// Why a thing is where it is: holdfast.why() of the database. Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <string>

namespace holdfast::store {

struct Why {
  std::string kind;   // crawl, snapshot, process, host; "nothing" if the name means nothing, or more than one thing
  std::string id;     // empty for a host
  std::string reason; // one sentence
  std::string facts;  // a JSON object
};

// `name`: an id, the head or tail of one, or a host.
Why why(pg::Connection& connection, const std::string& name);

// What all running workers lack for a crawl of which nothing is in work, for people; empty: one of them can take it.
struct CrawlLacks {
  std::string what;
  bool may_pass{false}; // a full disk, not a plugin
};
CrawlLacks crawl_lacks(pg::Connection& connection, const std::string& crawl);

} // namespace holdfast::store
