#pragma once
// Self-fencing that does not depend on the main thread. A thread of its own checks the trust window; if that is over
// and the main thread has not reacted in time - it hangs, or starves - the process ends at once: the shims see their
// sockets close and kill their trees. It also ends an exit that hangs. Owned by Worker, made and destroyed on the main
// thread. The destructor joins the thread, which never blocks on anything else.

#include "lib/base/trust_window.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::worker {

class Watchdog {
public:
  // `grace`: how long past the end of trust the main thread may take.
  Watchdog(const base::TrustWindow& trust, std::chrono::milliseconds grace);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The main thread is ending the hooks, or has none left: nothing more to watch.
  void stand_down();
  // The worker leaves, its hooks have ended or were killed: that may take so long, then the process ends.
  void leave_within(std::chrono::milliseconds limit);

private:
  void watch();

  const base::TrustWindow& trust_;
  const std::chrono::milliseconds grace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stood_down_{false};
  bool over_{false};
  std::optional<std::chrono::steady_clock::time_point> leave_by_;
  std::thread thread_; // last: it uses everything above
};

} // namespace holdfast::worker
