#include "lib/warc/surt.hpp"

#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"

#include <algorithm>
#include <ranges>
#include <vector>

namespace holdfast::warc {

namespace {

constexpr std::size_t kDigestDigits = 64;

// Empty ones, too: base::split() leaves them out.
std::vector<std::string_view> fields_of(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, at))
    parts.emplace_back(part.begin(), part.end());
  return parts;
}

// Decodes as often as it was escaped: a decoded byte may end a code, or begin one. Each step makes the text shorter.
std::string unescaped(std::string_view written) {
  std::string text;
  for (const char letter : written) {
    text += letter;
    for (int byte = 0; text.size() > 2 && byte >= 0;)
      if (byte = base::percent_decoded(text, text.size() - 3); byte >= 0) {
        text.resize(text.size() - 2);
        text.back() = static_cast<char>(byte);
      }
  }
  return text;
}

std::string escaped(std::string_view text) {
  return base::percent_encode(text, [](char c) { return base::is_graphic(c) && c != '#' && c != '%'; });
}

std::string normal_path(const std::string& path) {
  std::vector<std::string_view> kept;
  const auto parts = fields_of(path, '/');
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (parts[i] == ".." && !kept.empty())
      kept.pop_back();
    else if (parts[i] != ".")
      kept.push_back(parts[i]);
  std::string result = "/";
  for (const auto& part : kept) {
    result += part;
    if (!part.empty() && &part != &kept.back()) result += '/';
  }
  return result;
}

bool is_session(std::string_view value) {
  return value.size() == 32 &&
         std::all_of(value.begin(), value.end(), [](char c) { return base::is_alpha(c) || base::is_digit(c); });
}

// "abcdefgh=abcdefghijklmnopqrstuvwx", of letters alone
bool is_asp_session(std::string_view value) {
  return value.size() == 33 && value.find('=') == 8 && value.rfind('=') == 8 &&
         std::all_of(value.begin(), value.end(), [](char c) { return base::is_alpha(c) || c == '='; });
}

// Removes the last "<name><value that fits>" before "&" or the end. `query` is in lower case.
void strip_session(std::string& query, std::string_view name, bool (*fits)(std::string_view)) {
  auto end = query.size(), searched = end; // behind the value; where the last search for that began
  for (auto at = query.rfind(name); at != std::string::npos;
       at = at == 0 ? std::string::npos : query.rfind(name, at - 1)) {
    const auto begin = at + name.size();
    const auto mark = std::string_view(query).substr(begin, searched - begin).find('&');
    if (mark != std::string_view::npos) end = begin + mark;
    searched = begin;
    const auto value = std::string_view(query).substr(begin, end - begin);
    if (!fits(value)) continue;
    query.erase(at, std::min(end + 1, query.size()) - at);
    return;
  }
}

void strip_cold_fusion(std::string& query) {
  const auto token = query.rfind("&cftoken=");
  const auto id = token == std::string::npos ? token : query.rfind("cfid=", token);
  if (id == std::string::npos || query.find('&', id) != token || token == id + 5) return;
  const auto end = std::min(query.find('&', token + 1), query.size());
  if (end == token + 9) return;
  query.erase(id, std::min(end + 1, query.size()) - id);
}

std::string normal_query(std::string_view query) {
  auto text = base::lower_case(escaped(unescaped(query)));
  for (const char* name : {"jsessionid=", "phpsessid=", "sid="})
    strip_session(text, name, is_session);
  strip_session(text, "aspsessionid", is_asp_session);
  strip_cold_fusion(text);
  auto fields = fields_of(text, '&');
  // By name, then by value: "a" before "a=", "a=b" before "a-b".
  const auto name_and_value = [](std::string_view field) {
    const auto equals = std::min(field.find('='), field.size());
    return std::pair(field.substr(0, equals), field.substr(equals));
  };
  std::ranges::stable_sort(fields, {}, name_and_value);
  std::string result;
  for (const auto& field : fields)
    result += (&field == &fields.front() ? "" : "&") + std::string(field);
  return result;
}

// "www2.example.com" -> "com,example"
std::string reversed_host(std::string_view written) {
  auto host = base::lower_case(unescaped(written));
  if (!std::all_of(host.begin(), host.end(), base::is_ascii)) // international names in ASCII, as surt has them
    host = base::host_named(host).value_or(host);
  while (host.ends_with('.'))
    host.pop_back();
  if (host.starts_with("www")) {
    const auto end = host.find_first_not_of("0123456789", 3);
    if (end != std::string::npos && host[end] == '.') host.erase(0, end + 1);
  }
  auto labels = fields_of(host, '.');
  std::reverse(labels.begin(), labels.end());
  std::string result;
  for (const auto& label : labels)
    result += (result.empty() ? "" : ",") + escaped(label);
  return result;
}

// The last byte of a text, one higher: the end of what begins with it.
std::string after(std::string text) {
  text.back() = static_cast<char>(text.back() + 1);
  return text;
}

} // namespace

std::string whole_url_key(std::string_view url) {
  url = base::trimmed(url); // a form may end in a blank
  const auto parts = base::split_url(url);
  const auto scheme = base::lower_case(parts.scheme);
  if ((scheme != "http" && scheme != "https") || !parts.has_authority) return escaped(url);
  const auto place = base::split_authority(parts.authority);
  std::string key = reversed_host(place.bare_host());
  if (!place.port.empty() && place.port != (scheme == "http" ? "80" : "443")) key += ":" + std::string(place.port);
  auto path = base::lower_case(escaped(normal_path(unescaped(parts.path))));
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  key += ")" + path;
  const auto query = normal_query(parts.query);
  return query.empty() ? key : key + "?" + query;
}

std::string url_key(std::string_view url) {
  auto key = whole_url_key(url);
  if (key.size() <= kLongestKey) return key;
  const auto digest = base::sha256_hex(key);
  key.resize(kLongestKey - kDigestDigits);
  return key + digest;
}

std::optional<Match> match_named(std::string_view name) {
  if (name.empty() || name == "exact") return Match::exact;
  if (name == "prefix") return Match::prefix;
  if (name == "host") return Match::host;
  if (name == "domain") return Match::domain;
  return std::nullopt;
}

std::pair<std::string, std::string> key_range(std::string_view url, Match match) {
  const auto key = url_key(url);
  const auto host = key.substr(0, key.find(')'));
  switch (match) {
  case Match::exact:
    break;
  case Match::host:
    return {host + ")/", host + ")0"};
  // "com,example)/" and "com,example,sub)/": "," and ")" are the bytes before "-" that follow a host.
  case Match::domain:
    return {host + ")", host + "-"};
  case Match::prefix: {
    auto begin = key;
    if (url.ends_with('/') && !begin.ends_with('/')) begin += '/';
    if (url.ends_with('?') && !begin.ends_with('?')) begin += '?';
    return {begin, after(begin)};
  }
  }
  return {key, key + '\1'};
}

} // namespace holdfast::warc
