#include "lib/archive/file_work.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace holdfast::archive {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::size_t kBufferSize = 256 * 1024;

std::string join(std::string_view path, std::string_view name) { return std::string(path) + "/" + std::string(name); }

} // namespace

void throw_errno(int error_number, std::string_view action, std::string_view path) {
  auto error_class = ErrorClass::input_output;
  std::string hint;
  switch (error_number) {
  case ENOSPC:
  case EDQUOT:
    error_class = ErrorClass::cannot_create;
    hint = "free some space there, then try again";
    break;
  case EROFS:
  case EACCES:
  case EPERM:
    error_class = ErrorClass::cannot_create;
    hint = "give the account that runs holdfast the right to write there";
    break;
  case EFBIG:
    error_class = ErrorClass::cannot_create;
    break;
  case EMFILE:
  case ENFILE:
  case ENOMEM:
    error_class = ErrorClass::system;
    break;
  default:
    break;
  }
  throw Error(error_class,
              "cannot " + std::string(action) + " " + printable(path) + ": " + base::errno_text(error_number), hint);
}

std::string printable(std::string_view path) {
  std::string out;
  for (const char c : base::percent_encode_invalid_utf8(path))
    base::is_control(c) ? base::append_percent(out, c) : out.push_back(c);
  return out;
}

Fd open_directory(const std::filesystem::path& directory) {
  Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw_errno(errno, "open the directory", directory.native());
  return fd;
}

Fd open_own_parent(const std::filesystem::path& path) {
  Fd fd = base::open_no_links(path.parent_path(), O_RDONLY | O_DIRECTORY);
  if (!fd) throw_errno(errno, "open the directory", path.parent_path().native());
  return fd;
}

Fd open_own_directory(const std::filesystem::path& directory) {
  Fd fd = find_own_directory(directory);
  if (!fd) throw_errno(ENOENT, "open the directory", directory.native());
  return fd;
}

