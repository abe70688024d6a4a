#pragma once
// What is asked of an HTTP server, and what it has answered. Plain values.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::http {

// For AWS signature version 4 of the service "s3".
struct Signature {
  std::string region, key_id, secret;
};

inline constexpr std::size_t kMostBody = std::size_t{256} << 20;

struct Request {
  std::string method{"GET"}, url;   // http and https only
  std::vector<std::string> headers; // "Name: value"
  std::string_view body;            // sent with PUT and POST; lives until there is an answer
  std::string user_agent{"holdfast"};
  std::optional<Signature> signature;
  // False: an address that is not public is not connected to. What a URL leads to is judged by the address that is
  // really connected to, also after a redirect, so that no name can lead into the own network.
  bool allow_private{true};
  bool use_proxy{true}; // that of the environment; then the proxy's address is connected to, and the proxy decides
  bool check_certificates{true};
  bool compressed{false};                                   // the body may come compressed, and is unpacked
  int redirects{0};                                         // that are followed
  std::chrono::milliseconds timeout{0}, connect_timeout{0}; // 0: none, and libcurl's
  std::chrono::seconds silence{0};                          // without a byte, after which it is given up; 0: never
  const std::atomic<bool>* abandon{nullptr};                // ends it within a second or so once it is true
  std::size_t most_bytes{0}; // of the body; no more is awaited. 0: kMostBody, or it fails
  // Takes the body of a good answer instead of Response::body. What it throws ends the transfer and is thrown on.
  std::function<void(std::string_view)> sink;
};

struct Response {
  int status{0};     // 0: there was no answer
  std::string error; // why there was none; never the URL
  std::string body, etag;
  bool too_many_redirects{false};
  std::string refused; // the address that was not connected to
  std::optional<std::chrono::seconds> retry_after;

  bool good() const noexcept { return status >= 200 && status < 300; }
};

} // namespace holdfast::http
