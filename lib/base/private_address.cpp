// Which addresses are not public: the special-purpose registries of IPv4 (RFC 6890 and later) and IPv6.

#include "lib/base/url.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <string>

namespace holdfast::base {

namespace {

struct RangeV4 {
  std::uint32_t network;
  int prefix_length;
};

constexpr std::uint32_t v4(unsigned a, unsigned b, unsigned c, unsigned d) { return a << 24 | b << 16 | c << 8 | d; }

// clang-format off
constexpr std::array kNotPublicV4 = std::to_array<RangeV4>({
    {v4(0, 0, 0, 0), 8},        // "this network"; 0.0.0.0 reaches the machine itself
    {v4(10, 0, 0, 0), 8},       // private
    {v4(100, 64, 0, 0), 10},    // shared by carriers (RFC 6598)
    {v4(127, 0, 0, 0), 8},      // loopback
    {v4(169, 254, 0, 0), 16},   // link-local; metadata services of clouds
    {v4(172, 16, 0, 0), 12},    // private
    {v4(192, 0, 0, 0), 24},     // protocol assignments
    {v4(192, 0, 2, 0), 24},     // documentation
    {v4(192, 88, 99, 0), 24},   // 6to4 relays, withdrawn
    {v4(192, 168, 0, 0), 16},   // private
    {v4(198, 18, 0, 0), 15},    // benchmarks
    {v4(198, 51, 100, 0), 24},  // documentation
    {v4(203, 0, 113, 0), 24},   // documentation
    {v4(224, 0, 0, 0), 4},      // multicast
    {v4(240, 0, 0, 0), 4},      // reserved, broadcast
});
// clang-format on

bool is_private_v4(std::uint32_t address) {
  for (const RangeV4& range : kNotPublicV4) {
    if ((address ^ range.network) >> (32 - range.prefix_length) == 0) return true;
  }
  return false;
}

bool is_private_v6(const in6_addr& address) {
  const auto group = [&](std::size_t index) -> unsigned {
    return static_cast<unsigned>(address.s6_addr[2 * index] << 8 | address.s6_addr[2 * index + 1]);
  };
  const auto embedded_v4 = [&](std::size_t index) { return group(index) << 16 | group(index + 1); };
  const auto zero_between = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      if (group(i) != 0) return false;
    }
    return true;
  };

  // Addresses that only wrap an IPv4 address are as public as that one.
  if (zero_between(0, 5) && group(5) == 0xFFFF) return is_private_v4(embedded_v4(6));                     // mapped
  if (group(0) == 0x64 && group(1) == 0xFF9B && zero_between(2, 6)) return is_private_v4(embedded_v4(6)); // NAT64
  if (group(0) == 0x2002) return is_private_v4(embedded_v4(1));                                           // 6to4
  // Everything public is in 2000::/3: loopback, fc00::/7, fe80::/10, ff00::/8 and 64:ff9b:1::/48 are outside.
  if (group(0) >> 13 != 1) return true;
  if (group(0) == 0x2001 && group(1) < 0x0200) return true;  // protocol assignments: Teredo, ORCHID, benchmarks
  if (group(0) == 0x2001 && group(1) == 0x0DB8) return true; // documentation
  if (group(0) == 0x3FFF && group(1) < 0x1000) return true;  // documentation (RFC 9637)
  // ISATAP hides an IPv4 address in the last half of any prefix.
  if ((group(4) & ~0x0200U) == 0 && group(5) == 0x5EFE) return is_private_v4(embedded_v4(6));
  return false;
}

} // namespace

bool is_private_address(std::string_view address) {
  // "fe80::1%eth0": a zone only makes sense on this machine.
  if (address.find('%') != std::string_view::npos) return true;
  const std::string text(address);
  in_addr ipv4{};
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return is_private_v4(ntohl(ipv4.s_addr));
  in6_addr ipv6{};
  if (inet_pton(AF_INET6, text.c_str(), &ipv6) == 1) return is_private_v6(ipv6);
  return true; // not an address at all: nothing we could vouch for
}

} // namespace holdfast::base
