#include "lib/robots/robots.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/http/client.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace holdfast::robots {

namespace {

constexpr std::size_t kMostRules = 10000;
constexpr std::size_t kLongestPattern = 2048;

// Normalises a pattern as our canonical URLs: unreserved characters plain, everything else in upper case hex.
std::string normalised(std::string_view pattern) {
  return base::canonical_codes(pattern, [](char c) { return c > 0x20 && c < 0x7f; });
}

// Finds the parts between the stars from left to right, in time linear in pattern and target.
bool fits(std::string_view pattern, std::string_view target) {
  const bool anchored = !pattern.empty() && pattern.back() == '$';
  if (anchored) pattern.remove_suffix(1);
  for (bool first = true;; first = false) {
    const auto star = pattern.find('*');
    const auto part = pattern.substr(0, star);
    if (star == std::string_view::npos && anchored)
      return target.ends_with(part) && (!first || target.size() == part.size());
    if (first && !target.starts_with(part)) return false;
    if (!first) { // memmem() is linear for any input, string_view::find() is not
      const auto* found = ::memmem(target.data(), target.size(), part.data(), part.size());
      if (found == nullptr) return false;
      target.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(found) - target.data()));
    }
    if (star == std::string_view::npos) return true;
    target.remove_prefix(part.size());
    pattern.remove_prefix(star + 1);
  }
}

// "Holdfast/1.0 (archiver)" names the product "holdfast".
std::string product(std::string_view agent) {
  const auto end =
      std::find_if(agent.begin(), agent.end(), [](char c) { return !base::is_alpha(c) && c != '-' && c != '_'; });
  return base::lower_case(agent.substr(0, static_cast<std::size_t>(end - agent.begin())));
}

std::optional<std::chrono::milliseconds> seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end == text.data() || !(value >= 0)) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(value, 1e6) * 1000));
}

} // namespace

Rules parse(std::string_view text, std::string_view agent) {
  text = text.substr(0, kMostBytes);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::string name = base::lower_case(agent);
  Rules ours, everybodys;
  bool named = false, for_us = false, for_all = false, in_agents = false;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string key = base::lower_case(base::trimmed(line.substr(0, colon)));
    const std::string_view value = base::trimmed(line.substr(colon + 1));
    if (key == "user-agent" || key == "useragent") {
      if (!in_agents) for_us = for_all = false; // a new group
      in_agents = true;
      if (value == "*") for_all = true;
      if (product(value) == name) for_us = named = true;
      continue;
    }
    const bool allow = key == "allow";
    if (allow || key == "disallow") {
      in_agents = false;
      if (value.empty() || value.size() > kLongestPattern) continue;
      const Rule rule{allow, normalised(value)};
      if (for_us && ours.rules.size() < kMostRules) ours.rules.push_back(rule);
      if (for_all && everybodys.rules.size() < kMostRules) everybodys.rules.push_back(rule);
    } else if (key == "crawl-delay") {
      in_agents = false;
      const auto delay = seconds(value);
      if (for_us && delay) ours.delay = delay;
      if (for_all && delay) everybodys.delay = delay;
    }
  }
  return named ? ours : everybodys;
}

std::optional<std::string> forbidding_rule(const Rules& rules, std::string_view target) {
  if (target == "/robots.txt") return std::nullopt;
  const Rule* best = nullptr;
  for (const Rule& rule : rules.rules) {
    const bool better = best == nullptr || rule.pattern.size() > best->pattern.size() ||
                        (rule.pattern.size() == best->pattern.size() && rule.allow && !best->allow);
    if (better && fits(rule.pattern, target)) best = &rule;
  }
  if (best == nullptr || best->allow) return std::nullopt;
  return best->pattern;
}

namespace {

constexpr int kMostRedirects = 5; // RFC 9309, 2.3.1.2

} // namespace

Fetched fetch(const std::string& origin, const FetchOptions& options, const std::atomic<bool>& abandon) {
  http::Request request;
  request.url = origin + "/robots.txt";
  request.user_agent = options.user_agent.empty() ? std::string(kAgent) : options.user_agent;
  request.allow_private = options.allow_private;
  request.check_certificates = options.check_certificates;
  request.compressed = true;
  request.redirects = kMostRedirects;
  request.timeout = options.timeout;
  request.connect_timeout = options.timeout / 2;
  request.abandon = &abandon;
  request.most_bytes = kMostBytes;
  Fetched fetched;
  http::Response response;
  try {
    response = http::Client().send(request);
  } catch (const base::Error& error) {
    response.error = error.what();
  }
  if (response.too_many_redirects) return fetched; // as if there were none
  if (response.status == 0) {
    fetched.error = response.refused.empty() ? response.error : "it leads to an address that is not public";
    return fetched;
  }
  fetched.status = response.status;
  fetched.retry_after = response.retry_after;
  if (response.good())
    fetched.rules = std::move(response.body);
  else if (response.status == 429 || response.status < 400 || response.status >= 500)
    fetched.error = "status " + std::to_string(response.status);
  return fetched;
}

} // namespace holdfast::robots
