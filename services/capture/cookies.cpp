#include "services/capture/cookies.hpp"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <vector>

namespace holdfast::capture {

namespace {

// domain, whether for subdomains, path, secure, expires, name, value: parted by tabs.
Json parse_line(std::string line) {
  constexpr std::string_view kHttpOnly = "#HttpOnly_";
  const bool http_only = line.starts_with(kHttpOnly);
  if (http_only) line.erase(0, kHttpOnly.size());
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty() || line[0] == '#') return nullptr;
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const auto end = std::min(line.find('\t', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() < 7) return nullptr;
  const double expires = std::strtod(fields[4].c_str(), nullptr);
  if (expires > 0 && expires < static_cast<double>(std::time(nullptr))) return nullptr;
  Json cookie = {{"name", fields[5]},
                 {"value", fields[6]},
                 {"domain", fields[0]},
                 {"path", fields[2]},
                 {"secure", fields[3] == "TRUE"},
                 {"httpOnly", http_only}};
  if (expires > 0) cookie["expires"] = expires;
  return cookie;
}

} // namespace

void load_cookies(DevTools& browser, const std::string& context, const Job& job) {
  const auto path = Job::setting("COOKIES_FILE");
  if (path.empty()) return;
  std::ifstream file(path);
  Json cookies = Json::array();
  for (std::string line; std::getline(file, line);)
    if (auto cookie = parse_line(line); !cookie.is_null()) cookies.push_back(std::move(cookie));
  if (!cookies.empty())
    browser.call("Storage.setCookies", {{"cookies", cookies}, {"browserContextId", context}}, "", job.deadline());
}

} // namespace holdfast::capture
