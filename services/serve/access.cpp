#include "services/serve/access.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/token.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace holdfast::serve {

namespace {

constexpr std::size_t kLongestToken = 200;
constexpr int kWrongInAMinute = 20; // tokens of one address
constexpr std::size_t kValidRemembered = 1000;
constexpr std::chrono::hours kLinkLives{24};

// Wrong cookies count separately: a browser sends an old one with every request.
std::string client_of(const Request& request) {
  return (request.authorization.empty() ? "cookies of " : "") + request.peer;
}

} // namespace

Role role_named(std::string_view name) {
  return name == "reader" ? Role::reader : name == "operator" ? Role::operator_ : Role::none;
}

Role RoleGroups::role_of(std::string_view groups) const {
  const auto given = base::split(std::string(groups), ",");
  const auto any = [&](const std::vector<std::string>& named) {
    return std::any_of(named.begin(), named.end(), [&](const auto& one) {
      return one == "*" || std::find(given.begin(), given.end(), one) != given.end();
    });
  };
  return any(operators) ? Role::operator_ : any(readers) ? Role::reader : Role::none;
}

Access::Access(const std::string& collection_id, Role guest, RoleGroups groups)
    : cookie_("holdfast_" +
              collection_id.substr(collection_id.size() - std::min<std::size_t>(collection_id.size(), 8))),
      guest_(guest), groups_(std::move(groups)), wrong_(kWrongInAMinute) {}

std::string Access::token_of(const Request& request) const {
  const std::string_view header = request.authorization;
  if (header.starts_with("Bearer ")) return std::string(base::trimmed(header.substr(7)));
  // Programs without bearer tokens take "http://any:TOKEN@host/".
  if (header.starts_with("Basic ")) {
    const auto pair = base::base64_decode(base::trimmed(header.substr(6)));
    const auto colon = pair.find(':');
    return colon == std::string::npos ? pair : pair.substr(colon + 1);
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

bool Access::was_valid(const std::string& token) const {
  const std::lock_guard lock(mutex_);
  return valid_.contains(base::sha256_hex(token));
}

std::chrono::seconds Access::wait(const Request& request) {
  if (!request.user.empty()) return std::chrono::seconds(0);
  if (request.authorization.empty() || was_valid(token_of(request))) return std::chrono::seconds(0);
  return wrong_.wait(client_of(request));
}

std::optional<Caller> Access::user(const Request& request) const {
  if (request.user.empty()) return std::nullopt;
  return Caller{"", groups_.role_of(request.groups), "", request.user};
}

Caller Access::caller(const Request& request, pg::Connection& connection) {
  if (auto found = user(request)) return *std::move(found);
  const auto token = token_of(request);
  if (token.empty()) return {"", request.authorization.empty() ? guest_ : Role::none, ""};
  if (token.size() > kLongestToken) return {};
  const bool hurried = !was_valid(token) && wrong_.wait(client_of(request)) > std::chrono::seconds(0);
  const auto owner = hurried ? std::nullopt : store::token_check(connection, token);
  if (owner) {
    const std::lock_guard lock(mutex_);
    if (valid_.size() >= kValidRemembered) valid_.clear();
    valid_.insert(base::sha256_hex(token));
    return {owner->name, role_named(owner->role), owner->files_key, "", owner->account};
  }
  wrong_.take(client_of(request));
  // A cookie may be older than its token.
  return {"", request.authorization.empty() ? guest_ : Role::none, ""};
}

std::string Access::make_link() {
  auto secret = base::random_hex32() + base::random_hex32();
  const std::lock_guard lock(mutex_);
  link_ = base::sha256_hex(secret);
  link_ends_ = std::chrono::steady_clock::now() + kLinkLives;
  return secret;
}

bool Access::use_link(const std::string& secret) {
  const std::lock_guard lock(mutex_);
  if (link_.empty() || base::sha256_hex(secret) != link_ || std::chrono::steady_clock::now() > link_ends_) return false;
  link_.clear();
  return true;
}

std::string Access::cookie(const Request& request, const std::string& token) const {
  const bool secure = request.origin.starts_with("https://"); // a proxy speaks TLS for us
  return cookie_ + "=" + token +
         "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" + (token.empty() ? "0" : std::to_string(kSignedIn.count())) +
         (secure ? "; Secure" : "");
}

bool is_cross_site(const Request& request) {
  if (!request.fetch_site.empty()) return request.fetch_site != "same-origin" && request.fetch_site != "none";
  if (request.origin.empty()) return false; // no browser
  const auto scheme = request.origin.find("://");
  return scheme == std::string::npos || request.origin.substr(scheme + 3) != request.authority;
}

namespace ip = boost::asio::ip;

namespace {

ip::address plain_address(const ip::address& address) {
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return mapped ? ip::address(ip::make_address_v4(ip::v4_mapped, address.to_v6())) : address;
}

// An entry of X-Forwarded-For; some proxies write a port behind the address.
std::optional<ip::address> address_in(std::string_view entry) {
  boost::system::error_code error;
  auto address = ip::make_address(std::string(entry), error);
  if (error && entry.starts_with('['))
    address = ip::make_address(std::string(entry.substr(1, entry.find(']') - 1)), error);
  if (error) address = ip::make_address_v4(std::string(entry.substr(0, entry.find(':'))), error);
  return error ? std::nullopt : std::optional(plain_address(address));
}

} // namespace

TrustedProxies::TrustedProxies(std::string_view text, const std::string& setting) {
  constexpr std::string_view kBetween = ", \t";
  while ((text = text.substr(std::min(text.find_first_not_of(kBetween), text.size()))).size() > 0) {
    const std::string one(text.substr(0, text.find_first_of(kBetween)));
    text.remove_prefix(one.size());
    const bool network = one.find('/') != std::string::npos;
    boost::system::error_code error, error6;
    const auto four = ip::make_network_v4(network ? one : one + "/32", error);
    const auto six = ip::make_network_v6(network ? one : one + "/128", error6);
    if (error && error6)
      throw base::Error(base::ErrorClass::configuration,
                        setting + ": \"" + one + "\" is neither an address nor a network",
                        setting + ": 127.0.0.1, 10.0.0.0/8, ::1");
    if (!error) four_.push_back(four.canonical());
    if (error) six_.push_back(six.canonical());
  }
}

bool TrustedProxies::contains(const Address& address) const {
  const auto plain = plain_address(address);
  if (plain.is_v4())
    return std::any_of(four_.begin(), four_.end(), [&](const auto& network) {
      return ip::make_network_v4(plain.to_v4(), network.prefix_length()).canonical() == network;
    });
  return std::any_of(six_.begin(), six_.end(), [&](const auto& network) {
    return ip::make_network_v6(plain.to_v6(), network.prefix_length()).canonical() == network;
  });
}

ip::address TrustedProxies::client(const Address& peer, std::string_view forwarded_for) const {
  auto client = peer;
  while (contains(client) && !forwarded_for.empty()) {
    const auto comma = forwarded_for.rfind(',');
    const auto begin = comma == std::string_view::npos ? 0 : comma + 1;
    const auto address = address_in(base::trimmed(forwarded_for.substr(begin)));
    if (!address) break;
    client = *address;
    forwarded_for = forwarded_for.substr(0, comma == std::string_view::npos ? 0 : comma);
  }
  return client;
}

std::string peer_of(const ip::address& address) {
  if (!address.is_v6() || address.to_v6().is_v4_mapped() || address.is_loopback()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return ip::make_address_v6(bytes).to_string();
}

} // namespace holdfast::serve
