#pragma once
// Decides whether a host may be connected to, and at which addresses. Blocking where it resolves names; no state.

#include "lib/base/address.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::egress {

// Addresses of a name as text; throws as base::resolve_host does.
using Resolve = std::function<std::vector<std::string>(const std::string& host)>;

// Ports and ranges of ports that are allowed, besides the page's own; empty: all.
using Ports = std::vector<std::pair<std::uint16_t, std::uint16_t>>;
// "80, 443, 8000-8999". Throws Error(configuration) naming `setting`.
Ports parse_ports(std::string_view text, const std::string& setting);

// Origin of a request: the host and port of a page's URL; without a host: hooks of no page.
struct Asker {
  std::string host;
  std::uint16_t port{0};
};

struct Destination {
  std::vector<std::string> addresses; // what is connected to: the name is not resolved again
  std::string refused;                // why it is not allowed; empty: it is
  std::string unreachable;            // why it cannot be: the name does not exist
  bool machine{false};                // ... and that lies with this machine
};

struct Rules {
  bool allow_private{false};
  Resolve resolve{base::resolve_host};
  Ports ports{};
};

// Decides about a host. A name with a private address among its addresses is refused as a whole. With `allow_private`,
// a page that is private itself may connect to private hosts; a public one may not. A port that is none of `ports` is
// refused, but for the page's own.
Destination judge(const std::string& host, std::uint16_t port, const Asker& page, const Rules& rules);

} // namespace holdfast::egress
