#pragma once
// All that runs as one user, signalled at once: one kill(-1) of a process of that user. The kernel keeps new processes
// from appearing meanwhile, so nothing outruns it. For users that only hooks run as (lib/process/hook_users.hpp).

#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::process::shim {

// A process of the user could end the one that we make for this, so what ended by a signal is made again.
inline void signal_user(uid_t uid, int signal) {
  for (int tries = 0; tries < 100; ++tries) {
    const pid_t child = fork();
    if (child == 0) {
      if (syscall(SYS_setresgid, uid, uid, uid) == 0 && syscall(SYS_setresuid, uid, uid, uid) == 0) kill(-1, signal);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || WIFEXITED(status)) return;
  }
}

} // namespace holdfast::process::shim
