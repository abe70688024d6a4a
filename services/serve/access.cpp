#include "services/serve/access.hpp"

#include "lib/base/characters.hpp"
#include "lib/store/token.hpp"

#include <algorithm>
#include <string_view>

namespace holdfast::serve {

namespace {

constexpr std::size_t kLongestToken = 200;
constexpr const char* kMonth = "2592000"; // seconds

// "TmFtZTpzZWNyZXQ=" -> "Name:secret"; empty if it is no base64.
std::string base64_decoded(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<unsigned>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

} // namespace

Role role_named(std::string_view name) {
  return name == "reader" ? Role::reader : name == "operator" ? Role::operator_ : Role::none;
}

Access::Access(const std::string& collection_id, Role guest)
    : cookie_("holdfast_" +
              collection_id.substr(collection_id.size() - std::min<std::size_t>(collection_id.size(), 8))),
      guest_(guest) {}

std::string Access::token_of(const Request& request) const {
  const std::string_view header = request.authorization;
  if (header.starts_with("Bearer ")) return std::string(base::trimmed(header.substr(7)));
  // Programs that know no bearer tokens take "http://any:TOKEN@host/".
  if (header.starts_with("Basic ")) {
    const auto pair = base64_decoded(base::trimmed(header.substr(6)));
    return pair.substr(std::min(pair.find(':'), pair.size() - 1) + 1);
  }
  for (std::string_view rest = request.cookie; !rest.empty();) {
    const auto semicolon = std::min(rest.find(';'), rest.size());
    const auto one = base::trimmed(rest.substr(0, semicolon));
    if (one.size() > cookie_.size() && one.starts_with(cookie_) && one[cookie_.size()] == '=')
      return std::string(one.substr(cookie_.size() + 1));
    rest.remove_prefix(std::min(semicolon + 1, rest.size()));
  }
  return {};
}

Caller Access::caller(const Request& request, pg::Connection& connection) const {
  const auto token = token_of(request);
  if (token.empty()) return {"", request.authorization.empty() ? guest_ : Role::none};
  if (token.size() > kLongestToken) return {};
  const auto owner = store::token_check(connection, token);
  if (owner) return {owner->name, role_named(owner->role)};
  // A cookie may be older than its token.
  return {"", request.authorization.empty() ? guest_ : Role::none};
}

std::string Access::cookie(const Request& request, const std::string& token) const {
  const bool secure = request.origin.starts_with("https://"); // a proxy speaks TLS for us
  return cookie_ + "=" + token + "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" + (token.empty() ? "0" : kMonth) +
         (secure ? "; Secure" : "");
}

bool is_cross_site(const Request& request) {
  if (!request.fetch_site.empty()) return request.fetch_site != "same-origin" && request.fetch_site != "none";
  if (request.origin.empty()) return false; // no browser
  const auto scheme = request.origin.find("://");
  return scheme == std::string::npos || request.origin.substr(scheme + 3) != request.authority;
}

} // namespace holdfast::serve
