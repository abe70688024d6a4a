#pragma once
// State of a signed-in browser: cookies, storage, credentials and headers. Plain values; pure functions; any thread. As
// text it is Playwright's storage state, with additions:
//   {"cookies": [{"name", "value", "domain", "path", "expires", "httpOnly", "secure", "sameSite"}],
//    "origins": [{"origin", "localStorage": [{"name", "value"}], "indexedDB": [...]}],
//    "httpCredentials": [{"origin", "username", "password"}], "headers": [{"origin", "name", "value"}]}
// Members have the names of that text. No error quotes a value.

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::persona {

struct Cookie {
  std::string name, value, domain, path{"/"};
  double expires{-1}; // seconds since 1970; below 0: with the browser
  bool httpOnly{false}, secure{false};
  std::string sameSite{}; // Strict, Lax, None; "": not set by the site
  bool is_same(const Cookie& other) const { return name == other.name && domain == other.domain && path == other.path; }
  std::string host() const { return domain.starts_with('.') ? domain.substr(1) : domain; }
  bool operator==(const Cookie&) const = default;
};
struct OfOrigin {
  std::string origin;
  bool is_same(const OfOrigin& other) const { return origin == other.origin; }
  std::string host() const;
  bool operator==(const OfOrigin&) const = default;
};
struct Item {
  std::string name, value;
  bool operator==(const Item&) const = default;
};
struct Origin : OfOrigin {
  std::vector<Item> localStorage{};
  nlohmann::json indexedDB = nlohmann::json::array(); // as Playwright has it
  bool operator==(const Origin&) const = default;
};
struct Credentials : OfOrigin { // origin "": any
  std::string username, password;
  bool operator==(const Credentials&) const = default;
};
struct Header : OfOrigin {
  std::string name, value;
  bool operator==(const Header&) const = default;
};

struct State {
  std::vector<Cookie> cookies{};
  std::vector<Origin> origins{};
  std::vector<Credentials> httpCredentials{};
  std::vector<Header> headers{};

  // Parses a state. Throws Error(refused) that begins with `where`. Parts that no browser would accept are left out and
  // described in `left_out`: a cookie with a control character in it, for example.
  static State parse(std::string_view text, const std::string& where, std::vector<std::string>& left_out);
  std::string text() const;
  bool operator==(const State&) const = default;
};

// Netscape's format, as wget and curl read it.
std::string cookies_txt(const State& state);
// Throws Error(refused) that names the line if it is not in Netscape's format.
State parse_cookies_txt(std::string_view text, const std::string& where, std::vector<std::string>& left_out);

// Adds the cookie if a browser would accept it, else a line to `left_out`.
void add_cookie(State& state, Cookie cookie, std::vector<std::string>& left_out);

// Keeps what belongs to these hosts, to hosts below them and to those above them, or to any. No hosts: everything.
void keep_hosts(State& state, const std::vector<std::string>& hosts);

// Applies the changes of a capture, `before` -> `after`, to `current`, unless another capture has changed the same
// cookie or origin meanwhile, and only on sites that `before` has something of. Returns true if `current` changed.
bool apply_changes(State& current, const State& before, const State& after);
// Cookies, storage and credentials of the origins of `fresh`, a new sign-in, replace those of `state`. The rest stays.
void renew(State& state, State fresh);

// Returns the texts that must not be archived: passwords, headers, cookies, and tokens in its storage, each also in the
// parts that a site may show alone. Words and numbers, such as the name of a theme, are not secrets.
std::vector<std::string> secrets_of(const State& state);

} // namespace holdfast::persona
