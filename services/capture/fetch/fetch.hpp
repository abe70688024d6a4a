#pragma once
// One bounded HTTP exchange by libcurl: limited body, every redirect recorded and judged. Used for headers, for icons,
// and for the page itself when no other plugin has it. libcurl is loaded at the first fetch, because most hooks need
// none and its libraries take longer to load than those hooks run. Blocking; the hook's alarm ends what takes too long.

#include "services/capture/hook.hpp"

#include <string>

namespace holdfast::capture {

struct FetchOptions {
  bool head{false};          // HEAD instead of GET
  std::size_t most_bytes{0}; // of the body; 0: only the headers
  std::string accept{"*/*"};
  double share{1}; // of the time that is left, to wait for a byte
};

struct Response {
  std::string url; // after redirects
  int status{0};
  std::string reason;
  Headers headers;
  Json redirects = Json::array(); // of {url, status, location}
  std::string body;
  bool truncated{false}; // the limit was met, or the connection broke off
};

// Follows redirects to the final response; an error status is a response like any other. Throws Ending if there is
// none: unreachable, if it is the page's URL and no other client could get one either.
Response fetch(Job& job, const std::string& url, const FetchOptions& options);

// Whether a host, by its name or by the addresses that it resolves to now, is a machine inside.
bool is_private(const std::string& host);

// A page on the internet must not steer us to a machine inside. If the page itself is inside, the operator has allowed
// that. Throws Ending.
void refuse_private(const std::string& page_url, const std::string& url);

} // namespace holdfast::capture
