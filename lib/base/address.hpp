#pragma once
// Names of machines, and their resolution for the private-address rule, which blocks: call it on a side thread.

#include <string>
#include <vector>

namespace holdfast::base {

// This machine's.
std::string own_host_name();

// Addresses a host name resolves to, as text. Throws Error(temporary) if the resolver says "try again" and
// Error(refused) if the name does not exist.
std::vector<std::string> resolve_host(const std::string& host);

// Which of its addresses is not public, in words for people; "": none. Throws as resolve_host does.
std::string private_address_of(const std::string& host);

// What lets a private address be archived, for people.
inline constexpr const char* kAllowPrivateHint =
    "Set urls.allow_private (HOLDFAST_URLS_ALLOW_PRIVATE) to true to archive sites of your own network.";

} // namespace holdfast::base
