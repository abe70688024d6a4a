#include "lib/base/pidfd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::base {

Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool send_signal(const Fd& process, int number) {
  return process && ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0U) == 0;
}

bool wait_for_exit(const Fd& process, std::chrono::milliseconds limit) {
  if (!process) return true;
  constexpr std::chrono::milliseconds kMost{3'600'000};
  const auto deadline = std::chrono::steady_clock::now() + std::min(limit, kMost);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd poll{process.get(), POLLIN, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

} // namespace holdfast::base
