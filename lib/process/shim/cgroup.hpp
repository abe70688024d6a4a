#pragma once
// The cgroups of one hook: in each hierarchy that the launcher named, a leaf that holds the hook's tree and nothing
// else. Made, used and removed by the shim; the destructor is not run (the shim calls remove()). System calls and fixed
// arrays only. Failed parts are done without: the shim's own checks and signals are always there too.
//
// Versions 1 and 2 differ in the names of files alone, so that a file which is there is used and another skipped.

#include "lib/process/shim/process_tree.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace holdfast::process::shim {

class Cgroup {
public:
  static constexpr size_t kMost = 4;

  // `list`: the leaves, blanks between them; "-": none. Limits: 0 sets none.
  void make(char* list, uint64_t memory, uint64_t tasks) {
    if (*list == '-') return;
    for (char* path = list; path != nullptr && *path != '\0' && count_ < kMost;) {
      char* end = strchr(path, ' ');
      if (end != nullptr) *end = '\0';
      if (mkdir(path, 0755) == 0) {
        const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0) {
          rmdir(path);
        } else {
          limit(directory, memory, tasks);
          leaves_[count_++] = {path, directory, has(directory, "cgroup.events")};
        }
      }
      path = end == nullptr ? nullptr : end + 1;
    }
  }

  bool any() const { return count_ > 0; }

  // Returns the leaf of version 2, into which a process can be born; -1: there is none. Moving costs every fork of the
  // machine a wait, and the hook ten milliseconds.
  int birthplace() const {
    for (size_t i = 0; i < count_; ++i)
      if (leaves_[i].unified) return leaves_[i].directory;
    return -1;
  }

  // Moves the calling process, which was or was not born in birthplace().
  void enter(bool born_there) const {
    for (size_t i = 0; i < count_; ++i)
      if (!born_there || !leaves_[i].unified) (void)write_file(leaves_[i].directory, "cgroup.procs", "0");
  }

  // Sends KILL to every process in it, none of which can have another child meanwhile. Returns false if there was none.
  bool kill_all(tree::PidList& list) const {
    bool found = false;
    for (size_t i = 0; i < count_; ++i) {
      const int directory = leaves_[i].directory;
      members(directory, list);
      if (list.count == 0) continue;
      found = true;
      if (write_file(directory, "cgroup.kill", "1")) return true;
      const char* state = leaves_[i].unified ? "cgroup.freeze" : "freezer.state";
      if (!write_file(directory, state, leaves_[i].unified ? "1" : "FROZEN")) continue;
      wait_until_frozen(directory, leaves_[i].unified);
      members(directory, list);
      for (size_t at = 0; at < list.count; ++at)
        kill(list.pids[at], SIGKILL);
      (void)write_file(directory, state, leaves_[i].unified ? "0" : "THAWED");
      return true;
    }
    return found;
  }

  // Reads the CPU time of all processes that ever were in it, in microseconds. Returns false if it is unknown here.
  bool cpu_us(int64_t& user, int64_t& system) const {
    for (size_t i = 0; i < count_; ++i) {
      uint64_t first = 0, second = 0;
      if (read_key(leaves_[i].directory, "cpu.stat", "user_usec", first) &&
          read_key(leaves_[i].directory, "cpu.stat", "system_usec", second)) {
        user = static_cast<int64_t>(first);
        system = static_cast<int64_t>(second);
        return true;
      }
      if (read_number(leaves_[i].directory, "cpuacct.usage_user", first) &&
          read_number(leaves_[i].directory, "cpuacct.usage_sys", second)) {
        user = static_cast<int64_t>(first / 1000);
        system = static_cast<int64_t>(second / 1000);
        return true;
      }
    }
    return false;
  }

  // Returns the memory that the tree holds now and that no file is behind, in bytes; 0: unknown here. (The kernel's own
  // peak counts cached files too, which would make a hook that writes much look like one that needs much.)
  uint64_t memory_bytes() const {
    for (size_t i = 0; i < count_; ++i) {
      uint64_t private_bytes = 0, shared = 0;
      if (!read_key(leaves_[i].directory, "memory.stat", "anon", private_bytes) &&
          !read_key(leaves_[i].directory, "memory.stat", "total_rss", private_bytes))
        continue;
      (void)read_key(leaves_[i].directory, "memory.stat", "shmem", shared);
      return private_bytes + shared;
    }
    return 0;
  }

  // The kernel has killed one of its processes because the tree was over its limit.
  bool out_of_memory() const {
    for (size_t i = 0; i < count_; ++i) {
      uint64_t kills = 0;
      if (read_key(leaves_[i].directory, "memory.events", "oom_kill", kills) ||
          read_key(leaves_[i].directory, "memory.oom_control", "oom_kill", kills))
        if (kills > 0) return true;
    }
    return false;
  }

  void remove() {
    for (size_t i = 0; i < count_; ++i)
      for (int round = 0; round < 20 && rmdir(leaves_[i].path) != 0 && errno == EBUSY; ++round)
        pause(); // what has ended is still on its way out
    count_ = 0;
  }