Fd find_own_directory(const std::filesystem::path& directory) {
  Fd fd = base::open_no_links(directory, O_RDONLY | O_DIRECTORY);
  if (!fd && errno == EACCES) {
    const Fd parent = open_own_parent(directory);
    const auto name = directory.filename();
    if (::fchmodat(parent.get(), name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0)
      fd = open_directory_at(parent.get(), name);
  }
  if (!fd && errno == ENOENT) return fd;
  if (!fd) throw_errno(errno, "open the directory", directory.native());
  struct stat status {};
  if (::fstat(fd.get(), &status) == 0 && (status.st_mode & 0700) != 0700) ::fchmod(fd.get(), 0755);
  return fd;
}

Fd open_directory_at(int parent, const std::string& name) {
  return Fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Fd open_file_at(int parent, const std::string& name, struct stat& status) {
  // O_NONBLOCK: what was a file a moment ago may be a fifo now.
  Fd fd(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd || ::fstat(fd.get(), &status) != 0) return {};
  if (S_ISREG(status.st_mode)) return fd;
  fd.reset();
  errno = EINVAL; // for callers that report why
  return {};
}

namespace {

Fd open_resolved(int top, const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC | ((flags & O_PATH) != 0 ? 0U : O_NONBLOCK | O_NOCTTY);
  how.resolve = resolve;
  // EAGAIN: a rename happened anywhere on the machine while ".." was being resolved.
  for (int attempts = 0; attempts < 1000; ++attempts) {
    const long fd = ::syscall(SYS_openat2, top, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EAGAIN && errno != EINTR) break;
  }
  return {};
}

} // namespace

Fd open_beneath(int top, const std::string& path, int flags) {
  return open_resolved(top, path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

Fd open_below(const std::filesystem::path& root, const std::filesystem::path& relative, int flags) {
  const Fd top(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) return {};
  return open_resolved(top.get(), relative.empty() ? "." : relative.native(), flags,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

Fd open_file_below(const std::filesystem::path& root, const std::filesystem::path& file) {
  Fd fd = open_below(root, file, O_RDONLY);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return {};
  if (S_ISREG(status.st_mode)) return fd;
  fd.reset();
  errno = EINVAL;
  return {};
}

std::vector<DirectoryEntry> list_entries(int directory, std::string_view path) {
  if (::lseek(directory, 0, SEEK_SET) < 0) throw_errno(errno, "read the directory", path);
  std::vector<DirectoryEntry> entries;
  alignas(dirent64) std::array<char, 32 * 1024> buffer;
  for (;;) {
    const ssize_t got = ::getdents64(directory, buffer.data(), buffer.size());
    if (got < 0 && errno == ENOENT) break; // it was removed since it was opened
    if (got < 0) throw_errno(errno, "read the directory", path);
    if (got == 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat status {};
      status.st_mode = DTTOIF(entry->d_type);
      // Not every file system reports the type. A deleted entry has none.
      if (entry->d_type == DT_UNKNOWN) ::fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW);
      entries.push_back({std::string(name), status.st_mode & S_IFMT});
    }
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

std::vector<std::string> list_names(int directory, std::string_view path) {
  std::vector<std::string> names;
  for (auto& entry : list_entries(directory, path))
    names.push_back(std::move(entry.name));
  return names;
}

std::string read_rest(int fd, std::string_view path, std::size_t limit) {
  std::string text;
  char buffer[65536];
  while (text.size() < limit) {
    const ssize_t got = ::read(fd, buffer, std::min(sizeof buffer, limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(errno, "read", path);
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

void check_cancelled(Cancelled cancelled) {
  if (cancelled != nullptr && cancelled->load())
    throw Error(ErrorClass::temporary, "the files are no longer wanted: their attempt is over");
}

namespace {

// Returns where data begins at or after `offset`, and where it ends; a file system without such information has data
// everywhere.
std::pair<std::uint64_t, std::uint64_t> next_data(int fd, std::uint64_t offset, std::uint64_t size) {
  const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) return errno == ENXIO ? std::pair(size, size) : std::pair(offset, size);
  const off_t hole = ::lseek(fd, data, SEEK_HOLE);
  const auto begin = std::min(static_cast<std::uint64_t>(data), size);
  return {begin, hole < 0 ? size : std::min(static_cast<std::uint64_t>(hole), size)};
}

void write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_errno(errno, "write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

} // namespace

void copy_body(int from, int to, std::uint64_t size, std::string_view path, Cancelled cancelled,
               const std::function<void(std::string_view)>& seen) {
  std::vector<char> buffer(kBufferSize);
  const std::vector<char> zeros(kBufferSize);
  std::uint64_t offset = 0;
  while (offset < size) {
    const auto [data, hole] = next_data(from, offset, size);
    while (offset < data) {
      check_cancelled(cancelled);
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(data - offset, zeros.size()));
      seen({zeros.data(), piece});
      offset += piece;
    }
    while (offset < hole) {
      check_cancelled(cancelled);
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(hole - offset, buffer.size()));
      const auto got = base::read_at(from, buffer.data(), piece, offset);
      if (got < 0)
        throw Error(ErrorClass::input_output, "cannot read " + printable(path) + ": " + base::errno_text(errno));
      if (got == 0) throw Error(ErrorClass::input_output, printable(path) + " became shorter while it was copied");
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      seen(bytes);
      write_at(to, bytes, offset, path);
      offset += bytes.size();
    }
  }
  if (::ftruncate(to, static_cast<off_t>(size)) != 0) throw_errno(errno, "write", path);
}

std::string hash_rest(int fd, std::string_view path, std::uint64_t& bytes, Cancelled cancelled) {
  thread_local std::vector<char> buffer(kBufferSize);
  Sha256 hash;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      throw Error(ErrorClass::input_output, "cannot read " + printable(path) + ": " + base::errno_text(errno));
    }
    if (got == 0) return hash.finish();
    check_cancelled(cancelled);
    hash.update({buffer.data(), static_cast<std::size_t>(got)});
    bytes += static_cast<std::uint64_t>(got);
  }
}

void write_all(int fd, std::string_view text, std::string_view path) {
  if (!base::write_all(fd, text)) throw_errno(errno, "write", path);
}

void read_range(int fd, std::uint64_t begin, std::uint64_t end, std::string_view path,
                const std::function<void(std::string_view)>& take) {
  const auto got = base::each_piece(fd, begin, end, take);
  if (got < 0) throw_errno(errno, "read", path);
  if (got < static_cast<std::int64_t>(end - begin))
    throw Error(ErrorClass::input_output, printable(path) + " became shorter while it was read",
                "try it again when nothing writes to it");
}

void sync_fd(int fd, std::string_view path) {
  while (::fsync(fd) != 0) {
    if (errno == EINTR) continue;
    // Some network file systems cannot sync a directory and report that; there its entries are durable by protocol.
    if (errno == EINVAL || errno == EOPNOTSUPP) return;
    throw_errno(errno, "make durable", path);
  }
}

void write_file_at(int directory, const std::string& name, std::string_view text, std::string_view path, bool durable) {
  write_file_at(
      directory, name, [&](int file) { write_all(file, text, path); }, path, durable);
}

void write_file_at(int directory, const std::string& name, const std::function<void(int file)>& fill,
                   std::string_view path, bool durable) {
  struct stat status {};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode))
    remove_tree_at(directory, name, path);

  const std::string temporary = ".partial-" + base::random_hex32();
  Fd fd(::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) throw_errno(errno, "create", path);
  try {
    fill(fd.get());
    if (durable) sync_fd(fd.get(), path);
    if (::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) throw_errno(errno, "create", path);
  } catch (...) {
    ::unlinkat(directory, temporary.c_str(), 0);
    throw;
  }
  if (durable) sync_fd(directory, path);
}

namespace {

// Opens a directory that its writer may have locked against us.
Fd open_for_removal(int parent, const std::string& name, std::string_view path) {
  Fd fd = open_directory_at(parent, name);
  struct stat status {};
  const bool locked = !fd || (::fstat(fd.get(), &status) == 0 && (status.st_mode & 0700) != 0700);
  if (locked && ::fchmodat(parent, name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0) fd = open_directory_at(parent, name);
  if (!fd && errno != ENOENT) throw_errno(errno, "remove", join(path, name));
  return fd;
}

void remove_file_at(int parent, const std::string& name, std::string_view path) {
  if (::unlinkat(parent, name.c_str(), 0) != 0 && errno != ENOENT) throw_errno(errno, "remove", join(path, name));
}

bool is_directory_at(int parent, const std::string& name) {
  struct stat status {};
  return ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

} // namespace

void remove_tree_at(int parent, const std::string& name, std::string_view path) {
  if (!is_directory_at(parent, name)) return remove_file_at(parent, name, path);
  // Subdirectories are pulled up to the top before they are emptied: no recursion, so no depth can exhaust the stack or
  // the descriptors, and no path gets too long.
  std::uint64_t pulled_up = 0;
  const std::string prefix = ".remove-" + base::random_hex32() + "-";
  // Another process may remove the same tree: a deleted entry is done, and the next round finds entries that moved up
  // meanwhile.
  while (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    if (errno != ENOTEMPTY) throw_errno(errno, "remove", path);
    const Fd top = open_for_removal(parent, name, path);
    if (!top) return;
    for (const std::string& entry : list_names(top.get(), path)) {
      if (!is_directory_at(top.get(), entry)) {
        remove_file_at(top.get(), entry, path);
        continue;
      }
      if (::unlinkat(top.get(), entry.c_str(), AT_REMOVEDIR) == 0) continue;
      const Fd directory = open_for_removal(top.get(), entry, path);
      if (!directory) continue;
      for (const std::string& inner : list_names(directory.get(), path)) {
        if (!is_directory_at(directory.get(), inner)) {
          remove_file_at(directory.get(), inner, path);
          continue;
        }
        const std::string up = prefix + std::to_string(pulled_up++);
        if (::renameat(directory.get(), inner.c_str(), top.get(), up.c_str()) == 0) continue;
        // Moving a directory needs the right to write into it, because of its "..".
        open_for_removal(directory.get(), inner, path);
        if (::renameat(directory.get(), inner.c_str(), top.get(), up.c_str()) != 0 && errno != ENOENT)
          throw_errno(errno, "remove", join(path, inner));
      }
      if (::unlinkat(top.get(), entry.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT && errno != ENOTEMPTY)
        throw_errno(errno, "remove", join(path, entry));
    }
  }
}

Fd make_directories(const std::filesystem::path& top, const std::filesystem::path& relative) {
  Fd directory = open_directory(top);
  std::filesystem::path sofar = top;
  for (const auto& part : relative) {
    if (part.empty() || part == ".") continue;
    sofar /= part;
    if (::mkdirat(directory.get(), part.c_str(), 0755) == 0) {
      sync_fd(directory.get(), sofar.native());
    } else if (errno != EEXIST) {
      throw_errno(errno, "create the directory", sofar.native());
    }
    Fd next = open_directory_at(directory.get(), part.native());
    if (!next) throw_errno(errno, "open the directory", sofar.native());
    directory = std::move(next);
  }
  return directory;
}

} // namespace holdfast::archive
