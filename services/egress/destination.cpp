#include "services/egress/destination.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"

#include <algorithm>

namespace holdfast::egress {

namespace {

// Returns which of its addresses is private, in words; empty: none.
std::string private_part(const std::string& host, const std::vector<std::string>& addresses) {
  if (base::is_private_host(host)) return "\"" + host + "\" is not a public host";
  const auto found = std::find_if(addresses.begin(), addresses.end(), base::is_private_address);
  return found == addresses.end() ? "" : "\"" + host + "\" resolves to " + *found + ", which is not a public address";
}

bool is_private_page(const std::string& host, const Resolve& resolve) {
  if (base::is_private_host(host)) return true;
  try {
    return !private_part(host, resolve(host)).empty();
  } catch (const base::Error&) {
    return false;
  }
}

} // namespace

Ports parse_ports(std::string_view text, const std::string& setting) {
  Ports ports;
  for (const auto& one : base::split(text, ", ")) {
    const auto dash = std::min(one.find('-'), one.size());
    const auto first = base::parse_number<std::uint16_t>(std::string_view(one).substr(0, dash)).value_or(0);
    const auto last = dash == one.size()
                          ? first
                          : base::parse_number<std::uint16_t>(std::string_view(one).substr(dash + 1)).value_or(0);
    if (first == 0 || last < first)
      throw base::Error(base::ErrorClass::configuration,
                        setting + ": \"" + one + "\" is neither a port nor a range of ports",
                        setting + ": 80, 443, 8000-8999");
    ports.emplace_back(first, last);
  }
  return ports;
}

Destination judge(const std::string& host, std::uint16_t port, const Asker& page, const Rules& rules) {
  const auto& [allow_private, resolve, ports] = rules;
  Destination result;
  const bool open = ports.empty() || (host == page.host && port == page.port) ||
                    std::any_of(ports.begin(), ports.end(),
                                [&](const auto& range) { return range.first <= port && port <= range.second; });
  if (!open) {
    result.refused = "port " + std::to_string(port) + " is not in hook.ports";
    return result;
  }
  if (!allow_private && base::is_private_host(host)) { // without a question to any name server
    result.refused = private_part(host, {});
    return result;
  }
  try {
    result.addresses = resolve(host);
  } catch (const base::Error& error) {
    result.unreachable =
        error.error_class() == base::ErrorClass::refused ? "the host name does not resolve" : error.what();
    result.machine = error.error_class() == base::ErrorClass::unavailable;
    return result;
  }
  const auto found = private_part(host, result.addresses);
  if (found.empty()) return result;
  if (!allow_private || (!page.host.empty() && page.host != host && !is_private_page(page.host, resolve)))
    result.refused = found;
  return result;
}

} // namespace holdfast::egress
