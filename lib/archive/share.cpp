#include "lib/archive/share.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/manifest.hpp"
#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sstream>

namespace holdfast::archive {

namespace {

namespace fs = std::filesystem;

struct Named {
  std::string digest, path;
};

// Lines as manifest_line() writes them; those with an escaped name are left out, they are rare.
std::vector<Named> read_manifest(const fs::path& root, const fs::path& attempt) {
  std::vector<Named> named;
  const Fd file = open_file_below(root, attempt / kManifestName);
  if (!file) return named;
  std::istringstream stream(read_rest(file.get(), (root / attempt / kManifestName).native()));
  for (std::string line; std::getline(stream, line);) {
    if (line.size() < 67 || line.compare(64, 2, "  ") != 0) continue;
    Named one{line.substr(0, 64), line.substr(66)};
    if (one.digest.find_first_not_of("0123456789abcdef") == std::string::npos) named.push_back(std::move(one));
  }
  return named;
}

fs::path body_path(const fs::path& root, const std::string& digest) {
  return root / kBodies / digest.substr(0, 2) / digest;
}

Fd open_plain(const fs::path& path, struct stat& status) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (fd && (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))) fd.reset();
  return fd;
}

bool read_full(int fd, char* buffer, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::read(fd, buffer + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

bool same_content(int left, int right, std::uint64_t size) {
  std::vector<char> a(256 * 1024), b(256 * 1024);
  while (size > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size, a.size()));
    if (!read_full(left, a.data(), part) || !read_full(right, b.data(), part)) return false;
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(part), b.begin())) return false;
    size -= part;
  }
  return true;
}

// Gives `name` the body of `source`, in one step; what a crash leaves of it lies below .bodies.
bool put_link(const fs::path& source, const fs::path& name, const fs::path& bodies) {
  const fs::path aside = bodies / (".link-" + base::random_hex32());
  if (::link(source.c_str(), aside.c_str()) != 0) return false;
  // Of two names of one body, rename() would leave both.
  if (::rename(aside.c_str(), name.c_str()) != 0) {
    const int error = errno;
    ::unlink(aside.c_str());
    errno = error;
    return false;
  }
  ::unlink(aside.c_str());
  return true;
}

void tell_once(const fs::path& body) {
  static std::atomic<bool> told{false};
  const int error = errno;
  if (!told.exchange(true))
    spdlog::warn("equal files stay copies: cannot link {}: {}", body.native(), base::errno_text(error));
}

// Lets `file` share the body of that path with others. False: this file system has no links.
bool share_file(const fs::path& file, const fs::path& body, Shared& shared) {
  struct stat status {
  }, body_status{};
  const Fd fd = open_plain(file, status);
  if (!fd || static_cast<std::uint64_t>(status.st_size) < kLeastShared) return true;
  const Fd body_fd = open_plain(body, body_status);
  if (body_fd && body_status.st_dev == status.st_dev && body_status.st_ino == status.st_ino) return true;
  if (body_fd && body_status.st_size == status.st_size &&
      same_content(fd.get(), body_fd.get(), static_cast<std::uint64_t>(status.st_size))) {
    if (put_link(body, file, body.parent_path())) {
      ++shared.files;
      shared.bytes += static_cast<std::uint64_t>(status.st_size);
      return true;
    }
    if (errno != EMLINK && errno != ENOENT) { // too many names: ours begins a new body
      tell_once(body);
      return false;
    }
  }
  fs::create_directories(body.parent_path());
  if (!body_fd) { // of two workers that have an equal file now, one is first
    if (::link(file.c_str(), body.c_str()) == 0) return true;
    if (errno == EEXIST && open_plain(body, body_status)) return share_file(file, body, shared);
  }
  // One that has been damaged or is full: ours takes its place. Snapshots that have the old one keep it.
  if (put_link(file, body, body.parent_path())) return true;
  tell_once(body);
  return false;
}

} // namespace

Shared share_bodies(const Root& root, const fs::path& directory) noexcept {
  Shared shared;
  if (root.bucket() != nullptr) return shared; // an object has one name
  try {
    const fs::path top = root.path() / directory;
    for (const auto& [digest, path] : read_manifest(root.path(), directory))
      if (!share_file(top / path, body_path(root.path(), digest), shared)) break;
  } catch (const std::exception& error) {
    spdlog::warn("equal files of {} stay copies: {}", directory.native(), error.what());
  }
  return shared;
}

std::vector<std::string> bodies_below(const fs::path& root, const fs::path& snapshot_directory) {
  std::vector<std::string> digests;
  const Fd directory = open_below(root, snapshot_directory, O_RDONLY | O_DIRECTORY);
  if (!directory) return digests;
  for (const auto& attempt : list_names(directory.get(), (root / snapshot_directory).native()))
    for (auto& named : read_manifest(root, snapshot_directory / attempt))
      digests.push_back(std::move(named.digest));
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

void drop_bodies(const fs::path& root, const std::vector<std::string>& digests) noexcept {
  try {
    struct stat status {};
    if (::lstat((root / kBodies).c_str(), &status) != 0) return;
    // Should another worker link it between these two calls, it keeps its file; only the name to share it by is gone.
    for (const auto& digest : digests) {
      const fs::path body = body_path(root, digest);
      if (::lstat(body.c_str(), &status) == 0 && status.st_nlink == 1) ::unlink(body.c_str());
    }
  } catch (const std::exception& error) {
    spdlog::warn("unneeded bodies stay in {}: {}", (root / kBodies).native(), error.what());
  }
}

} // namespace holdfast::archive
