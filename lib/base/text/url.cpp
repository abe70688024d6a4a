#include "lib/base/text/url.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <algorithm>
#include <vector>

namespace holdfast::base {

namespace {

constexpr std::size_t kLongestShown = 200;    // of a bad URL in an error message
constexpr std::size_t kLongestFileName = 255; // of every file system that matters

bool is_path_character(char c) {
  return is_unreserved(c) || std::string_view("!$&'()*+,;=:@/").find(c) != std::string_view::npos;
}
bool is_query_character(char c) { return is_path_character(c) || c == '?'; }

// nullopt if it is not a port number.
std::optional<unsigned short> parse_port(std::string_view text, unsigned short default_port) {
  if (text.empty()) return default_port;
  unsigned value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > 65535) return std::nullopt;
  }
  if (value == 0) return std::nullopt;
  return static_cast<unsigned short>(value);
}

std::optional<Url> canonical_url(std::string_view written, std::string& problem) {
  const auto failed = [&](std::string reason) {
    problem = std::move(reason);
    return std::nullopt;
  };
  const std::string_view text = trimmed(written);
  if (text.empty()) return failed("it is empty");
  if (text.size() > kLongestUrl) return failed("it is longer than " + std::to_string(kLongestUrl) + " bytes");
  if (std::any_of(text.begin(), text.end(), is_control)) return failed("it holds a control character");

  Url url;
  const std::string_view scheme = split_url(text).scheme;
  url.scheme = lower_case(scheme);
  if (scheme.empty()) return failed("it has no scheme (write https:// in front)");
  if (url.scheme != "http" && url.scheme != "https") {
    return failed("its scheme is \"" + url.scheme + "\", not http or https");
  }
  const unsigned short default_port = url.scheme == "http" ? 80 : 443;

  // Browsers read "\" as "/" up to the query. A parser that does not would see another host in "http://a\@b/".
  std::string rest(text.substr(scheme.size() + 1));
  const auto hash = std::min(rest.find('#'), rest.size());
  const auto fragment = rest.substr(std::min(hash + 1, rest.size()));
  rest.resize(hash);
  const auto question = std::min(rest.find('?'), rest.size());
  std::replace(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(question), '\\', '/');
  if (!rest.starts_with("//")) return failed("\"//\" is missing after its scheme");
  const auto authority_end = std::min(rest.find_first_of("/?", 2), rest.size());
  const std::string_view authority = std::string_view(rest).substr(2, authority_end - 2);
  if (authority.find('@') != std::string_view::npos) return failed("it holds a user name or a password");

  const auto place = split_authority(authority);
  const auto host = canonical_host(place.host, problem);
  if (!host) return std::nullopt;
  url.host = *host;
  const auto port = parse_port(place.port, default_port);
  if (!port) return failed("its port is not a number from 1 to 65535");
  url.port = *port;

  url.path = without_dot_segments(
      canonical_codes(std::string_view(rest).substr(authority_end, question - authority_end), is_path_character));
  url.text = url.scheme + "://" + host_in_url(url.host);
  if (url.port != default_port) url.text += ":" + std::to_string(url.port);
  url.text += url.path;
  if (question < rest.size()) {
    url.text += "?" + canonical_codes(std::string_view(rest).substr(question + 1), is_query_character);
  }
  if (is_route(fragment)) url.text += "#" + canonical_codes(fragment, is_query_character);
  url.fragment_dropped = !fragment.empty() && !is_route(fragment);
  if (url.text.size() > kLongestUrl)
    return failed("it is longer than " + std::to_string(kLongestUrl) + " bytes once encoded");

  // A second parser must read the result as we do; otherwise a check and a fetch could see different hosts.
  const auto parsed = boost::urls::parse_uri(url.text);
  if (!parsed || (*parsed).host_address() != url.host || (*parsed).encoded_path() != url.path) {
    return failed("it cannot be read in one way only");
  }
  return url;
}

