#pragma once
// Addresses on which a server listens. Pure; any thread.

#include <cstdint>
#include <string>

namespace holdfast::serve {

// "127.0.0.1:8118", "[::1]:80", ":8118" (every address), "8118" (loopback).
struct Endpoint {
  std::string address;
  std::uint16_t port{0};
  bool loopback{true};
  std::string setting; // that names it
};
// Throws Error(configuration) naming `setting`.
Endpoint parse_endpoint(const std::string& text, const std::string& setting);
// Returns its URL for a browser of this machine: "http://localhost:8118/".
std::string url_of(const Endpoint& endpoint, std::uint16_t port);

} // namespace holdfast::serve
