#pragma once
// Hosts of URLs: their one canonical spelling, and which are not public. Pure, any thread; no name is resolved here
// (that is private_address_of in address.hpp, a blocking call).

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::base {

// "EXAMPLE.com" -> "example.com", "bücher.example" -> "xn--bcher-kva.example", "0x7f.1" -> "127.0.0.1",
// "[0:0::1]" -> "::1". nullopt, and what is wrong in `problem`, if no resolver should ever see it.
std::optional<std::string> canonical_host(std::string_view written, std::string& problem);
std::optional<std::string> canonical_host(std::string_view written);

// "::1" -> "[::1]"; other hosts are the same in a URL.
std::string host_in_url(std::string_view host);

// Returns true if the host itself names a place that is not public: an address literal (every spelling that inet_aton
// accepts, IPv4 inside IPv6 too) in a private, loopback, link-local, multicast, documentation or unspecified range, or
// a name that never leaves the machine or the site ("localhost", "*.localhost", "*.localdomain", "*.local",
// "*.internal", "*.home.arpa", no dot at all), or no valid host.
bool is_private_host(std::string_view host);

// Returns true if an address in text form (as getnameinfo prints it) is not a public unicast address.
bool is_private_address(std::string_view address);

} // namespace holdfast::base
