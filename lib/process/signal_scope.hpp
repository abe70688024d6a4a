#pragma once
// Limits whom hooks can signal: processes that were started in this scope, and no other process of their user. A rule
// of Landlock (Linux 6.12). It holds for the thread that takes it on and for all that the thread starts, so the object
// owns such a thread, which starts the shims of its hooks. Processes that share the object can signal each other:
// plugins check by a signal whether the crawl's browser lives. Used from the main thread; shared by the commands that
// are started in it.

#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <memory>

namespace holdfast::process {

class SignalScope {
public:
  // Null where the kernel has no such rule.
  static std::shared_ptr<SignalScope> make();

  ~SignalScope() { thread_.join(); }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  // Calls `work` on the thread, and waits for it.
  void run(const std::function<void()>& work);

private:
  SignalScope() = default;

  boost::asio::thread_pool thread_{1};
};

} // namespace holdfast::process
