#pragma once
// A small HTTP/1.1 server for pages, numbers and archived files: GET and HEAD only, bounded requests, a deadline on
// every read and write, and a bound on the connections of one peer. Owned by the verb or worker that offers it. One
// thread reads and writes; the handler is called on others, by lane, so that a handler that waits for the database
// keeps no health check waiting. The destructor closes what is open and joins all threads. Beast is used in
// http_server.cpp alone.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::serve {

struct Request {
  std::string path;                         // decoded, begins with "/"; never holds NUL
  std::map<std::string, std::string> query; // decoded
  std::string host;                         // as sent, without the port: letters, digits, ".-_:[]" only
  std::string authorization, cookie, if_none_match;
};

struct Response {
  unsigned status{200};
  std::string type{"text/html; charset=utf-8"};
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // A file to send instead of the body; the server closes it.
  int file{-1};
};

using Handler = std::function<Response(const Request&)>;

// Where a request is answered: on the thread that reads and writes (it must not block), on one thread for numbers, or
// on one of those for everything else.
enum class Lane { immediate, numbers, pages };
using LaneOf = std::function<Lane(const Request&)>;
Lane usual_lane(const Request& request); // /healthz, /metrics, the rest

// Whether a path may be sent as a Location: absolute, on this host, of plain characters.
bool is_plain_path(std::string_view path);
// Whether the names under which this server may be asked for have that of the request. Empty: any.
bool is_named(const std::vector<std::string>& names, const Request& request);

// "127.0.0.1:8118", "[::1]:80", ":8118" (every address), "8118" (loopback).
struct Endpoint {
  std::string address;
  std::uint16_t port{0};
  bool loopback{true};
};
// Throws Error(configuration) naming `setting`.
Endpoint parse_endpoint(const std::string& text, const std::string& setting);

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

// "a%20b" -> "a b"; an offending escape or NUL: nullopt is said by returning false.
bool percent_decode(std::string_view text, bool plus_is_space, std::string& out);

} // namespace holdfast::serve
