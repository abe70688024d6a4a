#pragma once
// What signs a browser in: cookies, storage, credentials, headers, and how it calls itself. Plain values; pure
// functions; any thread. As text it is Playwright's storage state, with additions:
//   {"cookies": [{"name", "value", "domain", "path", "expires", "httpOnly", "secure", "sameSite"}],
//    "origins": [{"origin", "localStorage": [{"name", "value"}], "indexedDB": [...]}],
//    "httpCredentials": [{"origin", "username", "password"}], "headers": [{"origin", "name", "value"}],
//    "userAgent": "", "language": "", "timeZone": ""}
// No error quotes a value.

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::persona {

struct Cookie {
  std::string name, value, domain, path{"/"};
  double expires{-1}; // seconds since 1970; below 0: with the browser
  bool http_only{false}, secure{false};
  std::string same_site{}; // Strict, Lax, None; "": the site did not say
  bool is_same(const Cookie& other) const { return name == other.name && domain == other.domain && path == other.path; }
  bool operator==(const Cookie&) const = default;
};
struct Origin {
  std::string origin;
  std::vector<std::pair<std::string, std::string>> local_storage;
  nlohmann::json indexed_db = nlohmann::json::array(); // as Playwright has it
  bool operator==(const Origin&) const = default;
};
struct Credentials {
  std::string origin, username, password; // origin "": any
  bool operator==(const Credentials&) const = default;
};
struct Header {
  std::string origin, name, value;
  bool operator==(const Header&) const = default;
};

struct State {
  std::vector<Cookie> cookies;
  std::vector<Origin> origins;
  std::vector<Credentials> credentials;
  std::vector<Header> headers;
  std::string user_agent, language, time_zone;

  // Throws Error(refused) that begins with `where`. What no browser would take is left out and described in
  // `left_out`: a cookie with a control character in it, for example.
  static State parse(std::string_view text, const std::string& where, std::vector<std::string>& left_out);
  std::string text() const;
  bool operator==(const State&) const = default;
};

// Netscape's format, as wget and curl read it.
std::string cookies_txt(const State& state);
// Throws Error(refused) that names the line if it is not in Netscape's format.
State parse_cookies_txt(std::string_view text, const std::string& where, std::vector<std::string>& left_out);

// Adds the cookie if a browser would take it, else says so in `left_out`.
void add_cookie(State& state, Cookie cookie, std::vector<std::string>& left_out);

// Keeps what belongs to these hosts, to hosts below them and to those above them. No hosts: everything.
void keep_hosts(State& state, const std::vector<std::string>& hosts);

// What a capture changed, `before` -> `after`, is changed in `current` too, unless another capture has changed the same
// cookie or origin meanwhile, and only on sites that `before` has something of. True if `current` is another now.
bool apply_changes(State& current, const State& before, const State& after);
// Cookies, storage and credentials of the origins of `fresh`, a new sign-in, replace those of `state`. The rest stays.
void renew(State& state, State fresh);

// What must not stand in the archive: passwords, headers, cookies, and what looks like a token in its storage, each
// also in the parts that a site may show alone. Words and numbers, such as the name of a theme, are none.
std::vector<std::string> secrets_of(const State& state);

} // namespace holdfast::persona
