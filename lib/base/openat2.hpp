#pragma once
// openat2() with RESOLVE_NO_SYMLINKS, which is not in every C library. Included by the shim: headers of C only.

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::base {

// -1, with errno, if it fails. A link in any part of the path: ELOOP.
inline int open_no_links_at(int directory, const char* path, int flags, mode_t mode = 0) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return static_cast<int>(syscall(SYS_openat2, directory, path, &how, sizeof how));
}

} // namespace holdfast::base
