#pragma once
// Fetches a site's robots.txt. Blocking, bounded in time and size: call it on a side thread.

#include "lib/base/text/url.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

namespace holdfast::robots {

struct FetchOptions {
  std::string user_agent; // as the hooks send it; empty: our own
  bool check_certificates{true};
  bool allow_private{false}; // else no address that is not public is connected to, also after a redirect
  std::chrono::milliseconds timeout{20000};
};

// RFC 9309, 2.3.1: any 2xx is the rules; 4xx: there are none; anything else: nothing may be fetched for now.
struct Fetched {
  int status{0};     // 0: no answer
  std::string rules; // at most kMostBytes; empty: everything is allowed
  std::string error; // why the site must be taken for unreachable; empty: it need not
  std::optional<std::chrono::milliseconds> retry_after;
};

// `origin`: for which the file is valid. `abandon` set to true by another thread ends it within a second or so. Never
// throws for what the network does.
Fetched fetch(const std::string& origin, const FetchOptions& options, const std::atomic<bool>& abandon);

} // namespace holdfast::robots
