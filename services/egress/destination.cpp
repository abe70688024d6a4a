#include "services/egress/destination.hpp"

#include "lib/base/error.hpp"
#include "lib/base/url.hpp"

#include <algorithm>

namespace holdfast::egress {

namespace {

// Which of its addresses is private, in words; empty: none.
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

Destination judge(const std::string& host, const std::string& page_host, bool allow_private, const Resolve& resolve) {
  Destination result;
  if (!allow_private && base::is_private_host(host)) { // without a question to any name server
    result.refused = private_part(host, {});
    return result;
  }
  try {
    result.addresses = resolve(host);
  } catch (const base::Error& error) {
    result.unreachable =
        error.error_class() == base::ErrorClass::refused ? "the host name does not resolve" : error.what();
    return result;
  }
  const auto found = private_part(host, result.addresses);
  if (found.empty()) return result;
  if (!allow_private || (!page_host.empty() && page_host != host && !is_private_page(page_host, resolve)))
    result.refused = found;
  return result;
}

} // namespace holdfast::egress
