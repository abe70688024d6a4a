#pragma once
// All that runs as one user, signalled at once: one kill(-1) as that user. The kernel keeps new processes from
// appearing meanwhile, so nothing outruns it. For users that only hooks run as (lib/process/hook_users.hpp).

#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::process::shim {

// The caller itself as the user, for this call; only for a moment, because the user's processes can signal it then.
inline void signal_user_from_here(uid_t uid, int signal) {
  const uid_t own = static_cast<uid_t>(syscall(SYS_geteuid));
  if (syscall(SYS_setresuid, uid, uid, own) != 0) return;
  kill(-1, signal);
  syscall(SYS_setresuid, own, own, own);
}

// A process of the user could end the one that we make for this, so it is made again after an end by a signal. Where a
// bomb has taken every place, as in a container with a limit, none can be made.
inline void signal_user(uid_t uid, int signal) {
  for (int tries = 0; tries < 100; ++tries) {
    const pid_t child = fork();
    if (child == 0) {
      if (syscall(SYS_setresgid, uid, uid, uid) == 0 && syscall(SYS_setresuid, uid, uid, uid) == 0) kill(-1, signal);
      _exit(0);
    }
    if (child < 0) return signal_user_from_here(uid, signal);
    int status = 0;
    if (waitpid(child, &status, 0) != child || WIFEXITED(status)) return;
  }
}

} // namespace holdfast::process::shim
