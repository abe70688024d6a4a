#pragma once
// URLs: parsing of handwritten and found ones, one canonical spelling. Pure functions and values, any thread.

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

  std::string origin() const; // "https://example.com:8443", the port only if it is not the scheme's default
  std::string target() const; // "/path?query", as a request names it
};

// Returns true if what follows "#" names a page of its own ("#/second", "#!second"), not a place in one.
bool is_route(std::string_view fragment);

// Parts of any URL or reference by RFC 3986. Missing parts are empty.
struct UrlParts {
  std::string_view scheme, authority, path, query, fragment;
  bool has_authority{false}, has_query{false}, has_fragment{false};
};
UrlParts split_url(std::string_view url);

// "user:password@host:port" without its marks; an IPv6 address is a host with its brackets.
struct Authority {
  std::string_view login, host, port;
  std::string_view bare_host() const; // without brackets
};
Authority split_authority(std::string_view authority);

bool is_web_url(std::string_view url); // http(s) with a host

// Returns the canonical host for input of users: "Example.com", "[::1]", also with a port behind it. nullopt: not a
// host.
std::optional<std::string> host_named(std::string_view text);

// "/a/./b/../c" -> "/a/c" (RFC 3986, 5.2.4; empty segments count as segments). `path` is "" or begins with "/".
std::string without_dot_segments(std::string_view path);

inline constexpr std::size_t kLongestUrl = 8192; // bytes

// Parses one URL as typed or pasted: surrounding blanks are trimmed, spaces and non-ASCII characters are
// percent-encoded as browsers do, and "\" up to the query is "/". Throws Error(refused) naming the text and what is
// wrong with it: no scheme, a scheme other than http and https, no host, user name or password inside, control
// characters, longer than kLongestUrl.
Url parse_url(std::string_view text);

// Parses like parse_url, but returns nullopt instead of an error; for hostile input such as hook output.
std::optional<Url> try_parse_url(std::string_view text) noexcept;

// "example.com" -> "example.com"; shortens nothing else. Host as a directory name: only [a-z0-9.-_], never "." or "..",
// with ":" of IPv6 written "_" and the port appended as "_8080" when it is not the scheme's default.
std::string host_directory(const Url& url);

} // namespace holdfast::base
