#pragma once
// Rules of a robots.txt (RFC 9309) for us, and its Crawl-delay. Values and pure functions, any thread; the text is
// hostile input: lines that are not rules are skipped.

#include "lib/base/text/url.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::robots {

constexpr std::size_t kMostBytes = 500 * 1024; // more than this of a robots.txt is not looked at (RFC 9309, 2.5)
constexpr std::string_view kAgent = "holdfast";

struct Rule {
  bool allow{false};
  std::string pattern; // as written, percent-encoding normalised; "*" any characters, "$" at the end: the end
};

struct Rules {
  std::vector<Rule> rules;
  std::optional<std::chrono::milliseconds> delay; // Crawl-delay
};

// The groups that name `agent` (in any case), or else those of "*".
Rules parse(std::string_view text, std::string_view agent = kAgent);

// The rule that forbids a path with its query ("/a?b"), or nullopt: the longest pattern that fits decides, Allow if two
// are equally long. /robots.txt itself is always allowed.
std::optional<std::string> forbidding_rule(const Rules& rules, std::string_view target);

// Fetches a site's robots.txt. Blocking, bounded in time and size: call it on a side thread.
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
