#pragma once
// System calls that no hook needs, refused for good: the parts of the kernel that a page would attack from a browser
// that has no sandbox of its own. Chromium closes them to what runs a page's scripts; this holds for all of a hook, as
// far as every program of it can do without. What a browser's own sandbox is made of (namespaces, chroot, seccomp)
// stays open.

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace holdfast::process::shim {

#if defined(__x86_64__)
inline constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif
inline constexpr unsigned kFirstOfX32 = 0x40000000; // the same calls by other numbers; above all others elsewhere

inline constexpr unsigned kRefusedCalls[] = {
    // other processes: tracing, their memory, their descriptors
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd,
    // large and often attacked
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
    // keys, which are the user's and not the hook's
    SYS_add_key, SYS_request_key, SYS_keyctl,
    // files without a path
    SYS_open_by_handle_at,
    // the machine
    SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_acct,
    SYS_settimeofday, SYS_clock_settime, SYS_syslog};

// Refuses the calls to this process and all that it starts. A refused call fails with EPERM, as in Docker's profile.
// Returns 0 or an errno value.
inline int refuse_calls() {
  constexpr unsigned kCount = sizeof kRefusedCalls / sizeof *kRefusedCalls;
  static_assert(kCount < 250, "a jump is one byte");
  constexpr auto kLoad = static_cast<unsigned short>(BPF_LD | BPF_W | BPF_ABS);
  constexpr auto kIfEqual = static_cast<unsigned short>(BPF_JMP | BPF_JEQ | BPF_K);
  constexpr auto kIfAtLeast = static_cast<unsigned short>(BPF_JMP | BPF_JGE | BPF_K);
  constexpr auto kReturn = static_cast<unsigned short>(BPF_RET | BPF_K);
  sock_filter program[kCount + 6];
  unsigned short length = 0;
  const auto add = [&](unsigned short code, unsigned value, unsigned if_true = 0, unsigned if_false = 0) {
    program[length++] = {code, static_cast<unsigned char>(if_true), static_cast<unsigned char>(if_false), value};
  };
  add(kLoad, offsetof(seccomp_data, arch));
  add(kIfEqual, kArchitecture, 0, kCount + 3); // the calls of a 32-bit program have other numbers
  add(kLoad, offsetof(seccomp_data, nr));
  add(kIfAtLeast, kFirstOfX32, kCount + 1);
  for (unsigned i = 0; i < kCount; ++i)
    add(kIfEqual, kRefusedCalls[i], kCount - i);
  add(kReturn, SECCOMP_RET_ALLOW);
  add(kReturn, SECCOMP_RET_ERRNO | EPERM);
  const sock_fprog filter{length, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 ? 0 : errno;
}

} // namespace holdfast::process::shim
