#include "tests/unit/archive/private_mounts.hpp"

#include <doctest/doctest.h>

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace holdfast::test {

namespace {

bool write_text(const char* file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  stream.flush();
  return stream.good();
}

bool enter_namespace() {
  static const bool entered = [] {
    const auto user = std::to_string(getuid());
    const auto group = std::to_string(getgid());
    if (unshare(CLONE_NEWNS) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
      if (!write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/uid_map", user + " " + user + " 1") ||
          !write_text("/proc/self/gid_map", group + " " + group + " 1"))
        return false;
    }
    return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }();
  return entered;
}

} // namespace

bool mount_small_disk(const std::filesystem::path& directory, unsigned long bytes) {
  const std::string options = "size=" + std::to_string(bytes) + ",mode=755";
  return enter_namespace() && mount("tmpfs", directory.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

bool make_unreadable(const std::filesystem::path& file) {
  // A process has no memory at address 0.
  return enter_namespace() && mount("/proc/self/mem", file.c_str(), nullptr, MS_BIND, nullptr) == 0;
}

void make_read_only(const std::filesystem::path& directory, bool read_only) {
  const unsigned long flags = MS_REMOUNT | (read_only ? static_cast<unsigned long>(MS_RDONLY) : 0);
  REQUIRE(mount("tmpfs", directory.c_str(), "tmpfs", flags, nullptr) == 0);
}

void limit_files(const std::filesystem::path& directory, bool limited) {
  struct statvfs now {};
  REQUIRE(statvfs(directory.c_str(), &now) == 0);
  auto files = limited ? now.f_files - now.f_ffree : 100'000;
  while (mount("tmpfs", directory.c_str(), "tmpfs", MS_REMOUNT, ("nr_inodes=" + std::to_string(files)).c_str()) != 0)
    REQUIRE(++files < now.f_files); // some are on their way out
}

void unmount(const std::filesystem::path& directory) { REQUIRE(umount2(directory.c_str(), MNT_DETACH) == 0); }

} // namespace holdfast::test
