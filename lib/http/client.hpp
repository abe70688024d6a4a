#pragma once
// Requests over libcurl that block until they are answered. Keeps connections open between them. Any thread; the
// destructor closes what is open.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::http {

// Request to an HTTP server, and its answer. Plain values.

// For AWS signature version 4 of the service "s3".
struct Signature {
  std::string region, key_id, secret;
};

// A part of a message (MIME), or one that holds others.
struct MailPart {
  std::string type, bytes; // "text/html; charset=utf-8"; or "multipart/related"
  std::string id{};        // of a picture, which the HTML names as cid:ID
  std::vector<MailPart> parts{};
};

// A message to a server of SMTP, at smtps://host or smtp://host. Its headers are those of the request.
struct Mail {
  std::string from, to, user, password; // user: empty: no login
  bool without_tls{false};              // smtp:// may stay unencrypted; else STARTTLS must succeed
  std::string ca_file{};                // certificates to trust; empty: those of the system
  std::vector<MailPart> parts{};
};

inline constexpr std::size_t kMostBody = std::size_t{256} << 20;

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method{"GET"}, url;   // http and https only, unless it is mail
  std::vector<std::string> headers; // "Name: value"
  std::string_view body;            // sent with PUT, POST and PATCH; lives until there is an answer
  std::string user_agent{"holdfast"};
  std::optional<Signature> signature;
  std::optional<Mail> mail; // instead of the body; the answer's status is SMTP's
  // False: connections to addresses that are not public are refused. The check uses the address of the real connection,
  // also after a redirect, so that no name can lead into the own network.
  bool allow_private{true};
  bool use_proxy{true}; // that of the environment; then the proxy's address is connected to, and the proxy decides
  // Proxy to use instead, through a tunnel, so that the server sees the request as it is.
  std::string proxy;
  bool check_certificates{true};
  std::optional<std::string> cookies; // a cookies.txt, or ""; a client keeps what servers set. None: no cookies
  bool compressed{false};             // the body may come compressed, and is unpacked
  int redirects{0};                   // that are followed
  std::chrono::milliseconds timeout{0}, connect_timeout{0}; // 0: none, and libcurl's
  std::chrono::seconds silence{0};                          // without a byte, after which it is given up; 0: never
  const std::atomic<bool>* abandon{nullptr};                // ends it within a second or so once it is true
  std::optional<std::size_t> most_bytes; // of the body; no more is awaited. None: kMostBody, or it fails
  bool broken_off{false};                // an answer that breaks off is one, if some of the body came
  // Receives the body of a good answer instead of Response::body. An exception ends the transfer and is thrown on.
  std::function<void(std::string_view)> sink;
};

struct Response {
  int status{0};        // 0: there was no answer
  std::string error;    // why there was none; never the URL
  bool is_final{false}; // and no client would get one: no such host, no connection, a certificate that none accepts
  std::string reason;   // "Not Found"
  Headers headers;      // of the last answer, also of a proxy that gives no tunnel
  std::string body;
  bool truncated{false}; // there was more of it
  bool too_many_redirects{false};
  std::string refused; // the address that was not connected to
  std::optional<std::chrono::seconds> retry_after;

  bool good() const noexcept { return status >= 200 && status < 300; }
  std::string header(std::string_view name) const; // the first of this name, which is in lower case
};

class Client {
public:
  Client(); // throws Error(system)
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Throws what Request::sink throws, never for what the network does.
  Response send(const Request& request);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Many requests at once on one thread, which owns and uses it, but for wake(). The destructor drops what is under way.
class Batch {
public:
  Batch(); // throws Error(system)
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // `body` is sent; `done` is called by step().
  void start(Request request, std::string body, std::function<void(const Response&)> done);
  std::size_t under_way() const noexcept;
  // Does what can be done, then waits for more, for `descriptor` to become readable (-1: none), for wake(), or for that
  // time to pass.
  void step(int descriptor, std::chrono::milliseconds at_most);
  void wake(); // any thread

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::http
