#include "lib/base/text/host.hpp"

#include "lib/base/embedded.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"

#include <arpa/inet.h>
#include <idn2.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::base {

namespace {

constexpr std::size_t kLongestHost = 253; // what DNS can carry
constexpr std::size_t kLongestLabel = 63;

std::vector<std::string_view> split_labels(std::string_view host) {
  std::vector<std::string_view> labels;
  while (true) {
    const auto dot = host.find('.');
    labels.push_back(host.substr(0, dot));
    if (dot == std::string_view::npos) return labels;
    host.remove_prefix(dot + 1);
  }
}

bool looks_like_number(std::string_view label) {
  if (label.empty()) return false;
  if (std::all_of(label.begin(), label.end(), is_digit)) return true;
  return label.size() >= 2 && label[0] == '0' && to_lower(label[1]) == 'x' &&
         std::all_of(label.begin() + 2, label.end(), [](char c) { return hex_value(c) >= 0; });
}

// Every spelling that inet_aton and browsers accept: "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1".
std::optional<std::string> parse_ipv4(std::string host) {
  if (host.ends_with('.')) host.pop_back(); // "127.0.0.1."
  in_addr binary{};
  if (::inet_aton(host.c_str(), &binary) == 0) return std::nullopt;
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &binary, text.data(), text.size());
}

std::optional<std::string> parse_ipv6(std::string_view literal) {
  in6_addr binary{};
  if (inet_pton(AF_INET6, std::string(literal).c_str(), &binary) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, &binary, text.data(), text.size());
}

// The mapping and the checks of UTS 46, non-transitional, as browsers do it.
std::optional<std::string> to_punycode(const std::string& host, std::string& problem) {
  char* output = nullptr;
  const int code = idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(host.c_str()),
                                  reinterpret_cast<std::uint8_t**>(&output), IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  const std::unique_ptr<char, decltype(&idn2_free)> owner(output, [](void* memory) { idn2_free(memory); });
  if (code == IDN2_OK) return lower_case(output);
  problem = std::string("its international host name is not valid (") + idn2_strerror(code) + ")";
  return std::nullopt;
}

// The special-purpose registries of IANA for IPv4 and IPv6, but for what they call globally reachable, and servers of
// clouds that give away credentials; one network a line.
struct Networks {
  std::vector<std::pair<std::uint32_t, int>> v4; // network, bits
  std::vector<std::pair<in6_addr, int>> v6;
};
const Networks& not_public() {
  static const Networks networks = [] {
    Networks read;
    for (std::string_view rest = embedded::not_public_txt; !rest.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto slash = line.find('/');
      const std::string network(line.substr(0, slash));
      const int bits = std::atoi(line.data() + slash + 1);
      in_addr v4{};
      in6_addr v6{};
      if (::inet_pton(AF_INET, network.c_str(), &v4) == 1)
        read.v4.emplace_back(ntohl(v4.s_addr), bits);
      else if (::inet_pton(AF_INET6, network.c_str(), &v6) == 1)
        read.v6.emplace_back(v6, bits);
    }
    return read;
  }();
  return networks;
}

bool is_private_v4(std::uint32_t address) {
  const auto& networks = not_public().v4;
  return std::any_of(networks.begin(), networks.end(),
                     [&](const auto& network) { return (address ^ network.first) >> (32 - network.second) == 0; });
}

bool is_within(const in6_addr& address, const in6_addr& network, int bits) {
  for (int bit = 0; bit < bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    if (((address.s6_addr[byte] ^ network.s6_addr[byte]) >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
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
  for (const auto& [network, bits] : not_public().v6)
    if (is_within(address, network, bits)) return true;
  // ISATAP hides an IPv4 address in the last half of any prefix.
  if ((group(4) & ~0x0200U) == 0 && group(5) == 0x5EFE) return is_private_v4(embedded_v4(6));
  return false;
}

} // namespace

std::optional<std::string> canonical_host(std::string_view written, std::string& problem) {
  const auto failed = [&](const char* reason) {
    problem = reason;
    return std::nullopt;
  };
  if (written.empty()) return failed("it has no host");
  if (written.size() > 8 * kLongestHost) return failed("its host name is too long");
  if (written.front() == '[') {
    if (written.back() != ']') return failed("the \"[\" of its address is never closed");
    if (auto address = parse_ipv6(written.substr(1, written.size() - 2))) return address;
    return failed("what stands between \"[\" and \"]\" is not an IPv6 address");
  }

  std::string host = percent_decode(written);
  if (std::any_of(host.begin(), host.end(), is_control)) return failed("its host name holds a control character");
  if (std::all_of(host.begin(), host.end(), is_ascii)) {
    host = lower_case(host);
  } else {
    const auto punycode = to_punycode(host, problem);
    if (!punycode) return std::nullopt;
    host = *punycode;
  }
  // Stricter than browsers, which let "!", "$", "'" and others pass: the host also names directories.
  const auto in_host_name = [](char c) { return is_alpha(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; };
  if (!std::all_of(host.begin(), host.end(), in_host_name)) {
    return failed("its host name holds a character that no host name has");
  }

  const auto labels = split_labels(host);
  const bool rooted = labels.size() > 1 && labels.back().empty(); // "example.com."
  if (looks_like_number(labels[labels.size() - (rooted ? 2 : 1)])) {
    if (auto address = parse_ipv4(host)) return address;
    return failed("its host is not a valid IPv4 address, nor can it be a name");
  }
  for (std::size_t i = 0; i < labels.size() - (rooted ? 1 : 0); ++i) {
    if (labels[i].empty()) return failed("its host name has an empty part");
    if (labels[i].size() > kLongestLabel) return failed("its host name has a part of more than 63 characters");
  }
  if (host.size() > kLongestHost + (rooted ? 1 : 0)) return failed("its host name is too long");
  return host;
}

std::optional<std::string> canonical_host(std::string_view written) {
  std::string problem;
  return canonical_host(written, problem);
}

std::string host_in_url(std::string_view host) {
  const bool bare_ipv6 = host.find(':') != host.npos && host.front() != '[';
  return bare_ipv6 ? "[" + std::string(host) + "]" : std::string(host);
}

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

bool is_private_host(std::string_view written) {
  const auto host = canonical_host(host_in_url(written));
  if (!host) return true; // nothing we could vouch for
  if (host->find(':') != std::string::npos) return is_private_address(*host);

  std::string_view name = *host;
  if (name.back() == '.') name.remove_suffix(1);
  const auto last_dot = name.rfind('.');
  if (last_dot == std::string_view::npos) return true; // "localhost", "intranet": the resolver adds its own domain
  if (looks_like_number(name.substr(last_dot + 1))) return is_private_address(name);
  // clang-format off
  for (const std::string_view suffix : {".localhost", ".local", ".internal", ".localdomain", ".home.arpa"}) {
    if (name.ends_with(suffix)) return true;
  }
  // clang-format on
  return false;
}

} // namespace holdfast::base
