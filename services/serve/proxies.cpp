#include "services/serve/proxies.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/characters.hpp"

#include <algorithm>
#include <optional>

namespace holdfast::serve {

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

} // namespace holdfast::serve
