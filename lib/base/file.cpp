#include "lib/base/file.hpp"

#include "lib/base/error.hpp"
#include "lib/base/openat2.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>

namespace holdfast::base {

namespace {

std::uint64_t size_of_regular(const Fd& file) {
  struct stat status {};
  return file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)
             ? static_cast<std::uint64_t>(status.st_size)
             : 0;
}

// Less, if the file is cut meanwhile.
std::string bytes_between(const Fd& file, std::uint64_t begin, std::uint64_t end) {
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(end - begin));
  (void)each_piece(file.get(), begin, end, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

} // namespace

std::string read_file(const std::filesystem::path& path, std::size_t most, int flags) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
  return bytes_between(file, 0, std::min<std::uint64_t>(size_of_regular(file), most));
}

std::string tail_of(const std::filesystem::path& path, std::size_t most) {
  const Fd file = open_no_links(path, O_RDONLY | O_NONBLOCK);
  const auto size = size_of_regular(file);
  return bytes_between(file, size - std::min<std::uint64_t>(size, most), size);
}

std::string secret_text(const std::filesystem::path& path, const std::string& setting) {
  const auto refuse = [&](const std::string& problem, const std::string& hint = {}) {
    throw Error(ErrorClass::configuration, setting + ": " + path.string() + problem, hint);
  };
  struct stat status {};
  std::ifstream stream(path);
  if (!stream || ::stat(path.c_str(), &status) != 0) refuse(" cannot be read: " + errno_text(errno));
  if (S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0)
    refuse(" can be read by every user of this machine", "chmod o= " + path.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

Fd open_no_links(const std::filesystem::path& path, int flags, mode_t mode) {
  return Fd(open_no_links_at(AT_FDCWD, path.c_str(), flags, mode));
}

bool stat_no_links(const std::filesystem::path& path, struct stat& status) {
  const Fd found = open_no_links(path, O_PATH | O_NOFOLLOW);
  return found && ::fstat(found.get(), &status) == 0;
}

Fd make_directories_no_links(const std::filesystem::path& directory, mode_t mode) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY;
  Fd found = open_no_links(directory, kFlags);
  if (found || errno != ENOENT || !directory.has_relative_path()) return found;
  const Fd parent = make_directories_no_links(directory.parent_path(), mode);
  if (!parent) return {};
  const auto name = directory.filename();
  if (::mkdirat(parent.get(), name.c_str(), mode) != 0 && errno != EEXIST) return {};
  return Fd(open_no_links_at(parent.get(), name.c_str(), kFlags));
}

bool remove_no_links(const std::filesystem::path& file) {
  const Fd parent = open_no_links(file.parent_path(), O_PATH | O_DIRECTORY);
  return parent && ::unlinkat(parent.get(), file.filename().c_str(), 0) == 0;
}

bool is_runner_file(std::string_view name) noexcept {
  for (const std::string_view suffix : {".stdout.log", ".stderr.log", ".pid", ".sh"}) {
    if (!name.ends_with(suffix)) continue;
    name.remove_suffix(suffix.size());
    return name.size() > 33 && name[name.size() - 33] == '.' &&
           name.substr(name.size() - 32).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  }
  return false;
}

} // namespace holdfast::base
