#pragma once
// A small HTTP/1.1 server for pages, numbers and archived files: GET and HEAD only, bounded requests, a deadline on
// every read and write. Owned by the verb or node that offers it; runs on threads of its own, which call the handler.
// The destructor closes what is open and joins them. Beast is an affair of http_server.cpp alone.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::serve {

struct Request {
  std::string path;                         // decoded, begins with "/"; never holds NUL
  std::map<std::string, std::string> query; // decoded
  std::string host;                         // as sent, without the port
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
  // Listens at once; throws Error(unavailable) if the port is taken. Port 0: any.
  HttpServer(const Endpoint& endpoint, int threads, Handler handler);
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
