#pragma once
// The shim as a process: its clock, its reports, its rank with the scheduler and the memory killer. System calls only.

#include "lib/process/shim/protocol.hpp"

#include <fcntl.h>
#include <linux/sched/types.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace holdfast::process::shim {

inline constexpr int kEndFirst = 500; // oom_score_adj: before the worker and its database

inline int64_t now_us() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1'000;
}

inline int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

inline Consumption consumption(const rusage& usage) {
  return {int64_t{usage.ru_utime.tv_sec} * 1'000'000 + usage.ru_utime.tv_usec,
          int64_t{usage.ru_stime.tv_sec} * 1'000'000 + usage.ru_stime.tv_usec, static_cast<uint64_t>(usage.ru_maxrss),
          static_cast<uint64_t>(usage.ru_inblock), static_cast<uint64_t>(usage.ru_oublock)};
}

inline void send_report(const Report& report) {
  // The launcher may have ended or not read; the shim's task does not depend on it.
  (void)send(kControlDescriptor, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Makes hooks the first victims when the machine runs out of memory.
inline void prefer_as_victim() {
  const int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  char text[32]{};
  static_assert(kEndFirst == 500);
  if (read(fd, text, sizeof text - 1) > 0 && strtol(text, nullptr, 10) < kEndFirst) (void)!write(fd, "500", 3);
  close(fd);
}

// Requests short turns, because the shim works for moments at a time: a process with short turns is served first (from
// Linux 6.12 on; up to 6.5 one that has slept). Without, a check of a bomb comes 3 s late where its 2,000 processes
// share our processors' group, as in a container.
inline void take_short_turns() {
  constexpr uint64_t kShortest = 100'000; // ns; the kernel's own least
  sched_attr turns{};
  if (syscall(SYS_sched_getattr, 0, &turns, sizeof turns, 0) != 0) return;
  turns.sched_runtime = kShortest;
  (void)syscall(SYS_sched_setattr, 0, &turns, 0); // a favour; older kernels pass it over
}

} // namespace holdfast::process::shim
