#pragma once
// Requests over libcurl that block until they are answered. Keeps connections open between them. Any thread; the
// destructor closes what is open.

#include "lib/http/message.hpp"

#include <memory>

namespace holdfast::http {

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

} // namespace holdfast::http
