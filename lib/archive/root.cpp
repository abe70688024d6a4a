#include "lib/archive/root.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/bucket.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <future>
#include <limits>
#include <thread>
#include <utility>

namespace holdfast::archive {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::string_view kOwnPrefix = ".holdfast-";
constexpr std::uint64_t kLargestProbe = 64u << 20;

// The id in the sentinel, or nullopt if there is no sentinel.
std::optional<std::string> read_sentinel(const std::filesystem::path& directory) {
  const auto file = directory / kSentinel;
  const Fd fd = open_file_below(directory, kSentinel);
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
  return std::string(base::trimmed({buffer.data(), static_cast<std::size_t>(got)}));
}

void require_sentinel(const std::filesystem::path& directory, s3::Client* bucket, const std::string& id,
                      bool create = false) {
  std::optional<std::string> found;
  if (bucket == nullptr)
    found = read_sentinel(directory);
  else if (auto text = bucket_sentinel(*bucket, id, create); !text.empty())
    found = std::move(text);
  const std::string where = "archive root " + (bucket ? bucket->location().text() : printable(directory.native()));
  if (!found && bucket != nullptr) {
    throw Error(ErrorClass::unavailable, where + " has no object " + kSentinel,
                "is it the right bucket and prefix? A new archive begins where nothing else is");
  }
  if (!found) {
    throw Error(ErrorClass::unavailable, where + " has no sentinel file " + kSentinel,
                "is the volume mounted? If this is the archive, write the collection's id into that file: echo " + id +
                    " >" + printable((directory / kSentinel).native()));
  }
  if (*found != id) {
    throw Error(ErrorClass::unavailable,
                where + " belongs to another collection (" + printable(*found) + ", expected " + id + ")",
                "point archive.root to this collection's own directory");
  }
}

// An ext4 volume that was just made holds lost+found; another worker may be trying the very same right now.
bool looks_empty(const Fd& directory, const std::filesystem::path& path) {
  const auto names = list_names(directory.get(), path.native());
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return name == "lost+found" || name.starts_with(kOwnPrefix); });
}

// If several workers prepare one directory at a time, exactly one's sentinel stays: link(2) fails where a file is, over
// NFS too.
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

// Returns the name of this process's probe: the same each time, so that a process that is killed leaves at most one.
const std::string& probe_name() {
  static const std::string name = std::string(kOwnPrefix) + "probe-" + base::random_hex32();
  return name;
}

// access(2) does not know about quotas, exports and read-only mounts: only writing shows that one can write.
void probe_directory(const Fd& directory, const std::filesystem::path& path, std::uint64_t bytes) {
  const auto& name = probe_name();
  const auto shown = path / name;
  remove_tree_at(directory.get(), name, shown.native());
  if (::mkdirat(directory.get(), name.c_str(), 0755) != 0) throw_errno(errno, "create the directory", shown.native());
  try {
    const Fd made = open_directory_at(directory.get(), name);
    if (!made) throw_errno(errno, "open the directory", shown.native());
    const std::string piece(std::min<std::uint64_t>(bytes, 1u << 20), 'x');
    const auto fill = [&](int file) {
      for (auto left = bytes; left > 0; left -= std::min<std::uint64_t>(left, piece.size()))
        write_all(file, std::string_view(piece).substr(0, left), shown.native());
    };
    write_file_at(made.get(), "attempt", fill, (shown / "attempt").native(), true); // writes, syncs and renames
    sync_fd(made.get(), shown.native());
  } catch (...) {
    remove_tree_at(directory.get(), name, shown.native());
    throw;
  }
  remove_tree_at(directory.get(), name, shown.native());
}

} // namespace

std::optional<std::string> directory_sentinel(const std::filesystem::path& root) { return read_sentinel(root); }

Root Root::open(const std::filesystem::path& directory, const std::string& collection_id, bool create) {
  if (s3::is_location(directory.native())) {
    auto bucket = std::make_shared<s3::Client>(s3::parse_location(directory.native()));
    require_sentinel({}, bucket.get(), collection_id, create);
    return {{}, std::move(bucket), collection_id};
  }
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
  require_sentinel(path, nullptr, collection_id);
  probe_directory(fd, path, 1);
  return {path, nullptr, collection_id};
}

void Root::probe(const std::filesystem::path& below, std::uint64_t bytes) const {
  check();
  bytes = std::clamp<std::uint64_t>(bytes, 1, kLargestProbe);
  if (!bucket_) return probe_directory(make_directories(path_, below), path_ / below, bytes);
  const auto key = (below / probe_name()).native();
  const std::string piece(1u << 20, 'x');
  auto left = bytes;
  bucket_->put_stream(key, bytes, "text/plain", [&](char* buffer, std::size_t room) {
    const auto size = std::min({static_cast<std::size_t>(left), room, piece.size()});
    std::copy_n(piece.data(), size, buffer);
    left -= size;
    return size;
  });
  bucket_->remove(key);
}

