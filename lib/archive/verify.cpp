#include "lib/archive/verify.hpp"

#include "lib/archive/bucket.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"
#include "lib/s3/client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace holdfast::archive {

namespace {

bool is_half_made(std::string_view name) {
  return name.starts_with(".a") &&
         (name.find(".partial-") != std::string_view::npos || name.find(".replaced-") != std::string_view::npos);
}

bool remove_if_empty(const Root& root, const std::filesystem::path& directory) {
  const Fd parent = open_below(root.path(), directory.parent_path(), O_RDONLY | O_DIRECTORY);
  return parent && ::unlinkat(parent.get(), directory.filename().c_str(), AT_REMOVEDIR) == 0;
}

} // namespace

std::vector<Defect> verify_attempt(const Root& root, const std::filesystem::path& directory,
                                   const std::string& manifest_sha256) {
  if (root.bucket() != nullptr) return verify_bucket_attempt(*root.bucket(), directory.native(), manifest_sha256);
  std::vector<Defect> defects;
  const auto path = root.path() / directory;
  const Fd top = open_below(root.path(), directory, O_RDONLY | O_DIRECTORY);
  if (!top) return {{errno == ENOENT ? "missing" : "unreadable", directory.native()}};
  const auto report = [&](const char* kind, const std::string& file) {
    defects.push_back({kind, (directory / file).native()});
  };
  struct stat status {};
  const Fd manifest = open_file_at(top.get(), kManifestName, status);
  if (!manifest) return {{"missing", (directory / kManifestName).native()}};
  const std::string text = read_rest(manifest.get(), (path / kManifestName).native());
  if (!manifest_sha256.empty() && base::sha256_hex(text) != manifest_sha256) report("changed", kManifestName);
  auto listed = parse_manifest(text);
  if (!listed) {
    report("unreadable", kManifestName);
    return defects;
  }
  walk_tree(top.get(), path, [&](const TreeEntry& entry) {
    if (entry.path == kManifestName) return;
    const auto expected = listed->find(entry.path);
    if (expected == listed->end()) {
      const bool link_to_directory = entry.type == S_IFLNK && open_beneath(top.get(), entry.path, O_PATH | O_DIRECTORY);
      if (!link_to_directory) report("extra", entry.path);
      return;
    }
    const Fd file = entry.type == S_IFLNK ? open_beneath(top.get(), entry.path, O_RDONLY)
                                          : open_file_at(entry.directory, entry.name, status);
    if (!file) {
      report("unreadable", entry.path);
    } else {
      try {
        std::uint64_t bytes = 0;
        if (hash_rest(file.get(), (path / entry.path).native(), bytes) != expected->second)
          report("changed", entry.path);
      } catch (const base::Error&) {
        report("unreadable", entry.path);
      }
    }
    listed->erase(expected);
  });
  for (const auto& [file, digest] : *listed)
    report("missing", file);
  return defects;
}

std::vector<std::filesystem::path> find_leftovers(const Root& root, const std::filesystem::path& snapshot_directory,
                                                  const std::string& kept) {
  std::vector<std::filesystem::path> leftovers;
  if (root.bucket() != nullptr) {
    for (const std::filesystem::path attempt : bucket_attempts(*root.bucket(), snapshot_directory.native()))
      if (attempt.filename() != kept && attempt_fence(attempt.filename().native())) leftovers.push_back(attempt);
    return leftovers;
  }
  const auto path = root.path() / snapshot_directory;
  const Fd directory = open_below(root.path(), snapshot_directory, O_RDONLY | O_DIRECTORY);
  if (!directory) {
    if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR) return leftovers; // verify_attempt() reports it
    throw_errno(errno, "open the directory", path.native());
  }
  for (const std::string& name : list_names(directory.get(), path.native()))
    if (name != kept && (attempt_fence(name) || is_half_made(name))) leftovers.push_back(snapshot_directory / name);
  return leftovers;
}

void remove_leftover(const Root& root, const std::filesystem::path& leftover) {
  if (root.bucket() != nullptr) return remove_from_bucket(*root.bucket(), leftover.native());
  const auto parent = leftover.parent_path();
  const Fd directory = open_below(root.path(), parent, O_RDONLY | O_DIRECTORY);
  if (!directory) throw_errno(errno, "open the directory", (root.path() / parent).native());
  remove_tree_at(directory.get(), leftover.filename().native(), (root.path() / leftover).native());
  remove_if_empty(root, parent);
}

void remove_lost_attempts(const Root& root, const std::filesystem::path& snapshot_directory, std::int64_t fence) {
  for (const auto& leftover : find_leftovers(root, snapshot_directory, ""))
    if (const auto other = attempt_fence(leftover.filename().native()); other && *other < fence)
      remove_leftover(root, leftover);
}

void remove_snapshot(const Root& root, const std::string& directory) {
  const std::filesystem::path path(directory);
  const bool odd = std::any_of(path.begin(), path.end(), [](const auto& part) {
    return part.empty() || part == "." || part == ".." || part == "/";
  });
  if (odd || std::distance(path.begin(), path.end()) != 4)
    throw base::Error(base::ErrorClass::bug, "\"" + printable(directory) + "\" is not a directory of a snapshot",
                      "see the table holdfast.purge");
  if (root.bucket() != nullptr) return remove_from_bucket(*root.bucket(), directory);
  // A directory above the snapshot must not be a link.
  Fd host = open_directory(root.path());
  for (const auto& part : path.parent_path()) {
    host = open_directory_at(host.get(), part.native());
    if (host) continue;
    if (errno == ENOENT) return;
    throw_errno(errno, "open, without following links, the directory", (root.path() / path.parent_path()).native());
  }
  remove_tree_at(host.get(), path.filename().native(), (root.path() / path).native());
  for (auto above = path.parent_path(); !above.empty() && remove_if_empty(root, above);)
    above = above.parent_path();
}

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
