#pragma once
// Finding and ending every descendant of the calling process. Shared by the shim and the guard: system calls and fixed
// arrays only, nothing is allocated, nothing throws. Both callers are subreapers, so whatever a hook starts - detached,
// forked twice, in a session of its own - stays below them. Single-threaded use.

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace holdfast::process::tree {

// More processes than this are ended in several rounds. Untouched pages of the arrays cost no memory.
inline constexpr size_t kCapacity = 32768;

struct PidList {
  pid_t pids[kCapacity];
  size_t count;

  void clear() { count = 0; }
  void add(pid_t pid) {
    if (count < kCapacity) pids[count++] = pid;
  }
};

// A process that must not be ended, with all below it; 0: none. The guard spares one that other programs use.
inline pid_t spared = 0;

// Whole content of a small /proc file, zero-terminated; its length, or -1.
inline ssize_t read_small_file(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t length = 0;
  while (length + 1 < size) {
    const ssize_t got = read(fd, buffer + length, size - 1 - length);
    if (got <= 0) break;
    length += static_cast<size_t>(got);
  }
  close(fd);
  buffer[length] = '\0';
  return static_cast<ssize_t>(length);
}

struct Stat {
  char name[16]; // the kernel's short one
  char state;
  pid_t parent, session;
  uint64_t cpu_ticks; // its own and that of the children it has reaped
  uint64_t start_ticks;
};

// Reads fields 2 to 4, 6, 14 to 17 and 22 of /proc/<pid>/stat. Returns false if there is no such process.
inline bool read_stat(pid_t pid, Stat& out) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  char text[1024];
  if (read_small_file(path, text, sizeof text) <= 0) return false;
  const char* at = strrchr(text, ')'); // the name may hold blanks and brackets; nothing after it does
  const char* name = strchr(text, '(');
  if (at == nullptr || name == nullptr || name > at || at[1] != ' ' || at[2] == '\0') return false;
  snprintf(out.name, sizeof out.name, "%.*s", static_cast<int>(at - name - 1), name + 1);
  out.state = at[2];
  char* next = nullptr;
  out.parent = static_cast<pid_t>(strtol(at + 3, &next, 10));
  out.cpu_ticks = 0;
  for (int field = 5; field < 22; ++field) {
    const long long value = strtoll(next, &next, 10);
    if (field == 6) out.session = static_cast<pid_t>(value);
    if (field >= 14 && field <= 17) out.cpu_ticks += static_cast<uint64_t>(value);
  }
  out.start_ticks = strtoull(next, nullptr, 10);
  return true;
}

// Layout of getdents64(2); the names in C libraries differ.
struct DirectoryEntry {
  uint64_t inode;
  int64_t next;
  unsigned short length;
  unsigned char type;
  char name[1]; // and on, up to a NUL
};

// Calls visit(number) for each all-digit entry of a directory. Returns false if it cannot be read.
template <class Visit>
bool for_each_number(const char* directory, Visit visit) {
  const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(DirectoryEntry) char buffer[4096];
  for (;;) {
    const long got = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      at += entry->length;
      if (entry->name[0] < '0' || entry->name[0] > '9') continue;
      visit(static_cast<pid_t>(strtol(entry->name, nullptr, 10)));
    }
  }
  close(fd);
  return true;
}

// Appends the numbers in a file: children of a thread, members of a cgroup.
inline void append_numbers(int fd, PidList& list) {
  char buffer[4096];
  pid_t number = 0; // survives a number that is cut by the end of the buffer
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        number = number * 10 + (buffer[i] - '0');
      } else if (number != 0) {
        if (number != spared) list.add(number);
        number = 0;
      }
    }
  }
  if (number != 0 && number != spared) list.add(number);
}

// Appends the children of one process: those of each of its threads.
inline void append_children(pid_t pid, PidList& list) {
  char directory[64];
  snprintf(directory, sizeof directory, "/proc/%d/task", pid);
  for_each_number(directory, [&](pid_t thread) {
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, thread);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    append_numbers(fd, list);
    close(fd);
  });
}

