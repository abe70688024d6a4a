#pragma once
// A process by its descriptor, which, unlike a pid, never names another process. Any thread; blocking.

#include "lib/base/file.hpp"

#include <sys/types.h>

#include <chrono>

namespace holdfast::base {

// Empty if there is no such process. A pid that is not a child's may have been recycled before the call, not after it.
Fd open_pidfd(pid_t pid);

// Returns false if it has ended, or may not be signalled.
bool send_signal(const Fd& process, int number);

// Returns true once it has ended (also for an empty descriptor); waits for at most `limit`. It may be a zombie then.
bool wait_for_exit(const Fd& process, std::chrono::milliseconds limit);

} // namespace holdfast::base
