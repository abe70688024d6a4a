#include "services/worker/machine/watchdog.hpp"

#include "lib/base/error.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace holdfast::worker {

namespace {

// Time asleep counts for the window, not for a thread's waiting: so it checks now and then.
constexpr std::chrono::milliseconds kLook{500};

// Writes without the logger: the thread that hangs may hold it.
[[noreturn]] void end_process(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(static_cast<int>(base::ErrorClass::temporary));
}

} // namespace

Watchdog::Watchdog(const base::TrustWindow& trust, std::chrono::milliseconds grace)
    : trust_(trust), grace_(grace), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Watchdog::stand_down() {
  const std::lock_guard lock(mutex_);
  stood_down_ = true;
}

void Watchdog::leave_within(std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  stood_down_ = true;
  leave_by_ = std::chrono::steady_clock::now() + limit;
}

void Watchdog::watch() {
  pthread_setname_np(pthread_self(), "hf-watchdog");
  std::unique_lock lock(mutex_);
  auto looked = base::TrustWindow::Clock::now();
  auto not_before = looked;
  while (!over_) {
    const auto now = base::TrustWindow::Clock::now();
    // This thread did not run either: the process was stopped, or the machine slept. The main thread gets its time from
    // here on.
    if (now - looked > 3 * kLook) {
      not_before = now + grace_;
      if (leave_by_) *leave_by_ += now - looked;
    }
    looked = now;
    const auto left = std::max(trust_.trusted_until() + grace_, not_before) - now;
    if (!stood_down_ && left <= left.zero())
      end_process("holdfast: the lease may have expired and the main thread does not answer: ending this process "
                  "and its hooks\n");
    if (leave_by_ && std::chrono::steady_clock::now() >= *leave_by_)
      end_process("holdfast: the exit takes too long: ending this process; its lease will expire\n");
    changed_.wait_for(lock,
                      stood_down_ ? std::chrono::nanoseconds(kLook) : std::min<std::chrono::nanoseconds>(left, kLook));
  }
}

} // namespace holdfast::worker
