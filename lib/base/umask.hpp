#pragma once
// The umask with which the program was started. First called by main(), before there are threads.

#include <sys/stat.h>

namespace holdfast::base {

// `mode` without what the umask takes from others; the owner keeps its part.
inline mode_t allowed(mode_t mode) {
  static const mode_t mask = [] {
    const mode_t before = ::umask(077);
    ::umask(before);
    return before & mode_t{0077};
  }();
  return mode & ~mask;
}

} // namespace holdfast::base
