#pragma once
// Names of machines, and their resolution for the private-address rule, which blocks: call it on a side thread.

#include <string>
#include <vector>

namespace holdfast::base {

// This machine's.
std::string own_host_name();

// Addresses a host name resolves to, as text. Throws Error(refused) if the name does not exist, Error(temporary) if its
// name servers do not say, and Error(unavailable) if this machine has no name server that answers.
std::vector<std::string> resolve_host(const std::string& host);

// Whether one of this machine's name servers answers at all; a few seconds if none does.
bool name_server_answers();

// Which of its addresses is not public, in words for people; "": none. Throws as resolve_host does.
std::string private_address_of(const std::string& host);

// What lets a private address be archived, for people.
inline constexpr const char* kAllowPrivateHint =
    "Set urls.allow_private (HOLDFAST_URLS_ALLOW_PRIVATE) to true to archive sites of your own network.";

} // namespace holdfast::base
