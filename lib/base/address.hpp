#pragma once
// Names of machines, and their resolution for the private-address rule, which blocks: call it on a side thread.

#include <string>
#include <vector>

namespace holdfast::base {

std::string own_host_name();

// Returns the addresses of a host name, as text. Throws Error(refused) if the name does not exist, Error(temporary) if
// its name servers do not answer, and Error(unavailable) if this machine has no name server that answers.
std::vector<std::string> resolve_host(const std::string& host);

// Returns true if one of this machine's name servers answers at all; a few seconds if none does.
bool name_server_answers();

// Returns which of the host's addresses is not public, as a sentence; "" if all are. Throws as resolve_host does.
std::string private_address_of(const std::string& host);

// Hint for users: how to allow private addresses.
inline constexpr const char* kAllowPrivateHint =
    "Set urls.allow_private (HOLDFAST_URLS_ALLOW_PRIVATE) to true to archive sites of your own network.";

} // namespace holdfast::base
