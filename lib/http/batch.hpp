#pragma once
// Many requests at once on one thread, which owns and uses it, but for wake(). The destructor drops what is under way.

#include "lib/http/message.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace holdfast::http {

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
