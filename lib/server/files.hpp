#pragma once
// A lock on a whole file (flock), which the kernel drops when its holder dies, however it dies. Owned by one thread;
// the destructor unlocks. Private to lib/server.

#include "lib/base/file.hpp"
#include "lib/server/postmaster.hpp"

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

// Directory of the server's socket. Private to lib/server; pure apart from the directory it makes.

// <data_dir>/postgres-run if a socket's path fits into it (107 bytes, and no character that means something in a list
// of hosts), else a short directory below $XDG_RUNTIME_DIR or /tmp, named by a digest of data_dir.
std::filesystem::path socket_directory(const std::filesystem::path& data_dir, const User& user);

// Makes it, for the user alone. Throws Error(cannot_create), also if another process made it first.
void make_socket_directory(const std::filesystem::path& directory, const User& user);

} // namespace holdfast::server
