#include "lib/base/no_links.hpp"

#include "lib/base/openat2.hpp"

#include <cerrno>

namespace holdfast::base {

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

} // namespace holdfast::base
