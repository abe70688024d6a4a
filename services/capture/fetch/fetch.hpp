#pragma once
// A bounded HTTP exchange: limited body, every redirect recorded and checked. Used for headers, for icons, and for the
// page itself when no other plugin has it. Blocking; the hook's alarm ends long ones.

#include "lib/http/client.hpp"
#include "services/capture/hook.hpp"

#include <string>

namespace holdfast::capture {

struct FetchOptions {
  bool head{false};          // HEAD instead of GET
  std::size_t most_bytes{0}; // of the body; 0: only the headers
  std::string accept{"*/*"};
  double share{1}; // of the time that is left, to wait for a byte
};

struct Response : http::Response {
  std::string url; // after redirects
  Json redirects;  // of {url, status, location}
};

// Follows redirects to the final response; an error status is a response like any other. Throws Ending if there is
// none: unreachable, if it is the page's URL and no other client could get one either.
Response fetch(Job& job, const std::string& url, const FetchOptions& options);

// Returns true if a host, by its name or by the addresses that it resolves to now, is a machine inside.
bool is_private(const std::string& host);

// A page on the internet must not steer us to a machine inside. If the page itself is inside, the operator has allowed
// that. Throws Ending.
void refuse_private(const std::string& page_url, const std::string& url);

} // namespace holdfast::capture
