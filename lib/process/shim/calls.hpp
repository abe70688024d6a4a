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
#include <sys/socket.h>
#include <sys/syscall.h>

namespace holdfast::process::shim {

#if defined(__x86_64__)
inline constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#endif
inline constexpr unsigned kFirstOfX32 = 0x40000000; // the same calls by other numbers; above all others elsewhere

inline constexpr unsigned kQuotactlFd = 443; // on all machines; musl does not name it

inline constexpr unsigned kRefusedCalls[] = {
    // other processes: tracing, their memory, their descriptors
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd,
    // large and often attacked
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
    // keys, which are the user's and not the hook's
    SYS_add_key, SYS_request_key, SYS_keyctl,
    // files without a path
    SYS_open_by_handle_at,
    // mounts: what a namespace of its own could be filled with
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_move_mount,
    SYS_open_tree, SYS_mount_setattr, SYS_fanotify_init, SYS_fanotify_mark, SYS_quotactl, kQuotactlFd,
    // memory and queues of the kernel that attacks are built from
    SYS_vmsplice, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_remap_file_pages, SYS_move_pages,
    SYS_migrate_pages, SYS_process_madvise,
    // the machine
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_swapon, SYS_swapoff,
    SYS_reboot, SYS_acct, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
    SYS_setdomainname, SYS_vhangup, SYS_syslog};

// Sockets that hooks have: of the file system, of IPv4 and IPv6, and of the kernel's lists of addresses and devices.
inline constexpr unsigned kSocketFamilies[] = {AF_UNIX, AF_INET, AF_INET6};
inline constexpr unsigned kNetlinkProtocols[] = {0 /* NETLINK_ROUTE */, 15 /* NETLINK_KOBJECT_UEVENT */};

// Refuses the calls to this process and all that it starts. A refused call fails with EPERM, as in Docker's profile.
// Returns 0 or an errno value.
inline int refuse_calls() {
  constexpr unsigned kCalls = sizeof kRefusedCalls / sizeof *kRefusedCalls;
  constexpr unsigned kFamilies = sizeof kSocketFamilies / sizeof *kSocketFamilies;
  constexpr unsigned kProtocols = sizeof kNetlinkProtocols / sizeof *kNetlinkProtocols;
  constexpr unsigned kRefuse = 4 + kCalls + 2 + 1 + kFamilies + 1 + 1 + kProtocols; // position of the answer
  static_assert(kRefuse < 250, "a jump is one byte");
  constexpr auto kLoad = static_cast<unsigned short>(BPF_LD | BPF_W | BPF_ABS);
  constexpr auto kIfEqual = static_cast<unsigned short>(BPF_JMP | BPF_JEQ | BPF_K);
  constexpr auto kIfAtLeast = static_cast<unsigned short>(BPF_JMP | BPF_JGE | BPF_K);
  constexpr auto kReturn = static_cast<unsigned short>(BPF_RET | BPF_K);
  constexpr unsigned kNext = 0, kAllow = kRefuse + 1;
  sock_filter program[kAllow + 1];
  unsigned short length = 0;
  const auto add = [&](unsigned short code, unsigned value, unsigned if_true = 0, unsigned if_false = 0) {
    const auto to = [&](unsigned position) {
      return static_cast<unsigned char>(position == kNext ? 0 : position - length - 1);
    };
    program[length] = {code, to(if_true), to(if_false), value};
    ++length;
  };
  add(kLoad, offsetof(seccomp_data, arch));
  add(kIfEqual, kArchitecture, kNext, kRefuse); // the calls of a 32-bit program have other numbers
  add(kLoad, offsetof(seccomp_data, nr));
  add(kIfAtLeast, kFirstOfX32, kRefuse);
  for (const unsigned call : kRefusedCalls)
    add(kIfEqual, call, kRefuse);
  add(kIfEqual, SYS_socket, length + 2U);
  add(kIfEqual, SYS_socketpair, kNext, kAllow);
  add(kLoad, offsetof(seccomp_data, args)); // the lower half: both machines are little-endian
  for (const unsigned family : kSocketFamilies)
    add(kIfEqual, family, kAllow);
  add(kIfEqual, AF_NETLINK, kNext, kRefuse);
  add(kLoad, offsetof(seccomp_data, args) + 2 * sizeof(__u64));
  for (const unsigned protocol : kNetlinkProtocols)
    add(kIfEqual, protocol, kAllow);
  add(kReturn, SECCOMP_RET_ERRNO | EPERM);
  add(kReturn, SECCOMP_RET_ALLOW);
  const sock_fprog filter{length, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 ? 0 : errno;
}

} // namespace holdfast::process::shim
