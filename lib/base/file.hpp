#pragma once
// Open files: closing, reading at an offset, writing whole buffers, and modes of new files. Any thread. Files in places
// where a hook may plant links are opened with open_no_links().

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::base {

// Owner of one file descriptor. The destructor closes it and ignores errors: what must be durable is fsynced before.
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); } // to a caller that closes it
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

private:
  int fd_{-1};
};

// Up to `size` bytes, also if a signal interrupts. 0: the file ends before them; -1, with errno: that cannot be.
inline ssize_t read_at(int descriptor, char* buffer, std::size_t size, std::uint64_t offset) noexcept {
  for (;;) {
    const auto count = ::pread(descriptor, buffer, size, static_cast<off_t>(offset));
    if (count >= 0 || errno != EINTR) return count;
  }
}

// Returns true if the file has this text at a place.
inline bool holds_at(int descriptor, std::uint64_t offset, std::string_view text) {
  std::string there(text.size(), '\0');
  return read_at(descriptor, there.data(), there.size(), offset) == static_cast<ssize_t>(text.size()) && there == text;
}

// Hands on the bytes from `begin` to `end`, or to where the file ends. Returns how many; -1, with errno: that cannot
// be.
template <typename Take>
std::int64_t each_piece(int descriptor, std::uint64_t begin, std::uint64_t end, Take&& take) {
  std::string piece(begin < end ? std::min<std::uint64_t>(end - begin, 1u << 18) : 0, '\0');
  auto at = begin;
  while (at < end) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), end - at));
    const auto got = read_at(descriptor, piece.data(), most, at);
    if (got < 0) return -1;
    if (got == 0) break;
    take(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
    at += static_cast<std::uint64_t>(got);
  }
  return static_cast<std::int64_t>(at - begin);
}

// True for the files that a worker keeps beside the outputs of a hook: <hook>.<32 hex digits> with ".stdout.log",
// ".stderr.log", ".pid" or ".sh". All other names belong to the hook.
bool is_runner_file(std::string_view name) noexcept;

// At most the first `most` bytes of a regular file; empty if it cannot be read. `flags`: of open(2), more of them.
std::string read_file(const std::filesystem::path& path, std::size_t most, int flags = 0);
// At most the last `most` bytes of one in a directory that a hook may write.
std::string tail_of(const std::filesystem::path& path, std::size_t most);

// Returns the text of a file of secrets, which `setting` names. Throws Error of class configuration if it cannot be
// read, or if every user of this machine can read it.
std::string secret_text(const std::filesystem::path& path, const std::string& setting);

// Writes all bytes to a blocking descriptor, also if a signal interrupts or the system takes fewer at once. Returns
// false, with errno, on failure.
inline bool write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const auto count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// For work that is under way: an open file without a name in that directory; none, with errno, if there can be no such
// file.
inline Fd unnamed_file(const std::string& directory) {
  Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  auto name = directory + "/.spoolXXXXXX"; // not every file system has files without a name
  file.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (file) ::unlink(name.c_str());
  return file;
}

// `mode` without what the umask with which the program was started takes from others; the owner keeps its part. First
// called by main(), before there are threads.
inline mode_t allowed(mode_t mode) {
  static const mode_t mask = [] {
    const mode_t before = ::umask(077);
    ::umask(before);
    return before & mode_t{0077};
  }();
  return mode & ~mask;
}

// Files in directories that a hook may write. A hook plants symbolic links where the worker or its shim, which may do
// more than the hook, is about to open, create, change, measure or remove something. These functions follow no link in
// any part of a path: they fail with ELOOP. The path of such a directory must be without links, as work_dir of a
// running worker is. Any thread; blocking. Linux 5.6.

// Like open(2): empty, with errno, if it fails.
Fd open_no_links(const std::filesystem::path& path, int flags, mode_t mode = 0);
// Like lstat(2): what the path names may be a link.
bool stat_no_links(const std::filesystem::path& path, struct stat& status);
// Opens a directory, which is made with those above it where they are missing.
Fd make_directories_no_links(const std::filesystem::path& directory, mode_t mode = 0755);
// Like unlink(2).
bool remove_no_links(const std::filesystem::path& file);

} // namespace holdfast::base
