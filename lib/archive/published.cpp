#include "lib/archive/published.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/s3/client.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace holdfast::archive {

namespace {

void each_file_below(const Fd& top, const std::filesystem::path& where, const Wanted& wanted, const Found& found) {
  walk_tree(top.get(), where, [&](const TreeEntry& entry) {
    if (entry.type != S_IFREG || !wanted(entry.path)) return;
    struct stat about {};
    if (const Fd file = open_file_at(entry.directory, entry.name, about)) found(file.get(), entry.path);
  });
}

std::string unescaped(std::string_view path) {
  std::string text;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '\\' || i + 1 == path.size()) {
      text += path[i];
      continue;
    }
    const char next = path[++i];
    text += next == 'n' ? '\n' : next == 'r' ? '\r' : next;
  }
  return text;
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

std::optional<std::map<std::string, std::string>> parse_manifest(std::string_view text) {
  std::map<std::string, std::string> files;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool escaped = line.starts_with('\\');
    if (escaped) line.remove_prefix(1);
    if (line.size() < 67 || line.substr(64, 2) != "  ") return std::nullopt;
    const auto path = line.substr(66);
    files.emplace(escaped ? unescaped(path) : std::string(path), line.substr(0, 64));
  }
  return files;
}

std::optional<std::int64_t> attempt_fence(std::string_view name) {
  std::int64_t fence = 0;
  if (name.size() < 2 || name[0] != 'a') return std::nullopt;
  const auto [end, failure] = std::from_chars(name.data() + 1, name.data() + name.size(), fence);
  if (failure != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return fence;
}

} // namespace holdfast::archive
