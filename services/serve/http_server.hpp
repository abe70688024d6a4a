#pragma once
// A small HTTP/1.1 server for pages, numbers and archived files: GET and HEAD only, bounded requests, a deadline on
// every read and write, and a bound on the connections of one peer. Owned by the verb or worker that offers it. One
// thread reads and writes; the handler is called on others, by lane, so that a handler that waits for the database
// keeps no health check waiting. The destructor closes what is open and joins all threads. Beast is used in
// http_server.cpp alone.

#include "services/serve/endpoint.hpp"
#include "services/serve/http_message.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace holdfast::serve {

using Handler = std::function<Response(const Request&)>;

// Where a request is answered: on the thread that reads and writes (it must not block), on one thread for numbers, or
// on one of those for everything else.
enum class Lane { immediate, numbers, pages };
using LaneOf = std::function<Lane(const Request&)>;
Lane usual_lane(const Request& request); // /healthz, /metrics, the rest

class HttpServer {
public:
  // Listens at once; throws Error(unavailable) if the port is taken. Port 0: any. `threads`: of the lane `pages`.
  HttpServer(const Endpoint& endpoint, int threads, Handler handler, LaneOf lane_of = &usual_lane);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const noexcept;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::serve
