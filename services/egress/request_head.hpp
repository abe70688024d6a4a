#pragma once
// The head of a request to a proxy, and of a response that goes back through it. Pure text, any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::egress {

struct RequestHead {
  std::string method;
  std::string host; // lower case; of an IPv6 address without brackets
  std::uint16_t port{0};
  bool tunnel{false};    // CONNECT
  std::string forwarded; // the head for the server, in origin form and with "Connection: close"; empty for a tunnel
};

// Reads a head that ends with its empty line. Throws Error(configuration) for what no proxy takes: another form than
// CONNECT host:port or http://host/..., more than one Host that differs from the target.
RequestHead parse_request(std::string_view head);

// The head of a response, made to say that the connection ends with it; interim heads (100 to 199, but for 101) and
// what is no head at all are left as they are.
std::string closing_response(std::string_view head);
bool is_interim(std::string_view head);

} // namespace holdfast::egress