private:
  struct Entry {
    const char* path;
    int directory;
    bool unified; // version 2
  };

  static bool has(int directory, const char* name) { return faccessat(directory, name, F_OK, 0) == 0; }

  static bool write_file(int directory, const char* name, const char* text) {
    const int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const auto length = static_cast<ssize_t>(strlen(text));
    const bool written = write(fd, text, static_cast<size_t>(length)) == length;
    close(fd);
    return written;
  }

  static bool write_number(int directory, const char* name, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(value));
    return write_file(directory, name, text);
  }

  static void limit(int directory, uint64_t memory, uint64_t tasks) {
    if (memory > 0 &&
        (write_number(directory, "memory.max", memory) || write_number(directory, "memory.limit_in_bytes", memory)))
      (void)write_file(directory, "memory.oom.group", "1");
    if (tasks > 0) (void)write_number(directory, "pids.max", tasks);
  }

  // Reads a whole file, zero-terminated. Returns false if there is none.
  static bool read_file(int directory, const char* name, char* text, size_t size) {
    const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t length = read(fd, text, size - 1);
    close(fd);
    if (length <= 0) return false;
    text[length] = '\0';
    return true;
  }

  static bool read_number(int directory, const char* name, uint64_t& value) {
    char text[64];
    if (!read_file(directory, name, text, sizeof text)) return false;
    value = strtoull(text, nullptr, 10);
    return true;
  }

  // Reads a number from a file with lines "KEY NUMBER".
  static bool read_key(int directory, const char* name, const char* key, uint64_t& value) {
    char text[8192];
    if (!read_file(directory, name, text, sizeof text)) return false;
    const size_t length = strlen(key);
    for (const char* line = text; line != nullptr; line = strchr(line, '\n')) {
      if (*line == '\n') ++line;
      if (strncmp(line, key, length) != 0 || line[length] != ' ') continue;
      value = strtoull(line + length, nullptr, 10);
      return true;
    }
    return false;
  }

  static void members(int directory, tree::PidList& list) {
    list.clear();
    const int fd = openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    tree::append_numbers(fd, list);
    close(fd);
  }

  // At most as long as one may wait before the signals go out; what is stuck in the kernel freezes later or never.
  static void wait_until_frozen(int directory, bool unified) {
    for (int round = 0; round < 50; ++round) {
      char text[64];
      uint64_t frozen = 0;
      if (unified ? read_key(directory, "cgroup.events", "frozen", frozen) && frozen == 1
                  : read_file(directory, "freezer.state", text, sizeof text) && strncmp(text, "FROZEN", 6) == 0)
        return;
      pause();
    }
  }

  static void pause() {
    const timespec time{0, 1'000'000};
    nanosleep(&time, nullptr);
  }

  Entry leaves_[kMost]{};
  size_t count_{0};
};

} // namespace holdfast::process::shim
