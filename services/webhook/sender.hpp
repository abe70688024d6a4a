#pragma once
// POSTs over libcurl, many at once on one thread. Owned and used by the deliverer's thread, but for wake(). What a URL
// leads to is judged by the address that is really connected to, so no name can lead into the own network; redirects
// are not followed. The destructor drops what is under way.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::webhook {

struct Post {
  std::string url, body;
  std::vector<std::string> headers; // "Name: value"
};

struct Answer {
  int status{0};     // 0: there was none
  std::string error; // why there was none; never the URL
};

class Sender {
public:
  // `allow_private`: the setting urls.allow_private.
  Sender(bool allow_private, std::string user_agent, std::chrono::milliseconds timeout);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // `done` is called by step().
  void start(Post post, std::function<void(const Answer&)> done);
  std::size_t under_way() const noexcept;
  // Does what can be done, then waits for more, for `descriptor` to become readable (-1: none), for wake(), or for that
  // time to pass.
  void step(int descriptor, std::chrono::milliseconds at_most);
  void wake(); // any thread

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::webhook
