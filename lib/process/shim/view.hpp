#pragma once
// View of the file system of a sandboxed hook, and its user: made in the child between clone and exec. System calls
// and fixed arrays only. The child has a mount namespace of its own, and one of users: a new one from the start if the
// shim is a plain user, or made at the end if it is root and the hook runs as another user.
//
// All of the file system is read-only and without setuid programs. On top of that, in this order: /tmp and /var/tmp are
// the hook's own; what is hidden is covered with empty read-only directories and files; then directories are shown
// where they are, read-only or writable, also below what is covered. A nested namespace cannot take a cover away,
// because the kernel locks mounts that come from a more privileged one. A process of one hook cannot be traced, and its
// /proc not be read beyond what all may read, from another hook or towards the shim: each hook has a namespace of users
// of its own.
//
// Without namespaces ("L"), the same paths are shown or closed by rules of Landlock, which the launcher has made
// (lib/process/sandbox.hpp).

#include "lib/base/openat2.hpp"
#include "lib/process/shim/protocol.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::process::shim {

class View {
public:
  // `text`: lines of one letter and a path, or "-": no sandbox. It is kept and changed.
  //   U uid:gid  run as that user (only root can)
  //   H path     seems empty; E path: the same, but writable and discarded at the end
  //   R path     shown, read-only; W path: shown, writable
  //   T path     shown as /tmp and /var/tmp, writable
  //   N          has the network of kNetworkDescriptor; NU: which the users of kOwnerDescriptor own
  //   L          no namespaces: takes on the rules of kRulesDescriptor
  bool read(char* text) {
    own_uid_ = geteuid(); // before the child is in a new namespace of users, where ids are not mapped yet
    own_gid_ = getegid();
    wanted_ = text[0] != '-' || text[1] != '\0';
    for (char* line = text; wanted_ && line != nullptr && *line != '\0';) {
      char* const end = strchr(line, '\n');
      if (end != nullptr) *end = '\0';
      if (*line == 'U') {
        char* rest = nullptr;
        uid_ = static_cast<uid_t>(strtoul(line + 1, &rest, 10));
        if (rest == nullptr || *rest != ':') return false;
        gid_ = static_cast<gid_t>(strtoul(rest + 1, nullptr, 10));
        other_user_ = true;
      } else if (*line == 'N') {
        network_ = true;
        owned_network_ = line[1] == 'U';
      } else if (*line == 'L') {
        by_rules_ = true;
      } else if (count_ == kMost || line[1] != '/') {
        return false;
      } else {
        entries_[count_++] = {line[0], line + 1, -1};
      }
      line = end == nullptr ? nullptr : end + 1;
    }
    return true;
  }

  bool wanted() const { return wanted_; }
  // Whom the hook runs as, if not as the shim; 0: it does.
  uid_t user() const { return uid_; }
  // Rules do without: Docker's profile has no clone3.
  bool needs_namespaces() const { return wanted_ && !by_rules_; }
  // The owner of the network must be entered first, so the child then makes its namespaces itself.
  uint64_t clone_flags() const {
    return !wanted_ || by_rules_ || owned_network_ ? 0 : CLONE_NEWNS | (other_user_ ? 0 : CLONE_NEWUSER);
  }

  // In the child, before it changes its directory. 0 or an errno value.
  int make() {
    if (by_rules_) return take_on_rules();
    if (const int error = enter_network()) return error;
    if (!other_user_)
      if (const int error = map_user(own_uid_, own_gid_)) return error;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
    for (size_t i = 0; i < count_; ++i) // before anything is covered
      if (strchr("RWT", entries_[i].kind) != nullptr && !copy_of(entries_[i].path, entries_[i].tree)) return errno;
    int temporary = -1;
    if (const Entry* const shown = of_kind('T'))
      if (!copy_of(shown->path, temporary)) return errno;
    if (!set_flags(AT_FDCWD, "/", AT_RECURSIVE, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0)) return errno;
    (void)set_flags(AT_FDCWD, "/proc", 0, 0, MOUNT_ATTR_RDONLY); // refused if it was read-only before
    if (!private_memory()) return errno;
    if (const Entry* const shown = of_kind('T'))
      if (!attach(shown->tree, "/tmp", false) || !attach(temporary, "/var/tmp", false)) return errno;
    for (size_t i = 0; i < count_; ++i)
      if (strchr("HE", entries_[i].kind) != nullptr && !cover(entries_[i])) return errno;
    for (size_t i = 0; i < count_; ++i)
      if (strchr("RW", entries_[i].kind) != nullptr &&
          !attach(entries_[i].tree, entries_[i].path, entries_[i].kind == 'R'))
        return errno;
    for (size_t i = 0; i < count_; ++i)
      if (entries_[i].covered && entries_[i].kind == 'H' &&
          !set_flags(AT_FDCWD, entries_[i].path, 0, MOUNT_ATTR_RDONLY, 0))
        return errno;
    return 0;
  }

  // Prepares the process of the hook. Returns 0 or an errno value.
  int enter(const char* directory) const {
    if (!wanted_) return chdir(directory) == 0 ? 0 : errno;
    const int fd = base::open_no_links_at(AT_FDCWD, directory, O_PATH | O_DIRECTORY);
    if (fd < 0) return errno;
    const int error = fchdir(fd) == 0 ? 0 : errno;
    close(fd);
    return error;
  }

  // In the shim, once the child is there.
  void close_descriptors() const {
    if (by_rules_) close(kRulesDescriptor);
    if (network_) close(kNetworkDescriptor);
    if (owned_network_) close(kOwnerDescriptor);
  }