void Root::check() const { require_sentinel(path_, bucket_.get(), id_); }

void Root::write_file(const std::filesystem::path& file, const std::string& text, const std::string& type) const {
  check();
  if (bucket_) return bucket_->put(file.native(), text, type);
  const Fd directory = make_directories(path_, file.parent_path());
  write_file_at(directory.get(), file.filename().native(), text, (path_ / file).native(), true);
}

void Root::write_file(const std::filesystem::path& file, std::uint64_t size, const std::string& type,
                      const Read& read) const {
  check();
  if (bucket_) {
    bucket_->put_stream(file.native(), size, type, read);
    return;
  }
  const auto path = path_ / file;
  const Fd directory = make_directories(path_, file.parent_path());
  const auto fill = [&](int to) {
    std::vector<char> piece(std::min<std::uint64_t>(size + 1, 1u << 20));
    std::uint64_t written = 0;
    while (const auto got = read(piece.data(), piece.size())) {
      write_all(to, {piece.data(), got}, path.native());
      written += got;
    }
    if (written != size) throw Error(ErrorClass::input_output, path.native() + " changed while it was written");
  };
  write_file_at(directory.get(), path.filename().native(), fill, path.native(), true);
}

void Root::remove_file(const std::filesystem::path& file) const {
  check();
  if (bucket_) return bucket_->remove(file.native());
  const auto parent = file.parent_path();
  const Fd directory = open_below(path_, parent, O_RDONLY | O_DIRECTORY);
  if ((!directory || ::unlinkat(directory.get(), file.filename().c_str(), 0) != 0) && errno != ENOENT &&
      errno != ENOTDIR)
    throw_errno(errno, "remove", (path_ / file).native());
  if (const Fd above = open_below(path_, parent.parent_path(), O_RDONLY | O_DIRECTORY))
    ::unlinkat(above.get(), parent.filename().c_str(), AT_REMOVEDIR); // only if nothing else is there
}

base::Fd Root::open_file(const std::string& file) const {
  if (!bucket_) return open_file_below(path_, file);
  // A video may be larger than our memory: then where temporary files go.
  constexpr std::uint64_t kInMemory = 64u << 20;
  Fd copy(::memfd_create("archived", MFD_CLOEXEC));
  if (!copy) throw_errno(errno, "create", "a file in memory");
  std::uint64_t size = 0;
  bool moved = false;
  const bool found = bucket_->get(file, [&](std::string_view bytes) {
    if (!moved && size + bytes.size() > kInMemory) {
      const auto directory = std::filesystem::temp_directory_path();
      Fd larger(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
      if (!larger) throw_errno(errno, "create a file in", directory.native());
      const auto write = [&](std::string_view piece) { write_all(larger.get(), piece, directory.native()); };
      if (base::each_piece(copy.get(), 0, size, write) < 0) throw_errno(errno, "read", "a file in memory");
      copy = std::move(larger);
      moved = true;
    }
    write_all(copy.get(), bytes, file);
    size += bytes.size();
  });
  if (!found) return {};
  ::lseek(copy.get(), 0, SEEK_SET);
  return copy;
}

namespace {

std::string probe_trouble(const std::filesystem::path& root) {
  try {
    std::string id;
    if (s3::is_location(root.native()))
      s3::Client(s3::parse_location(root.native())).get(kSentinel, id);
    else if (std::filesystem::is_directory(root))
      id = read_sentinel(root).value_or("");
    if (!id.empty()) Root::open(root, std::string(base::trimmed(id)), false).probe({}, 1);
  } catch (const Error& error) {
    return error.what() + (error.hint().empty() ? "" : ": " + error.hint());
  }
  return {};
}

} // namespace

std::string find_trouble(const std::filesystem::path& root) {
  constexpr std::chrono::seconds kTimeout{15};
  std::packaged_task<std::string()> probe([root] { return probe_trouble(root); });
  auto answer = probe.get_future();
  std::thread(std::move(probe)).detach(); // the server of a directory (NFS) may never answer
  return answer.wait_for(kTimeout) == std::future_status::ready ? answer.get() : "it does not answer";
}

std::string shown(const std::filesystem::path& root, const std::filesystem::path& file) {
  if (s3::is_location(root.native())) return s3::parse_location(root.native()).text() + "/" + file.native();
  return (root / file).string();
}

std::uint64_t Root::free_bytes() const {
  if (bucket_) return std::numeric_limits<std::uint64_t>::max();
  struct statvfs status {};
  if (::statvfs(path_.c_str(), &status) != 0) throw_errno(errno, "measure the free space of", path_.native());
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

} // namespace holdfast::archive
