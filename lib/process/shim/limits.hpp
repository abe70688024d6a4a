#pragma once
// The limits of one hook, as the launcher writes them into the shim's arguments. Headers of C only.

#include "lib/process/shim/process_tree.hpp"
#include "lib/process/shim/protocol.hpp"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

namespace holdfast::process::shim {

constexpr uint64_t kUnlimited = UINT64_MAX;

struct Limits {
  uint64_t of_process[kLimitCount]; // enforced by the kernel
  uint64_t memory, processes;       // of the tree
  uint64_t tell_ms;                 // between two reports of the CPU time
};

// Reads "n,n,-,n,n". Returns false if it is anything else.
inline bool read_limits(const char* text, Limits& limits) {
  const auto read_one = [&text](uint64_t& limit) {
    char* end = nullptr;
    limit = *text == '-' ? kUnlimited : strtoull(text, &end, 10);
    if (*text == '-') {
      ++text;
    } else if (end == text) {
      return false;
    } else {
      text = end;
    }
    if (*text == ',') ++text;
    return true;
  };
  for (uint64_t& limit : limits.of_process)
    if (!read_one(limit)) return false;
  return read_one(limits.memory) && read_one(limits.processes) && read_one(limits.tell_ms);
}

using Resource = decltype(RLIMIT_CORE); // an enumeration in one C library, a number in another

// Never above the one inherited. 0 or an errno value.
inline int lower_limit(Resource resource, uint64_t most) {
  rlimit limit;
  if (most == kUnlimited) return 0;
  if (getrlimit(resource, &limit) != 0) return errno;
  if (limit.rlim_max == RLIM_INFINITY || most < limit.rlim_max) limit.rlim_max = most;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(resource, &limit) == 0 ? 0 : errno;
}

// Sets the limits that the kernel enforces, and disables core files. Returns 0 or an errno value.
inline int apply_limits(const uint64_t (&limits)[kLimitCount]) {
  constexpr Resource resources[kLimitCount] = {RLIMIT_FSIZE, RLIMIT_NOFILE};
  for (int i = 0; i < kLimitCount; ++i)
    if (const int error = lower_limit(resources[i], limits[i])) return error;
  return lower_limit(RLIMIT_CORE, 0);
}

// Threads and processes of the machine; 0: they cannot be read.
inline uint64_t tasks_of_machine() {
  char text[128]; // "0.10 0.20 0.30 1/234 5678"
  const char* slash = tree::read_small_file("/proc/loadavg", text, sizeof text) > 0 ? strchr(text, '/') : nullptr;
  return slash == nullptr ? 0 : strtoull(slash + 1, nullptr, 10);
}

// Threads and processes that a hook's user may have, where its tree may have `processes`. The shim counts those of the
// tree a few times a second; a hook that forks without end is kept within this between two counts, or it would outrun
// them. A user of the hook's own has what hooks start alone. Else the kernel counts whatever the worker's
// user runs on the machine, some of it out of our sight: so much is allowed besides as all users run there.
inline uint64_t most_tasks(uint64_t processes, bool own_user) {
  constexpr uint64_t kTasksEach = 4, kMost = 1u << 22; // a browser has some 10 processes and 150 threads
  if (processes > kMost / kTasksEach) return kUnlimited;
  const uint64_t others = own_user ? 0 : tasks_of_machine();
  if (!own_user && others == 0) return kUnlimited;
  return others + processes * kTasksEach;
}

} // namespace holdfast::process::shim
