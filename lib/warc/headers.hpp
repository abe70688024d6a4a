#pragma once
// Header fields of HTTP and of WARC records. Values only.

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::warc {

using Headers = std::vector<std::pair<std::string, std::string>>;

std::string header_of(const Headers& headers, std::string_view name); // the first; empty: none
// A URL without the brackets around it that some writers have: "<http://example.com/>".
std::string url_of(const Headers& headers, std::string_view name);
// "text/html; charset=x" -> "text/html"; empty for what the MIME Sniffing standard takes for no type at all.
std::string media_type(std::string_view content_type);

// The head of a record whose block has `length` bytes: the fields of another one but for those that are named (in lower
// case), then `more`. A value cannot hold a line end.
std::string record_head(const Headers& headers, std::initializer_list<std::string_view> dropped, const Headers& more,
                        std::uint64_t length);
std::string in_header(std::string_view value);

// Request header fields that identify the requester. They are sent, and left out of the archive: Cookie, Authorization,
// Proxy-Authorization and those that `more` names, with commas or spaces between them.
class OmittedHeaders {
public:
  explicit OmittedHeaders(std::string_view more = {});
  bool contain(std::string_view name) const; // in any case of letters

private:
  std::set<std::string> names_{"authorization", "cookie", "proxy-authorization"};
};

} // namespace holdfast::warc
