#include "services/serve/cdx.hpp"

#include "lib/base/text/text.hpp"
#include "lib/store/capture.hpp"
#include "lib/warc/surt.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace holdfast::serve {

namespace {

constexpr std::int64_t kMostRows = 10000;
// allowFuzzy: pywb sends it for a URL that differs a little; only exact keys are found.
constexpr std::array<std::string_view, 10> kNames{"url",   "matchType", "output", "filter", "sort",
                                                  "limit", "closest",   "from",   "to",     "allowFuzzy"};

// A request that cannot be answered; the text is for users.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Asked {
  std::string url;
  warc::Match match;
};

// Parses the URL: "example.com/*" is a prefix, "*.example.com" a domain.
Asked what_is_asked(const Request& request) {
  auto url = request.parameter("url");
  if (url.empty()) throw BadRequest("url: which URL?");
  const auto match = warc::match_named(request.parameter("matchType"));
  if (!match) throw BadRequest("matchType: exact, prefix, host or domain");
  Asked asked{std::move(url), *match};
  if (asked.url.starts_with("*.")) {
    asked = {asked.url.substr(2), warc::Match::domain};
  } else if (asked.url.ends_with("*")) {
    asked.url.pop_back();
    asked.match = warc::Match::prefix;
  }
  const bool named = asked.url.find("://") != std::string::npos || asked.url.starts_with("urn:");
  if (!named) asked.url = "http://" + asked.url;
  return asked;
}

// "2026", "20260131", "20260131235959" as a time; `last`: its last second. nullopt: not given.
std::optional<std::string> time_in(const Request& request, const char* name, bool last) {
  const auto digits = request.parameter(name);
  if (digits.empty()) return std::nullopt;
  const std::string rest = last ? "99991231235959" : "00000101000000";
  const auto problem = std::string(name) + ": 4 to 14 digits, as 20260131235959";
  if (digits.size() < 4 || digits.size() > rest.size() || digits.size() % 2 != 0 ||
      !std::all_of(digits.begin(), digits.end(), base::is_digit))
    throw BadRequest(problem);
  auto all = digits + rest.substr(digits.size());
  const auto date = [&](const std::string& text) {
    return text.substr(0, 4) + "-" + text.substr(4, 2) + "-" + text.substr(6, 2) + "T" + text.substr(8, 2) + ":" +
           text.substr(10, 2) + ":" + text.substr(12, 2) + "Z";
  };
  if (last && digits.size() == 6) // the last day of a month
    for (const char* day : {"30", "29", "28"})
      if (warc::whole_seconds(date(all)).empty()) all.replace(6, 2, day);
  if (warc::whole_seconds(date(all)).empty()) throw BadRequest(problem);
  return date(all);
}

std::int64_t limit_of(const Request& request) {
  const auto text = request.parameter("limit");
  if (text.empty()) return kMostRows;
  std::int64_t limit = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (failure != std::errc{} || end != text.data() + text.size() || limit < 1)
    throw BadRequest("limit: a number from 1");
  return std::min(limit, kMostRows);
}

// "[!][=]field:text": whether a capture passes.
bool passes_one(const store::Capture& capture, std::string_view filter) {
  if (filter.empty()) return true;
  const bool other = filter.starts_with('!');
  if (other) filter.remove_prefix(1);
  const bool whole = filter.starts_with('=');
  if (whole) filter.remove_prefix(1);
  const auto colon = filter.find(':');
  const auto field = filter.substr(0, colon);
  if (filter.starts_with('~') || colon == std::string_view::npos)
    throw BadRequest("filter: [!][=]field:text, without regular expressions");
  std::string value;
  if (field == "status" || field == "statuscode")
    value = capture.status > 0 ? std::to_string(capture.status) : "-";
  else if (field == "mime" || field == "mimetype")
    value = capture.mime;
  else if (field == "url" || field == "original")
    value = capture.url;
  else if (field == "digest")
    value = capture.digest;
  else
    throw BadRequest("filter: a field is status, mime, url or digest");
  const auto text = filter.substr(colon + 1);
  return (whole ? value == text : value.find(text) != std::string::npos) != other;
}

bool passes(const store::Capture& capture, const Request& request) {
  const auto [first, last] = request.query.equal_range("filter");
  const auto from = time_in(request, "from", false), to = time_in(request, "to", true);
  if ((from && capture.date < *from) || (to && capture.date > *to)) return false;
  return std::all_of(first, last, [&](const auto& one) { return passes_one(capture, one.second); });
}

// Parameters of other CDX servers, too, would change the answer.
void check_names(const Request& request) {
  for (const auto& [name, value] : request.query) {
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end())
      throw BadRequest(name + ": not known here; these are: " + base::join({kNames.begin(), kNames.end()}, ", "));
    if (name != "filter" && request.query.count(name) > 1) throw BadRequest(name + ": given twice");
  }
}

std::vector<store::Capture> find(pg::Connection& connection, const Request& request) {
  const auto asked = what_is_asked(request);
  const auto sort = request.parameter("sort");
  if (sort != "" && sort != "default" && sort != "reverse" && sort != "closest")
    throw BadRequest("sort: default, reverse or closest");
  // Without a time, "closest" means the latest.
  const auto near = request.parameter("closest") == "now" ? std::nullopt : time_in(request, "closest", false);
  const auto asks = [&](const char* name) { return request.query.contains(name); };
  const bool drops = asks("filter") || (near && (asks("from") || asks("to")));
  const auto limit = drops ? kMostRows : limit_of(request); // it counts what passes
  if (near && asked.match == warc::Match::exact)
    return store::captures_closest(connection, warc::url_key(asked.url), *near, limit);
  store::CaptureQuery query;
  std::tie(query.first, query.end) = warc::key_range(asked.url, asked.match);
  if (const auto from = time_in(request, "from", false)) query.from = *from;
  if (const auto to = time_in(request, "to", true)) query.to = *to;
  query.newest = sort == "reverse" || sort == "closest";
  query.limit = limit;
  return store::captures(connection, query);
}

} // namespace

Response cdx(pg::Connection& connection, const Request& request, const Files* files, const std::string& key) {
  const auto output = request.parameter("output");
  try {
    if (output != "" && output != "json" && output != "cdxj" && output != "text")
      throw BadRequest("output: cdxj or json");
    check_names(request);
    for (auto [it, end] = request.query.equal_range("filter"); it != end; ++it)
      passes_one({}, it->second); // whether it can be read
    auto left = limit_of(request);
    std::string body;
    for (auto capture : find(connection, request)) {
      if (!passes(capture, request) || left-- <= 0) continue;
      if (files != nullptr) capture.file = files->href(capture.file, key).substr(1);
      body += (output == "json" ? warc::cdxj_object(capture, true) : warc::cdxj_line(capture)) + "\n";
    }
    return content(output == "json" ? "application/x-ndjson" : "text/x-cdxj", std::move(body));
  } catch (const BadRequest& bad) {
    return plain(400, std::string(bad.what()) + "\n");
  }
}

} // namespace holdfast::serve
