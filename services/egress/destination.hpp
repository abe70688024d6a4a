#pragma once
// Whether a host may be asked, and at which addresses. Blocking where it resolves names; no state.

#include <functional>
#include <string>
#include <vector>

namespace holdfast::egress {

// Addresses of a name as text; throws as base::resolve_host does.
using Resolve = std::function<std::vector<std::string>(const std::string& host)>;

struct Destination {
  std::vector<std::string> addresses; // what is connected to: the name is not resolved again
  std::string refused;                // why it may not be asked; empty: it may
  std::string unreachable;            // why it cannot be: the name does not exist
};

// A name with a private address among its addresses is refused as a whole. `page_host`: of the page that asks, empty if
// there is none. With `allow_private`, a page that is private itself may ask private hosts; a public one may not.
Destination judge(const std::string& host, const std::string& page_host, bool allow_private, const Resolve& resolve);

} // namespace holdfast::egress
