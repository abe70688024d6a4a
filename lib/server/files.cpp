#include "lib/server/files.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <thread>

namespace holdfast::server {

FileLock::FileLock(const std::filesystem::path& file)
    : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (!file_) {
    throw base::Error(base::ErrorClass::cannot_create, "cannot write " + file.string() + ": " + base::errno_text(errno),
                      "check the owner, the permissions and the free space of data_dir");
  }
  struct stat directory {};
  if (::geteuid() == 0 && ::stat(file.parent_path().c_str(), &directory) == 0) {
    // Root must not leave a file that locks the owner of the data directory out of their own server.
    (void)!::fchown(file_.get(), directory.st_uid, directory.st_gid);
  }
}

bool FileLock::try_exclusive() noexcept { return ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0; }

bool FileLock::exclusive(std::chrono::milliseconds limit) { return acquire(LOCK_EX, limit); }

bool FileLock::shared(std::chrono::milliseconds limit) { return acquire(LOCK_SH, limit); }

void FileLock::unlock() noexcept { ::flock(file_.get(), LOCK_UN); }

bool FileLock::acquire(int operation, std::chrono::milliseconds limit) {
  // flock() has no deadline, so it is tried repeatedly; the lock is only held while a server starts or stops.
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (::flock(file_.get(), operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throw base::Error(base::ErrorClass::system, "cannot lock a file in data_dir: " + base::errno_text(errno));
    }
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;

constexpr std::size_t kLongestSocketPath = 107; // sun_path, without the NUL
constexpr std::string_view kSocketName = "/.s.PGSQL.5432";

bool fits(const std::string& directory) {
  return directory.size() + kSocketName.size() <= kLongestSocketPath &&
         std::all_of(directory.begin(), directory.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("/._-+@~").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

bool belongs_to(const fs::path& directory, uid_t uid) {
  struct stat status {};
  return ::lstat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == uid &&
         (status.st_mode & 077) == 0;
}

} // namespace

fs::path socket_directory(const fs::path& data_dir, const User& user) {
  const fs::path beside = data_dir / "postgres-run";
  if (fits(beside.string())) return beside;
  const std::string name =
      "holdfast-" + std::to_string(user.uid) + "-" + base::sha256_hex(data_dir.string()).substr(0, 16);
  const char* const runtime = ::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && belongs_to(runtime, user.uid) && fits(fs::path(runtime) / name)) {
    return fs::path(runtime) / name;
  }
  return fs::path("/tmp") / name;
}

void make_socket_directory(const fs::path& directory, const User& user) {
  const bool made = ::mkdir(directory.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) {
    throw Error(ErrorClass::cannot_create,
                "cannot make the socket directory " + directory.string() + ": " + base::errno_text(errno));
  }
  if (made && ::geteuid() != user.uid && ::lchown(directory.c_str(), user.uid, user.gid) != 0) {
    throw Error(ErrorClass::cannot_create,
                "cannot give " + directory.string() + " to user " + user.name + ": " + base::errno_text(errno));
  }
  if (made) ::chmod(directory.c_str(), 0700); // whatever the umask took
  if (!belongs_to(directory, user.uid)) {
    throw Error(ErrorClass::cannot_create,
                "the socket directory " + directory.string() + " is not a directory that only user " + user.name +
                    " can enter",
                "remove it, or find out who made it");
  }
}

} // namespace holdfast::server
