#pragma once
// The worker's egress proxy (services/egress) for the built-in hooks. It checks addresses, so with it they need no
// checks of their own; without it HOLDFAST_EGRESS is not set. Its own answers must not be taken for the page.

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
// Returns the answer to a proxy that requires a login, as Fetch.continueWithAuth takes it.
Json proxy_login(const std::string& origin);

// Returns why the proxy has answered in place of the server; empty: it has not. A site that sends its header lacks its
// key.
std::string egress_reason(const Headers& headers);
// Returns why it gives no connection for an https URL, which Chromium does not report; empty: it does, or there is no
// proxy. Blocking; requests another connection from the proxy.
std::string egress_reason(const std::string& url);

// The hook's end for that reason: a page that cannot be fetched, or one that must not be.
Ending egress_ending(const std::string& reason, Json detail = nullptr);

} // namespace holdfast::capture
