#include "lib/formats/link.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/formats/encoding.hpp"

#include <algorithm>

namespace holdfast::formats {

namespace {

constexpr std::size_t kLongestLink = 1u << 16; // more is not a handwritten link

// Normalises slashes of http(s) URLs by the URL standard: "\\" is "/" up to the query, and any number of slashes stands
// before a host.
std::string with_slashes(std::string_view page, std::string_view reference) {
  std::string text(reference);
  const auto scheme = base::lower_case(base::split_url(reference).scheme);
  const bool absolute = !scheme.empty();
  if (absolute && scheme != "http" && scheme != "https") return text;
  const auto end = std::min(text.find_first_of("?#"), text.size());
  std::replace(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\\', '/');
  const std::size_t begin = absolute ? scheme.size() + 1 : 0;
  const auto slashes = std::min(text.find_first_not_of('/', begin), text.size()) - begin;
  const bool other = absolute && base::lower_case(base::split_url(page).scheme) != scheme;
  if (slashes > 1 || other) text.replace(begin, slashes, "//");
  return text;
}

// The query of a link is written in the encoding of its page.
void encode_query(std::string& url, const std::string& encoding) {
  const auto mark = url.find('?');
  if (mark == std::string::npos || encoding.empty() || encoding.starts_with("UTF") || mark > url.find('#')) return;
  const auto end = std::min(url.find('#', mark), url.size());
  const auto query = encode(std::string_view(url).substr(mark, end - mark), encoding);
  url.replace(mark, end - mark, base::percent_encode(query, base::is_ascii));
}

} // namespace

std::optional<std::string> join_url(std::string_view page, std::string_view written) {
  if (page.size() > base::kLongestUrl) return std::nullopt; // it would be copied for each link
  if (written.empty()) return std::string(page);
  const auto reference = with_slashes(page, written);
  const auto from = base::split_url(page), to = base::split_url(reference);
  const auto broken = [](std::string_view authority) {
    return (authority.find('[') == std::string_view::npos) != (authority.find(']') == std::string_view::npos);
  };
  if (broken(to.authority)) return std::nullopt;
  if (!to.scheme.empty() && (to.has_authority || base::lower_case(to.scheme) != base::lower_case(from.scheme)))
    return reference;
  std::string result = std::string(from.scheme) + "://";
  result += to.has_authority ? to.authority : from.authority;
  bool query_of_base = false;
  if (to.has_authority || to.path.starts_with('/')) {
    if (!to.path.empty()) result += base::without_dot_segments(to.path);
  } else if (to.path.empty()) {
    result += from.path;
    query_of_base = !to.has_query;
  } else {
    const std::string directory(from.path.substr(0, from.path.rfind('/') + 1)); // npos + 1 is 0
    result += base::without_dot_segments((directory.empty() ? "/" : directory) + std::string(to.path));
  }
  if (query_of_base && from.has_query) result += "?" + std::string(from.query);
  if (to.has_query && !to.query.empty()) result += "?" + std::string(to.query);
  if (to.has_fragment) result += "#" + std::string(to.fragment);
  return result;
}

std::string plain_link(std::string_view href) {
  const auto is_mark = [](char letter) { return static_cast<unsigned char>(letter) > ' '; };
  const auto begin = std::find_if(href.begin(), href.end(), is_mark);
  std::string text(begin, std::find_if(href.rbegin(), std::reverse_iterator(begin), is_mark).base());
  std::erase_if(text, [](char letter) { return letter == '\t' || letter == '\r' || letter == '\n'; });
  return text;
}

std::optional<std::string> absolute_link(std::string_view page, std::string_view href, const std::string& encoding) {
  auto text = plain_link(href);
  if (text.empty() || text.size() > kLongestLink) return std::nullopt;
  encode_query(text, encoding);
  auto url = join_url(page, text);
  if (!url) return std::nullopt;
  if (const auto hash = url->find('#'); hash != std::string::npos && !base::is_route(url->substr(hash + 1)))
    url->resize(hash);
  if (!base::is_web_url(*url) || url->size() > kLongestLink) return std::nullopt;
  return base::percent_encode(*url, [](char letter) { return letter != ' '; });
}

std::string request_url(std::string_view url) {
  const auto begin = static_cast<std::size_t>(base::split_url(url).path.data() - url.data());
  const auto target = url.substr(begin, url.find('#') - begin);
  const auto stays = [](char c) { return base::is_graphic(c) && c != '"' && c != '<' && c != '>'; };
  return std::string(url.substr(0, begin)) + (target.starts_with('/') ? "" : "/") + base::percent_encode(target, stays);
}

} // namespace holdfast::formats