  // In the child, as the last thing before exec. 0 or an errno value.
  int change_user() const {
    if (!other_user_) return 0;
    if (syscall(SYS_setgroups, 1, &gid_) != 0 || syscall(SYS_setresgid, gid_, gid_, gid_) != 0 ||
        syscall(SYS_setresuid, uid_, uid_, uid_) != 0)
      return errno;
    if (by_rules_) return 0;
    if (syscall(SYS_unshare, CLONE_NEWUSER) != 0) return errno;
    return map_user(uid_, gid_);
  }

  // In a new namespace of users each id stands for itself, and there are no others.
  static int map_user(uid_t uid, gid_t gid) {
    prctl(PR_SET_DUMPABLE, 1); // our files in /proc are our own
    char text[64];
    if (!write_file("/proc/self/setgroups", "deny")) return errno;
    snprintf(text, sizeof text, "%u %u 1", gid, gid);
    if (!write_file("/proc/self/gid_map", text)) return errno;
    snprintf(text, sizeof text, "%u %u 1", uid, uid);
    if (!write_file("/proc/self/uid_map", text)) return errno;
    return 0;
  }

private:
  static constexpr size_t kMost = 1536;

  struct Entry {
    char kind;
    const char* path;
    int tree;
    bool covered{false};
  };

  static int mount(const char* what, const char* where, const char* type, unsigned long flags, const char* data) {
    return static_cast<int>(syscall(SYS_mount, what, where, type, flags, data));
  }

  static bool set_flags(int directory, const char* path, unsigned how, uint64_t set, uint64_t clear) {
    mount_attr attributes{};
    attributes.attr_set = set;
    attributes.attr_clr = clear;
    return syscall(SYS_mount_setattr, directory, path, how, &attributes, sizeof attributes) == 0;
  }

  // Makes another mount of the path, which keeps its flags; -1: there is nothing. Returns false if a link is on the
  // way: another hook may have left it there, to have its target shown to this one.
  static bool copy_of(const char* path, int& tree) {
    const int fd = base::open_no_links_at(AT_FDCWD, path, O_PATH);
    if (fd < 0) return errno != ELOOP;
    constexpr unsigned kFlags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH;
    tree = static_cast<int>(syscall(SYS_open_tree, fd, "", kFlags));
    close(fd);
    return true;
  }

  static bool write_file(const char* path, const char* text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const auto length = static_cast<ssize_t>(strlen(text));
    const bool written = write(fd, text, static_cast<size_t>(length)) == length;
    const int error = errno;
    close(fd);
    errno = error;
    return written;
  }

  static int take_on_rules() {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    return syscall(SYS_landlock_restrict_self, kRulesDescriptor, 0) == 0 ? 0 : errno;
  }

  int enter_network() const {
    if (!network_) return 0;
    if (owned_network_ && syscall(SYS_setns, kOwnerDescriptor, CLONE_NEWUSER) != 0) return errno;
    if (syscall(SYS_setns, kNetworkDescriptor, CLONE_NEWNET) != 0) return errno;
    return owned_network_ && syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS) != 0 ? errno : 0;
  }

  const Entry* of_kind(char kind) const {
    for (size_t i = 0; i < count_; ++i)
      if (entries_[i].kind == kind) return &entries_[i];
    return nullptr;
  }

  static bool private_memory() {
    return mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=1g") == 0 || errno == ENOENT;
  }

  bool cover(Entry& entry) const {
    struct stat status;
    if (stat(entry.path, &status) != 0) return true; // not there, or in a cover already, or closed to us
    if (!S_ISDIR(status.st_mode)) return mount("/dev/null", entry.path, nullptr, MS_BIND, nullptr) == 0;
    char options[96];
    if (entry.kind == 'H')
      snprintf(options, sizeof options, "mode=755,size=256k");
    else if (other_user_)
      snprintf(options, sizeof options, "mode=700,size=64m,uid=%u,gid=%u", uid_, gid_);
    else
      snprintf(options, sizeof options, "mode=700,size=64m");
    entry.covered = mount("tmpfs", entry.path, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
    return entry.covered;
  }

  // Moves a copy to its place, which is made if it is in a cover. A path that did not exist when the copies were made
  // is skipped.
  static bool attach(int tree, const char* path, bool read_only) {
    if (tree < 0) return true;
    struct stat status;
    if (fstat(tree, &status) != 0) return false;
    make_place(path, S_ISDIR(status.st_mode));
    if (!set_flags(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, MOUNT_ATTR_NOSUID | (read_only ? MOUNT_ATTR_RDONLY : 0u), 0))
      return false;
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0) return false;
    close(tree);
    return true;
  }

  // Existing places, and places that cannot be made, are left to move_mount.
  static void make_place(const char* path, bool directory) {
    char prefix[4096];
    const size_t length = strlen(path);
    if (length >= sizeof prefix) return;
    for (size_t i = 1; i <= length; ++i) {
      if (path[i] != '/' && path[i] != '\0') continue;
      memcpy(prefix, path, i);
      prefix[i] = '\0';
      if (path[i] == '/' || directory)
        mkdir(prefix, 0755);
      else
        close(open(prefix, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    }
  }

  Entry entries_[kMost]{};
  size_t count_{0};
  uid_t uid_{0};
  gid_t gid_{0};
  uid_t own_uid_{0}; // the shim's
  gid_t own_gid_{0};
  bool wanted_{false}, other_user_{false}, network_{false}, owned_network_{false}, by_rules_{false};
};

} // namespace holdfast::process::shim
