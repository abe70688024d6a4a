#pragma once
// The read-only pages over a collection, their live sections and the numbers for Prometheus: who may ask, and which
// path leads to which page (pages.hpp). Any thread; each request takes a database connection of its own out of a few.
// The destructor closes them.

#include "services/serve/connections.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_message.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::serve {

struct SiteOptions {
  std::string dsn, version;
  std::string token;              // empty: who reaches the address may look
  std::vector<std::string> hosts; // names under which it may be asked for; empty: any
  const Files* files{nullptr};    // may be null: no files here
  std::uint16_t files_port{0};    // where the browser finds them, on the same host
  std::string replay;             // URL of the collection in a replay tool, which has another origin; may be empty
};

class Site {
public:
  explicit Site(SiteOptions options);

  Response answer(const Request& request);

private:
  std::string files_origin(const Request& request) const;
  bool admitted(const Request& request) const;
  Response admit(const Request& request);
  Response route(const Request& request);
  Response page(const Request& request);
  Response live(const Request& request);

  SiteOptions options_;
  std::string pass_; // what the cookie holds
  Connections connections_;
};

} // namespace holdfast::serve
