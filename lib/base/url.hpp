#pragma once
// URLs: parsing what people and pages write, one canonical spelling, and which targets are refused. Pure functions and
// values, any thread; no name is resolved here (that is private_address_of in address.hpp, a blocking call).

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::base {

// A canonical absolute http(s) URL. Two URLs that must be archived once have the same `text`:
// scheme and host in lower case, IDN host as punycode, default port dropped, and a fragment that is no route, "." and
// ".." resolved, percent-encoding normalised (unreserved characters decoded, hex in upper case), empty path "/", user
// info kept out. The query is never reordered: order can matter to a server. An IPv4 address in any spelling of
// inet_aton becomes four decimal numbers, an IPv6 address its shortest form.
struct Url {
  std::string text;      // canonical, ASCII only
  std::string scheme;    // "http" or "https"
  std::string host;      // lower case, punycode; IPv6 without brackets
  unsigned short port{}; // explicit or the scheme's default
  std::string path;      // starts with "/"
  bool fragment_dropped{false};
};

// Whether what follows "#" names a page of its own ("#/second", "#!second"), not a place in one.
bool is_route(std::string_view fragment);

// Any URL or reference, taken apart as RFC 3986 says. What is not there is empty.
struct UrlParts {
  std::string_view scheme, authority, path, query, fragment;
  bool has_authority{false}, has_query{false}, has_fragment{false};
};
UrlParts split_url(std::string_view url);

// "/a/./b/../c" -> "/a/c" (RFC 3986, 5.2.4; empty segments count as segments). `path` is "" or begins with "/".
std::string without_dot_segments(std::string_view path);

inline constexpr std::size_t kLongestUrl = 8192; // bytes

// Parses one URL as typed or pasted: surrounding blanks are trimmed, spaces and non-ASCII characters are
// percent-encoded as browsers do, and "\" up to the query is "/". Throws Error(refused) naming the text and what is
// wrong with it: no scheme, a scheme other than http and https, no host, user name or password inside, control
// characters, longer than kLongestUrl.
Url parse_url(std::string_view text);

// As parse_url, but nullopt instead of an error; for hostile input such as hook output.
std::optional<Url> try_parse_url(std::string_view text) noexcept;

// True if the host itself names a place that is not public: an address literal (every spelling that inet_aton accepts,
// IPv4 inside IPv6 too) in a private, loopback, link-local, multicast, documentation or unspecified range, or a name
// that never leaves the machine or the site ("localhost", "*.localhost", "*.localdomain", "*.local", "*.internal",
// "*.home.arpa", no dot at all), or no valid host.
bool is_private_host(std::string_view host);

// True if an address in text form (as getnameinfo prints it) is not a public unicast address.
bool is_private_address(std::string_view address);

// "example.com" -> "example.com"; shortens nothing else. Host as a directory name: only [a-z0-9.-_], never "." or "..",
// with ":" of IPv6 written "_" and the port appended as "_8080" when it is not the scheme's default.
std::string host_directory(const Url& url);

} // namespace holdfast::base
