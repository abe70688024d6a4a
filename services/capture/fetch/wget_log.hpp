#pragma once
// Parses wget's log. Pure functions.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::capture {

// A request in the log of wget (with --server-response).
struct WgetExchange {
  std::string url;
  bool retry{false};
  int status{0};
  std::string reason; // beside the status
  std::vector<std::pair<std::string, std::string>> headers;
  std::string redirect; // where it leads
  std::string saved_to;
  bool complete{false};
  std::string error;
  bool unreachable{false}; // there was no connection, so no other client gets one

  std::string header(std::string_view name) const;
};

std::vector<WgetExchange> parse_wget_log(std::string_view log);

// The exchange that brought the page itself: the first, after its redirects and second tries. Returns how many lead to
// it, itself included.
std::size_t main_exchange(std::vector<WgetExchange>& exchanges);

} // namespace holdfast::capture
