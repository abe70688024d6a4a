#pragma once
// Self-fencing. A timer of the main thread calls back when the trust window is over. A thread of its own checks that,
// too: if the main thread has not reacted in time - it hangs, or starves - the process ends at once: the shims see
// their sockets close and kill their trees. It also ends an exit that hangs. Owned by Worker, used on the main thread.
// The destructor joins the thread, which never blocks on anything else.

#include "lib/base/trust_window.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::worker {

class Watchdog {
public:
  // `over`: called once, when trust is over; it stands this down. `grace`: how long it may take for that.
  Watchdog(boost::asio::any_io_executor executor, const base::TrustWindow& trust, std::chrono::milliseconds grace,
           std::function<void()> over);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // The main thread is ending the hooks, or has none left: nothing more to watch.
  void stand_down();
  // The worker leaves, its hooks have ended or were killed: that may take so long, then the process ends.
  void leave_within(std::chrono::milliseconds limit);

private:
  void wait();
  void watch();

  const base::TrustWindow& trust_;
  const std::chrono::milliseconds grace_;
  const std::function<void()> over_;
  boost::asio::steady_timer timer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stood_down_;
  bool destroyed_{false};
  std::optional<std::chrono::steady_clock::time_point> leave_by_;
  std::thread thread_; // last: it uses everything above
};

} // namespace holdfast::worker
