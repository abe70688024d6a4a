#include "lib/archive/published.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/s3/client.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace holdfast::archive {

namespace {

void each_file_below(const Fd& top, const std::filesystem::path& where, const Wanted& wanted, const Found& found) {
  walk_tree(top.get(), where, [&](const TreeEntry& entry) {
    if (entry.type != S_IFREG || !wanted(entry.path)) return;
    struct stat about {};
    if (const Fd file = open_file_at(entry.directory, entry.name, about)) found(file.get(), entry.path);
  });
}

} // namespace

void each_file(const std::filesystem::path& attempt, const Wanted& wanted, const Found& found) {
  each_file_below(open_own_directory(attempt), attempt, wanted, found);
}

void each_file(const Root& root, const std::string& directory, const Wanted& wanted, const Found& found) {
  if (root.bucket() == nullptr) {
    const auto path = root.path() / directory;
    const Fd top = open_below(root.path(), directory, O_RDONLY | O_DIRECTORY);
    if (!top) throw_errno(errno, "open the directory", path.native());
    return each_file_below(top, path, wanted, found);
  }
  for (const auto& object : root.bucket()->list(directory + "/", false).objects) {
    const auto path = object.key.substr(directory.size() + 1);
    if (!wanted(path)) continue;
    if (const Fd file = root.open_file(object.key); file) found(file.get(), path);
  }
}

std::uint64_t file_size(int file, const std::string& path) {
  struct stat about {};
  if (::fstat(file, &about) != 0) throw_errno(errno, "read", path);
  return static_cast<std::uint64_t>(about.st_size);
}

std::string manifest_line(std::string_view sha256, std::string_view path) {
  std::string escaped;
  escaped.reserve(path.size());
  for (const char c : path) {
    if (c == '\\') {
      escaped += "\\\\";
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\r') {
      escaped += "\\r";
    } else {
      escaped += c;
    }
  }
  std::string line = escaped.size() == path.size() ? "" : "\\";
  line += sha256;
  line += "  ";
  line += escaped;
  line += '\n';
  return line;
}

} // namespace holdfast::archive