// Descendants of `root` by the kernel's own lists: cost grows with the tree, not with the machine.
inline void descendants_by_children(pid_t root, PidList& list) {
  list.clear();
  append_children(root, list);
  for (size_t i = 0; i < list.count; ++i)
    append_children(list.pids[i], list); // grows while it is walked
}

// Finds the descendants by every process's parent, for kernels built without CONFIG_PROC_CHILDREN.
inline void descendants_by_parents(pid_t root, PidList& list) {
  static PidList all;
  static pid_t parents[kCapacity];
  all.clear();
  for_each_number("/proc", [&](pid_t pid) {
    Stat stat;
    if (all.count == kCapacity || !read_stat(pid, stat)) return;
    parents[all.count] = stat.parent;
    all.add(pid);
  });
  const auto append = [&](pid_t parent) {
    for (size_t i = 0; i < all.count; ++i)
      if (parents[i] == parent && all.pids[i] != spared) list.add(all.pids[i]);
  };
  list.clear();
  append(root);
  for (size_t i = 0; i < list.count; ++i)
    append(list.pids[i]);
}

inline bool kernel_lists_children() {
  char path[96];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
  return access(path, R_OK) == 0;
}

// Every descendant of the calling process, nearest first; zombies included.
inline void find_descendants(PidList& list) {
  static const bool listed = kernel_lists_children();
  if (listed) {
    descendants_by_children(getpid(), list);
  } else {
    descendants_by_parents(getpid(), list);
  }
}

// Stops every descendant, then kills all of them; returns how many there were. Stopping first defeats a fork bomb: a
// process with SIGSTOP pending cannot complete another fork, and stopped processes keep their places under the process
// limit, so that each round finds fewer new ones.
inline size_t freeze_and_kill(PidList& list) {
  uint64_t last_sum = 0;
  size_t last_count = 0;
  for (int round = 0; round < 64; ++round) {
    find_descendants(list);
    uint64_t sum = 0;
    for (size_t i = 0; i < list.count; ++i) {
      sum += static_cast<uint64_t>(list.pids[i]) * 0x9E3779B97F4A7C15u;
      kill(list.pids[i], SIGSTOP);
    }
    if (list.count == last_count && sum == last_sum) break; // nothing new since everything known was stopped
    last_count = list.count;
    last_sum = sum;
  }
  for (size_t i = 0; i < list.count; ++i)
    kill(list.pids[i], SIGKILL);
  return list.count;
}

inline uint64_t cpu_ticks(const PidList& list) {
  uint64_t sum = 0;
  for (size_t i = 0; i < list.count; ++i)
    if (Stat stat; read_stat(list.pids[i], stat)) sum += stat.cpu_ticks;
  return sum;
}

// The number behind "<field>" in a /proc file of "name: number kB" lines, in bytes; 0 if it is not there.
inline uint64_t kib_field(const char* text, const char* field) {
  const char* at = strstr(text, field);
  return at == nullptr ? 0 : strtoull(at + strlen(field), nullptr, 10) * 1024;
}

// Memory of the processes, resident or swapped out; what they share counts for each of them.
inline uint64_t resident_bytes(const PidList& list) {
  uint64_t sum = 0;
  for (size_t i = 0; i < list.count; ++i) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", list.pids[i]);
    if (read_small_file(path, text, sizeof text) > 0) sum += kib_field(text, "\nVmRSS:") + kib_field(text, "\nVmSwap:");
  }
  return sum;
}

// Returns the memory of a tree with a share of memory that others use as well. For a process that hides its maps, as
// sandboxed ones do, only private memory counts.
inline uint64_t memory_bytes(const PidList& list) {
  uint64_t sum = 0;
  for (size_t i = 0; i < list.count; ++i) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", list.pids[i]);
    if (read_small_file(path, text, sizeof text) > 0) {
      sum += kib_field(text, "\nPss:") + kib_field(text, "\nSwapPss:");
      continue;
    }
    snprintf(path, sizeof path, "/proc/%d/status", list.pids[i]);
    if (read_small_file(path, text, sizeof text) > 0)
      sum += kib_field(text, "\nRssAnon:") + kib_field(text, "\nVmSwap:");
  }
  return sum;
}

} // namespace holdfast::process::tree
