#pragma once
// A small HTTP/1.1 server for pages, numbers, archived files and the API: bounded requests, a deadline on every read
// and write, and a bound on the connections of one peer. Owned by the verb or worker that offers it. One thread reads
// and writes; the handler is called on others, by request_class, so that a handler that waits for the database delays
// no health check. The destructor closes open connections and joins all threads. Beast is used in http_server.cpp and
// view_relay.cpp alone.

#include "services/serve/access.hpp"
#include "services/serve/endpoint.hpp"
#include "services/serve/http_message.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace holdfast::serve {

using Handler = std::function<Response(const Request&)>;

// Thread that answers a request: the one that reads and writes (it must not block), the one for numbers, or one of
// those for everything else.
enum class RequestClass { health, metrics, pages };
RequestClass class_of(const Request& request); // /healthz, /metrics, the rest

// Limit of a body, decided by the head of its request.
struct BodyLimit {
  std::size_t bytes{0};
  bool known{false}; // the client may send that much. Else a longer body is not read, and the request is answered
                     // without it, which refuses it
};

struct HttpOptions {
  int threads{1};                             // of the request_class `pages`
  std::chrono::milliseconds timeout{30'000};  // for a whole request, and for each piece of an answer
  TrustedProxies proxies{};                   // whose X-Forwarded-For names the client
  std::string user_header{}, groups_header{}; // in which these proxies name the user; empty: they do not
  // Asked before a body is read. Must not block for a request without credentials. None: GET and HEAD only.
  std::function<BodyLimit(const Request&)> body_limit{};
  // Asked for each connection from this machine, with its socket: true closes it. Must not block. None: all are served.
  std::function<bool(int)> refuses{};
};

class HttpServer {
public:
  // Listens at once; throws Error(unavailable) if the port is taken. Port 0: any.
  HttpServer(const Endpoint& endpoint, HttpOptions options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const noexcept;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::serve
