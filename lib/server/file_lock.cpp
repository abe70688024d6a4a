#include "lib/server/file_lock.hpp"

#include "lib/base/error.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
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

} // namespace holdfast::server
