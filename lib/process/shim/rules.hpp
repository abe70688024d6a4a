#pragma once
// What a hook may reach of the file system by the rules of Landlock, for machines without namespaces: made in the child
// between clone and exec, kept by all that the hook starts. What no rule names is closed; there is no way to open a
// directory and close another one below it. A process under such rules can trace, or read memory, environment and open
// files of, no process but its own. Modes, times and sockets are not covered. System calls only.
//
// Wants the third version of Landlock (Linux 6.2): before it, files could be cut that may not be written.

#include "lib/base/openat2.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::process::shim {

class Rules {
public:
  static constexpr uint64_t kTruncate = 1u << 14; // these three are not in every <linux/landlock.h>
  static constexpr uint64_t kAll = (1u << 15) - 1;
  static constexpr uint64_t kAbstractSockets = 1u << 0;
  static constexpr uint64_t kRead =
      LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  static constexpr uint64_t kUse = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
  static constexpr uint64_t kWrite = kAll & ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);

  // 0 or an errno value.
  int begin() {
    constexpr long kWithTruncate = 3, kWithScopes = 6;
    const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 0) return errno;
    if (version < kWithTruncate) return EOPNOTSUPP;
    struct {
      uint64_t files, network, scopes;
    } handled{kAll, 0, version >= kWithScopes ? kAbstractSockets : 0};
    const size_t size = version >= kWithScopes ? sizeof handled : sizeof handled.files;
    fd_ = static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, size, 0));
    return fd_ < 0 ? errno : 0;
  }

  // What is not there, or closed to us anyway, is passed over. ELOOP: a link on the way, which another hook may have
  // left there.
  int allow(const char* path, uint64_t access) const {
    constexpr uint64_t kOfFiles =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
    const int fd = base::open_no_links_at(AT_FDCWD, path, O_PATH);
    if (fd < 0) return errno == ELOOP ? ELOOP : 0;
    struct stat status;
    landlock_path_beneath_attr rule{};
    rule.parent_fd = fd;
    int error = fstat(fd, &status) == 0 ? 0 : errno;
    rule.allowed_access = S_ISDIR(status.st_mode) ? access : access & kOfFiles;
    if (error == 0 && syscall(SYS_landlock_add_rule, fd_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) error = errno;
    close(fd);
    return error;
  }

  // Of this process, for good.
  int keep() const {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    return syscall(SYS_landlock_restrict_self, fd_, 0) == 0 ? 0 : errno;
  }

private:
  int fd_{-1};
};

} // namespace holdfast::process::shim
