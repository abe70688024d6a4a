#pragma once
// Rules of a robots.txt (RFC 9309) for us, and its Crawl-delay. Values and pure functions, any thread; the text is
// hostile input: lines that are not rules are skipped.

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

} // namespace holdfast::robots
