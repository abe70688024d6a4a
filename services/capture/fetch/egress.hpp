#pragma once
// The worker's egress proxy (services/egress) as the built-in hooks see it. It judges addresses, so with it they need
// no judgement of their own; without it HOLDFAST_EGRESS is not set. What it answers itself must not be taken for the
// page.

#include "services/capture/hook.hpp"

#include <string>
#include <vector>

namespace holdfast::capture {

inline constexpr const char* kEgressHeader = "x-holdfast-egress"; // of the proxy's own answers: its key, and why

std::string egress_proxy(); // its URL; empty: there is none

// A proxy of the environment (http_proxy, https_proxy), where the worker has none of its own. The login is apart,
// because command lines are public.
struct OtherProxy {
  std::string scheme; // of the pages that it is for
  std::string url;    // without login
  std::string user, password;
};
std::vector<OtherProxy> other_proxies();
// The answer to a proxy that asks for a login, as Fetch.continueWithAuth takes it.
Json proxy_login();

// Why the proxy has answered in place of the server; empty: it has not. A site that sends its header lacks its key.
std::string egress_reason(const Headers& headers);
// Why it gives no connection for an https URL, which Chromium does not say; empty: it does, or there is no proxy.
// Blocking; asks the proxy for another connection.
std::string egress_reason(const std::string& url);

// The hook's end for that reason: a page that cannot be fetched, or one that must not be.
Ending egress_ending(const std::string& reason, Json detail = nullptr);

} // namespace holdfast::capture
