#pragma once
// Reverse proxies whose header X-Forwarded-For is believed. Immutable; any thread.

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::serve {

class TrustedProxies {
public:
  using Address = boost::asio::ip::address;

  TrustedProxies() = default; // none
  // Addresses and networks, separated by commas or spaces: "127.0.0.1, 10.0.0.0/8, ::1". Throws Error(configuration)
  // naming `setting`.
  TrustedProxies(std::string_view text, const std::string& setting);

  bool contains(const Address& address) const;
  // The client behind a connection from `peer`. Each proxy appends the address that it sees to the header, so the
  // client is the last one that is no trusted proxy; what stands before it is the client's own claim.
  Address client(const Address& peer, std::string_view forwarded_for) const;

private:
  std::vector<boost::asio::ip::network_v4> four_;
  std::vector<boost::asio::ip::network_v6> six_;
};

} // namespace holdfast::serve
