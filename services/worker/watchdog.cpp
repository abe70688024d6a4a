#include "services/worker/watchdog.hpp"

#include "lib/base/error.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace holdfast::worker {

namespace {

// Time asleep counts for the window, not for a thread's waiting: so it looks now and then.
constexpr std::chrono::milliseconds kLook{500};

} // namespace

Watchdog::Watchdog(const base::TrustWindow& trust, std::chrono::milliseconds grace)
    : trust_(trust), grace_(grace), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  stand_down();
  thread_.join();
}

void Watchdog::stand_down() {
  const std::lock_guard lock(mutex_);
  stood_down_ = true;
  changed_.notify_all();
}

void Watchdog::watch() {
  pthread_setname_np(pthread_self(), "hf-watchdog");
  std::unique_lock lock(mutex_);
  auto looked = base::TrustWindow::Clock::now();
  auto not_before = looked;
  while (!stood_down_) {
    const auto now = base::TrustWindow::Clock::now();
    // Not even this thread could look: the process was stopped, or the machine slept. The main thread gets its time
    // from here on.
    if (now - looked > 3 * kLook) not_before = now + grace_;
    looked = now;
    const auto left = std::max(trust_.trusted_until() + grace_, not_before) - now;
    if (left <= left.zero()) {
      // Not by the logger: whoever hangs may hold it.
      constexpr std::string_view kText = "holdfast: no longer trusted and the main thread does not answer: "
                                         "ending this process, its hooks with it\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
      ::_exit(static_cast<int>(base::ErrorClass::temporary));
    }
    changed_.wait_for(lock, std::min<std::chrono::nanoseconds>(left, kLook));
  }
}

} // namespace holdfast::worker
