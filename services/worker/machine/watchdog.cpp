#include "services/worker/machine/watchdog.hpp"

#include "lib/base/error.hpp"
#include "lib/base/test_point.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast::worker {

namespace {

// Time asleep counts for the window, not for the waiting of a timer or a thread: so both check now and then.
constexpr std::chrono::milliseconds kCheck{1000};
constexpr std::chrono::milliseconds kLook{500};

// Writes without the logger: the thread that hangs may hold it.
[[noreturn]] void end_process(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(static_cast<int>(base::ErrorClass::temporary));
}

} // namespace

Watchdog::Watchdog(boost::asio::any_io_executor executor, const base::TrustWindow& trust,
                   std::chrono::milliseconds grace, std::function<void()> over)
    : trust_(trust), grace_(grace), over_(std::move(over)), timer_(std::move(executor)),
      stood_down_(base::test_switch("NO_SELF_FENCING")), // for the fault suite, which must notice
      thread_([this] { watch(); }) {
  if (!stood_down_) wait();
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    destroyed_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Watchdog::wait() {
  const auto left = trust_.trusted_until() - base::TrustWindow::Clock::now();
  timer_.expires_after(std::clamp<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1), kCheck));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || stood_down_) return;
    trust_.trusted(base::TrustWindow::Clock::now()) ? wait() : over_();
  });
}

void Watchdog::stand_down() {
  timer_.cancel();
  const std::lock_guard lock(mutex_);
  stood_down_ = true;
}

void Watchdog::leave_within(std::chrono::milliseconds limit) {
  stand_down();
  const std::lock_guard lock(mutex_);
  leave_by_ = std::chrono::steady_clock::now() + limit;
}

void Watchdog::watch() {
  pthread_setname_np(pthread_self(), "hf-watchdog");
  std::unique_lock lock(mutex_);
  auto looked = base::TrustWindow::Clock::now();
  auto not_before = looked;
  while (!destroyed_) {
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
