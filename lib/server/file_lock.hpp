#pragma once
// A lock on a whole file (flock), which the kernel drops when its holder dies, however it dies. Owned by one thread;
// the destructor unlocks. Private to lib/server.

#include "lib/base/file.hpp"

#include <chrono>
#include <filesystem>

namespace holdfast::server {

class FileLock {
public:
  // Opens or makes the file, which then belongs to the owner of its directory. Takes no lock yet. Throws
  // Error(cannot_create).
  explicit FileLock(const std::filesystem::path& file);

  bool try_exclusive() noexcept;
  // Returns false if it could not be had in time.
  bool exclusive(std::chrono::milliseconds limit);
  bool shared(std::chrono::milliseconds limit);
  void unlock() noexcept;

private:
  bool acquire(int operation, std::chrono::milliseconds limit);
  base::Fd file_;
};

} // namespace holdfast::server
