#include "services/serve/cdx.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/store/capture.hpp"
#include "lib/warc/surt.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace holdfast::serve {

namespace {

constexpr std::int64_t kBlock = 3000; // captures; pages are counted in blocks of so many lines by all CDX servers
constexpr std::int64_t kUsualPage = 3, kMostOfPage = 10; // blocks
// allowFuzzy: pywb sends it for a URL that differs a little; only exact keys are found.
constexpr std::array<std::string_view, 14> kNames{"url",   "matchType", "output",   "filter",      "sort",
                                                  "limit", "closest",   "from",     "to",          "allowFuzzy",
                                                  "fl",    "page",      "pageSize", "showNumPages"};
// The names of fields, and those that the Wayback Machine's server has for them.
const std::map<std::string_view, std::string_view> kFields{
    {"urlkey", "urlkey"}, {"timestamp", "timestamp"}, {"url", "url"},       {"original", "url"},
    {"mime", "mime"},     {"mimetype", "mime"},       {"status", "status"}, {"statuscode", "status"},
    {"digest", "digest"}, {"length", "length"},       {"offset", "offset"}, {"filename", "filename"},
};
constexpr std::array<std::string_view, 6> kFiltered{"url", "urlkey", "status", "mime", "digest", "timestamp"};

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

std::int64_t number(const Request& request, const char* name, std::int64_t least, std::int64_t most,
                    std::int64_t otherwise) {
  const auto text = request.parameter(name);
  if (text.empty()) return otherwise;
  const auto value = base::parse_number<std::int64_t>(text);
  if (!value || *value < least) throw BadRequest(std::string(name) + ": a number from " + std::to_string(least));
  return std::min(*value, most);
}

// "[!][=~]field:text": contains the text, equals it, or matches it as a pattern.
nlohmann::json read_filter(std::string_view text) {
  const bool negated = text.starts_with('!');
  if (negated) text.remove_prefix(1);
  const char* how = text.starts_with('=') ? "equals" : text.starts_with('~') ? "matches" : "contains";
  if (*how != 'c') text.remove_prefix(1);
  const auto colon = text.find(':');
  const auto field = kFields.find(text.substr(0, colon));
  if (colon == std::string_view::npos || field == kFields.end() ||
      std::find(kFiltered.begin(), kFiltered.end(), field->second) == kFiltered.end())
    throw BadRequest("filter: [!][=~]field:text; a field is " + base::join({kFiltered.begin(), kFiltered.end()}, ", "));
  return {{"field", field->second}, {"how", how}, {"negated", negated}, {"value", text.substr(colon + 1)}};
}

// Parameters of other CDX servers, too, would change the answer.
void check_names(const Request& request) {
  for (const auto& [name, value] : request.query) {
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end())
      throw BadRequest(name + ": not known here; these are: " + base::join({kNames.begin(), kNames.end()}, ", "));
    if (name != "filter" && request.query.count(name) > 1) throw BadRequest(name + ": given twice");
  }
  const auto output = request.parameter("output");
  if (output != "" && output != "json" && output != "cdxj" && output != "text")
    throw BadRequest("output: cdxj or json");
  const auto sort = request.parameter("sort");
  if (sort != "" && sort != "default" && sort != "reverse" && sort != "closest")
    throw BadRequest("sort: default, reverse or closest");
}

store::CaptureQuery query_of(const Request& request, const Asked& asked) {
  store::CaptureQuery query;
  std::tie(query.first, query.end) = warc::key_range(asked.url, asked.match);
  if (const auto from = time_in(request, "from", false)) query.from = *from;
  if (const auto to = time_in(request, "to", true)) query.to = *to;
  auto filters = nlohmann::json::array();
  for (auto [it, end] = request.query.equal_range("filter"); it != end; ++it)
    if (!it->second.empty()) filters.push_back(read_filter(it->second));
  query.filters = base::json_text(filters);
  const auto sort = request.parameter("sort");
  query.newest = sort == "reverse" || sort == "closest";
  return query;
}

// The names of `fl`; empty: all.
std::vector<std::string_view> fields_asked(const Request& request) {
  std::vector<std::string_view> names;
  for (const auto& name : base::split(request.parameter("fl"), ",")) {
    const auto field = kFields.find(name);
    if (field == kFields.end()) throw BadRequest("fl: there is no field \"" + name + "\"");
    names.push_back(field->second);
  }
  return names;
}

std::string line_of(const store::Capture& capture, const std::vector<std::string_view>& fields, bool json) {
  if (fields.empty()) return json ? warc::cdxj_object(capture, true) : warc::cdxj_line(capture);
  const auto whole = nlohmann::json::parse(warc::cdxj_object(capture, true));
  nlohmann::ordered_json object;
  std::string values;
  for (const auto name : fields) {
    const auto value = whole.value(name, std::string("-"));
    object[std::string(name)] = value;
    values += (values.empty() ? "" : " ") + value;
  }
  return json ? base::json_text(object) : values;
}

Response pages_of(std::int64_t captures, std::int64_t blocks) {
  const auto in = [&](std::int64_t size) { return (captures + size - 1) / size; };
  return content("application/json",
                 nlohmann::json{{"pages", in(blocks * kBlock)}, {"pageSize", blocks}, {"blocks", in(kBlock)}}.dump() +
                     "\n");
}

} // namespace

Response cdx(pg::Connection& connection, const Request& request, const Files* files, const std::string& key) {
  try {
    check_names(request);
    const auto asked = what_is_asked(request);
    const auto fields = fields_asked(request);
    auto query = query_of(request, asked);
    const auto blocks = number(request, "pageSize", 1, kMostOfPage, kUsualPage), size = blocks * kBlock;
    if (request.parameter("showNumPages") == "true") return pages_of(store::captures_count(connection, query), blocks);
    const auto page = number(request, "page", 0, std::numeric_limits<std::int32_t>::max(), 0);
    const auto limit = number(request, "limit", 1, std::numeric_limits<std::int32_t>::max(), size + 1);
    query.limit = std::min(limit, size + 1); // one more tells whether there is another page
    query.offset = page * size;
    // Without a time, "closest" means the latest.
    const auto near = request.parameter("closest") == "now" ? std::nullopt : time_in(request, "closest", false);
    const bool by_time = near && asked.match == warc::Match::exact;
    if (by_time && page > 0) throw BadRequest("page: captures that are the closest to a time have one page");
    auto captures = by_time ? store::captures_closest(connection, warc::url_key(asked.url), *near, query)
                            : store::captures(connection, query);
    const bool more = static_cast<std::int64_t>(captures.size()) > size;
    if (more) captures.pop_back();
    const bool json = request.parameter("output") == "json";
    std::string body;
    for (auto& capture : captures) {
      if (files != nullptr) capture.file = files->href(capture.file, key).substr(1);
      body += line_of(capture, fields, json) + "\n";
    }
    auto response = content(json ? "application/x-ndjson" : "text/x-cdxj", std::move(body));
    if (more && !by_time) {
      auto next = request;
      next.query.erase("page");
      next.query.emplace("page", std::to_string(page + 1));
      response.headers.emplace_back("Link", "<" + next.here() + ">; rel=\"next\"");
    }
    return response;
  } catch (const BadRequest& bad) {
    return plain(400, std::string(bad.what()) + "\n");
  } catch (const pg::DatabaseError& error) {
    if (error.sqlstate() != "2201B") throw;
    return plain(400, std::string("filter: ") + error.what() + "\n");
  }
}

} // namespace holdfast::serve