// The text of a bad URL for an error message: short, on one line, without credentials.
std::string shown(std::string_view text) {
  std::string printable;
  for (const char c : trimmed(text).substr(0, kLongestShown)) {
    if (is_control(c)) {
      printable += "\\x" + hex({&c, 1});
    } else {
      printable += c;
    }
  }
  if (trimmed(text).size() > kLongestShown) printable += "...";
  const auto slashes = printable.find("//");
  const auto at = printable.rfind(
      '@', std::min(printable.find_first_of("/\\?#", slashes == printable.npos ? 0 : slashes + 2), printable.size()));
  if (slashes != printable.npos && at != printable.npos && at > slashes) {
    printable.replace(slashes + 2, at - slashes - 2, "***");
  }
  return printable;
}

} // namespace

UrlParts split_url(std::string_view url) {
  UrlParts parts;
  const auto cut = [&](char mark, std::string_view& part) {
    const auto at = url.find(mark);
    if (at == std::string_view::npos) return false;
    part = url.substr(at + 1);
    url = url.substr(0, at);
    return true;
  };
  parts.has_fragment = cut('#', parts.fragment);
  parts.has_query = cut('?', parts.query);
  const auto scheme = url.substr(0, std::min(url.find(':'), url.size()));
  if (scheme.size() < url.size() && !scheme.empty() && is_alpha(scheme.front()) &&
      std::all_of(scheme.begin(), scheme.end(),
                  [](char c) { return is_alpha(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; })) {
    parts.scheme = scheme;
    url.remove_prefix(scheme.size() + 1);
  }
  if (url.starts_with("//")) {
    parts.has_authority = true;
    parts.authority = url.substr(2, std::min(url.find('/', 2), url.size()) - 2);
    url.remove_prefix(2 + parts.authority.size());
  }
  parts.path = url;
  return parts;
}

Authority split_authority(std::string_view authority) {
  Authority parts;
  if (const auto at = authority.rfind('@'); at != authority.npos) {
    parts.login = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  const auto closing = authority.starts_with('[') ? authority.find(']') : authority.npos;
  const auto colon = authority.find(':', closing == authority.npos ? 0 : closing);
  parts.host = authority.substr(0, colon);
  if (colon != authority.npos) parts.port = authority.substr(colon + 1);
  return parts;
}

std::string_view Authority::bare_host() const {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

bool is_web_url(std::string_view url) {
  const auto parts = split_url(url);
  const auto scheme = lower_case(parts.scheme);
  return (scheme == "http" || scheme == "https") && !parts.authority.empty() && !is_blank(parts.authority.front());
}

std::optional<std::string> host_named(std::string_view text) {
  if (text.find_first_of("/?#@") != text.npos) return std::nullopt;
  return canonical_host(split_authority(text).host);
}

std::string Url::origin() const { return text.substr(0, text.find('/', scheme.size() + 3)); }

std::string Url::target() const {
  const auto begin = text.find('/', scheme.size() + 3);
  return text.substr(begin, text.find('#') - begin);
}

std::string without_dot_segments(std::string_view path) {
  std::vector<std::string_view> segments;
  bool directory = path.empty();
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    directory = segment == "." || segment == "..";
    if (!directory) segments.push_back(segment);
    if (segment == ".." && !segments.empty()) segments.pop_back();
  }
  std::string result;
  for (const std::string_view segment : segments)
    result.append("/").append(segment);
  return directory ? result + "/" : result;
}

bool is_route(std::string_view fragment) { return fragment.starts_with('/') || fragment.starts_with('!'); }

Url parse_url(std::string_view text) {
  std::string problem;
  if (auto url = canonical_url(text, problem)) return *std::move(url);
  throw Error(ErrorClass::refused, "cannot use the URL \"" + shown(text) + "\": " + problem);
}

std::optional<Url> try_parse_url(std::string_view text) noexcept {
  try {
    std::string problem;
    return canonical_url(text, problem);
  } catch (...) {
    return std::nullopt; // out of memory, at worst
  }
}

std::string host_directory(const Url& url) {
  std::string name = lower_case(url.host);
  for (char& c : name) {
    if (!is_alpha(c) && !is_digit(c) && c != '.' && c != '-') c = '_';
  }
  if (name.empty() || name == "." || name == "..") name = "_";
  const bool default_port = url.port == (url.scheme == "http" ? 80 : 443);
  const std::string port = default_port ? "" : "_" + std::to_string(url.port);
  name.resize(std::min(name.size(), kLongestFileName - port.size()));
  return name + port;
}

} // namespace holdfast::base
