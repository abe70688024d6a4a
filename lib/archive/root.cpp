#include "lib/archive/root.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

namespace holdfast::archive {

using base::Error;
using base::ErrorClass;

namespace {

constexpr const char* kSentinel = ".holdfast-archive";
constexpr std::string_view kOwnPrefix = ".holdfast-";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  return text;
}

// The id in the sentinel, or nullopt if there is no sentinel.
std::optional<std::string> read_sentinel(const std::filesystem::path& directory) {
  const auto file = directory / kSentinel;
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw Error(ErrorClass::unavailable, "cannot read " + printable(file.native()) + ": " + base::errno_text(errno));
  }
  std::array<char, 256> buffer{};
  ssize_t got = -1;
  do {
    got = ::read(fd.get(), buffer.data(), buffer.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0)
    throw Error(ErrorClass::unavailable, "cannot read " + printable(file.native()) + ": " + base::errno_text(errno));
  return std::string(trimmed({buffer.data(), static_cast<std::size_t>(got)}));
}

void require_sentinel(const std::filesystem::path& directory, const std::string& id) {
  const auto found = read_sentinel(directory);
  const std::string where = "archive root " + printable(directory.native());
  if (!found) {
    throw Error(ErrorClass::unavailable, where + " has no sentinel file " + kSentinel,
                "is the volume mounted? If it is, archive.root names a directory that is not an archive");
  }
  if (*found != id) {
    throw Error(ErrorClass::unavailable,
                where + " belongs to another collection (" + printable(*found) + ", expected " + id + ")",
                "point archive.root to this collection's own directory");
  }
}

// An ext4 volume that was just made holds lost+found; another node may be trying the very same right now.
bool looks_empty(const Fd& directory, const std::filesystem::path& path) {
  const auto names = list_names(directory.get(), path.native());
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return name == "lost+found" || name.starts_with(kOwnPrefix); });
}

// Of several nodes that prepare one directory at a time, exactly one's sentinel stays: link(2) fails where a file is,
// over NFS too.
void create_sentinel(const Fd& directory, const std::filesystem::path& path, const std::string& id) {
  const auto file = path / kSentinel;
  const std::string temporary = std::string(kOwnPrefix) + "partial-" + base::random_hex32();
  {
    const Fd fd(::openat(directory.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) throw_errno(errno, "create", file.native());
    try {
      write_all(fd.get(), id + "\n", file.native());
      sync_fd(fd.get(), file.native());
    } catch (...) {
      ::unlinkat(directory.get(), temporary.c_str(), 0);
      throw;
    }
  }
  int result = ::linkat(directory.get(), temporary.c_str(), directory.get(), kSentinel, 0);
  if (result != 0 && (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK)) // no hard links there
    result = ::renameat(directory.get(), temporary.c_str(), directory.get(), kSentinel);
  const int error_number = errno;
  ::unlinkat(directory.get(), temporary.c_str(), 0);
  if (result != 0 && error_number != EEXIST) throw_errno(error_number, "create", file.native());
  sync_fd(directory.get(), path.native());
}

// The only proof that one can write is to write: access(2) knows nothing of quotas, exports and read-only mounts.
void require_writable(const Fd& directory, const std::filesystem::path& path) {
  const std::string probe = std::string(kOwnPrefix) + "probe-" + base::random_hex32();
  const Fd fd(::openat(directory.get(), probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) {
    throw Error(ErrorClass::cannot_create,
                "archive root " + printable(path.native()) + " is not writable: " + base::errno_text(errno),
                "give the account that runs holdfast the right to write there");
  }
  ::unlinkat(directory.get(), probe.c_str(), 0);
}

} // namespace

Root Root::open(const std::filesystem::path& directory, const std::string& collection_id, bool create) {
  std::error_code failure;
  const auto path = std::filesystem::absolute(directory, failure).lexically_normal();
  if (create) {
    std::filesystem::create_directories(path, failure);
    if (failure) throw_errno(failure.value(), "create the archive root", path.native());
  } else if (!std::filesystem::is_directory(path, failure)) {
    throw Error(ErrorClass::unavailable, "archive root " + printable(path.native()) + " is not a directory",
                "is the volume mounted? Set archive.root to the directory that holds the archive");
  }
  const Fd fd = open_directory(path);
  if (create && !read_sentinel(path) && looks_empty(fd, path)) create_sentinel(fd, path, collection_id);
  require_sentinel(path, collection_id);
  require_writable(fd, path);
  return {path, collection_id};
}

void Root::check() const { require_sentinel(path_, id_); }

std::uint64_t Root::free_bytes() const {
  struct statvfs status {};
  if (::statvfs(path_.c_str(), &status) != 0) throw_errno(errno, "measure the free space of", path_.native());
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

} // namespace holdfast::archive
