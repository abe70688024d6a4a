#include "services/serve/memento.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/call.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

namespace holdfast::serve {

namespace {

constexpr std::string_view kTimeGate = "/timegate/", kTimeMap = "/timemap/link/", kTimeMapJson = "/timemap/json/";

struct Memento {
  std::string href;
  std::time_t at{0};
};

std::string date_of_http(std::time_t at) {
  std::tm parts{};
  ::gmtime_r(&at, &parts);
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

// Returns false unless the text is a date of HTTP.
bool read_http_date(const std::string& text, std::time_t& at) {
  std::tm parts{};
  const auto* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  at = ::timegm(&parts);
  return end != nullptr && *end == '\0';
}

// The URL may have a query, which belongs to it.
std::string url_in(const Request& request, std::string_view prefix) {
  const auto here = request.here();
  const auto text = request.path.substr(prefix.size()) + here.substr(std::min(here.find('?'), here.size()));
  const auto url = base::try_parse_url(text.find("://") == std::string::npos ? "http://" + text : text);
  return url ? url->text : text;
}

// From the oldest to the latest.
std::vector<Memento> mementos_of(pg::Connection& connection, const std::string& url, const std::string& site) {
  return store::call(connection, "mementos", url).map([&](const pg::Row& row) {
    return Memento{site + "/snapshot/" + row.text("id"), static_cast<std::time_t>(row.integer("at"))};
  });
}

std::string memento_link(const std::string& href, const std::string& rel, std::time_t at = 0) {
  return "<" + href + ">; rel=\"" + rel + "\"" + (at == 0 ? "" : "; datetime=\"" + date_of_http(at) + "\"");
}

std::string in_link(const std::string& url) { return base::percent_encode(url, "/:?#[]@!$&'()*+,;=%"); }

// Returns the links of a URL: original, TimeGate and TimeMap with these relations, then the first memento, the last,
// and those between them for which `shown` returns true.
std::string memento_links(const std::string& url, const std::string& site, const std::vector<Memento>& all,
                          const char* gate, const char* map, const std::string& between,
                          const std::function<bool(const Memento&)>& shown) {
  auto text = memento_link(in_link(url), "original") + between +
              memento_link(site + std::string(kTimeGate) + in_link(url), gate) + between +
              memento_link(site + std::string(kTimeMap) + in_link(url), map) + "; type=\"application/link-format\"";
  for (const auto& memento : all) {
    const bool first = &memento == &all.front(), last = &memento == &all.back();
    if (first || last || shown(memento))
      text +=
          between + memento_link(memento.href, std::string(first ? "first " : "") + (last ? "last " : "") + "memento",
                                 memento.at);
  }
  return text;
}

// Returns the form that other archives and aggregators have.
Response time_map_json(const std::string& url, const std::string& site, const std::vector<Memento>& all) {
  const auto entry = [](const Memento& one) {
    return nlohmann::json{{"uri", one.href}, {"datetime", base::utc_timestamp(one.at)}};
  };
  nlohmann::json map = {{"original_uri", url},
                        {"self", site + std::string(kTimeMapJson) + url},
                        {"timegate_uri", site + std::string(kTimeGate) + url},
                        {"mementos", {{"first", entry(all.front())}, {"last", entry(all.back())}}}};
  for (const auto& memento : all)
    map["mementos"]["list"].push_back(entry(memento));
  return content("application/json", base::json_text(map) + "\n");
}

} // namespace

bool is_memento_path(std::string_view path) {
  return path.starts_with(kTimeGate) || path.starts_with(kTimeMap) || path.starts_with(kTimeMapJson);
}

Response memento(pg::Connection& connection, const Request& request, const std::string& site) {
  const auto& path = request.path;
  const auto prefix = path.starts_with(kTimeGate) ? kTimeGate : path.starts_with(kTimeMap) ? kTimeMap : kTimeMapJson;
  const auto url = url_in(request, prefix);
  const auto all = mementos_of(connection, url, site);
  if (all.empty()) return plain(404, "no snapshot of " + url + "\n");
  if (prefix == kTimeMap)
    return content("application/link-format",
                   memento_links(url, site, all, "timegate", "self", ",\n", [](auto&) { return true; }) + "\n");
  if (prefix == kTimeMapJson) return time_map_json(url, site, all);
  auto wanted = all.back().at;
  if (!request.accept_datetime.empty() && !read_http_date(request.accept_datetime, wanted))
    return plain(400, "Accept-Datetime: a date as Sat, 28 Nov 2026 23:59:59 GMT\n");
  // The last one until then; without one, the first: as memento_at() in the database.
  const auto after = std::upper_bound(all.begin(), all.end(), wanted,
                                      [](std::time_t at, const auto& memento) { return at < memento.at; });
  const auto& found = after == all.begin() ? all.front() : *(after - 1);
  return plain(302, found.href + "\n")
      .with("Location", found.href)
      .with("Vary", "accept-datetime")
      .with("Link", memento_links(url, site, all, "self timegate", "timemap", ", ", [](auto&) { return false; }));
}

void add_memento(pg::Connection& connection, const std::string& snapshot, const std::string& site, Response& page) {
  const auto rows = store::call(connection, "memento_of", snapshot);
  if (rows.empty()) return;
  const auto url = rows[0].text("url");
  const auto all = mementos_of(connection, url, site);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.href.ends_with(snapshot); });
  if (found == all.end()) return;
  page.headers.emplace_back("Memento-Datetime", date_of_http(found->at));
  page.headers.emplace_back("Link", memento_links(url, site, all, "timegate", "timemap", ", ",
                                                  [&](const auto& one) { return &one == &*found; }));
}

} // namespace holdfast::serve
