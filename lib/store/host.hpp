#pragma once
// Hosts: delays, caps, back-off. One free function per SQL function (migrations/functions/50_host.sql). Blocking;
// call on the thread that owns the connection. Changes take effect with the next claim of any worker; all may be
// repeated.

#include "lib/store/worker.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace holdfast::store {

// Records that a site requested fewer requests. `by`: the worker that received that. Returns the remaining back-off.
std::chrono::milliseconds host_rate_limited(pg::Connection& connection, const std::string& host, int status,
                                            std::optional<std::chrono::milliseconds> retry_after,
                                            const std::string& by);

// Rules of a site's robots.txt, as the workers share them (migrations/functions/55_robots.sql).
struct Robots {
  std::string state; // known, unreachable, wanted (not known yet)
  std::string rules, error;
  bool fetch{false};     // the caller is to fetch it within a minute, and to call robots_put
  bool too_early{false}; // claimed before it was known that the site has a delay: put it back
};
Robots robots_get(pg::Connection& connection, const std::string& worker, const Lease& lease, const std::string& origin);

struct RobotsAnswer {
  int status{0}; // 0: there was none
  std::string rules, error;
  std::chrono::milliseconds delay{0}, keep{0}; // Crawl-delay, already capped; how long the answer holds
};
// Stores robots.txt. Returns true if the site has a delay, so that the next request must wait.
bool robots_put(pg::Connection& connection, const std::string& worker, const std::string& origin,
                const std::string& host, const RobotsAnswer& answer);

} // namespace holdfast::store
