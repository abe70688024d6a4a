#pragma once
// The limits of one hook, as the launcher writes them into the shim's arguments. Headers of C only.

#include "lib/process/shim/protocol.hpp"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

namespace holdfast::process::shim {

constexpr uint64_t kUnlimited = UINT64_MAX;

struct Limits {
  uint64_t of_process[kLimitCount]; // which the kernel knows
  uint64_t memory, processes;       // of the tree
  uint64_t tell_ms;                 // between two reports of the CPU time
};

// Reads "n,n,-,n,-,n,-,n". False if it is anything else.
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

// Sets those that the kernel knows; never raises one above the one inherited. 0 or an errno value.
inline int apply_limits(const uint64_t (&limits)[kLimitCount]) {
  constexpr decltype(RLIMIT_AS) resources[kLimitCount] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE,
                                                          RLIMIT_NPROC};
  for (int i = 0; i < kLimitCount; ++i) {
    if (limits[i] == kUnlimited) continue;
    rlimit limit;
    if (getrlimit(resources[i], &limit) != 0) return errno;
    if (limit.rlim_max == RLIM_INFINITY || limits[i] < limit.rlim_max) limit.rlim_max = limits[i];
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(resources[i], &limit) != 0) return errno;
  }
  return 0;
}

} // namespace holdfast::process::shim
