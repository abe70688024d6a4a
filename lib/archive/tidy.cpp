#include "lib/archive/tidy.hpp"

#include "lib/archive/captures.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/uuid.hpp"

#include <climits>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace holdfast::archive {

namespace {

constexpr std::size_t kMaximumNameBytes = 255;
constexpr std::string_view kBrokenLinkSuffix = ".broken-symlink.txt";

std::string child_path(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "/" + name;
}

// Cuts a name to `length` bytes without cutting a character in two.
std::string shortened(std::string name, std::size_t length) {
  if (name.size() <= length) return name;
  while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xC0) == 0x80)
    --length;
  name.resize(length);
  return name;
}

class Tidier {
public:
  Tidier(int top, const std::filesystem::path& where, int below, Cancelled cancelled)
      : top_(top), where_(where.native()), below_(below), cancelled_(cancelled) {
    while (where_.size() > 1 && where_.back() == '/')
      where_.pop_back();
  }

  Removed run() {
    tidy_directory(top_, "", 0);
    // Last, because the target of a link may just have been removed, renamed or replaced.
    if (!spellings_.empty())
      walk_tree(top_, where_, [this](const TreeEntry& entry) {
        if (entry.type == S_IFLNK) mend_link(entry);
      });
    return removed_;
  }

private:
  std::string full_path(const std::string& path) const { return where_ + "/" + path; }

  void tidy_directory(int directory, const std::string& path, int depth) {
    for (std::string name : list_names(directory, full_path(path))) {
      struct stat status {};
      if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      name = rename_to_utf8(directory, path, name);
      const std::string entry_path = child_path(path, name);
      if (entry_path.size() + static_cast<std::size_t>(below_) * (kMaximumNameBytes + 1) > kMaximumPathBytes) {
        lose(directory, name, entry_path);
      } else if (S_ISDIR(status.st_mode)) {
        tidy_subdirectory(directory, name, entry_path, depth, status);
      } else if (S_ISREG(status.st_mode)) {
        tidy_file(directory, name, entry_path, status);
      } else if (S_ISLNK(status.st_mode)) {
        find_spellings();
        make_link_relative(directory, name, depth);
      } else {
        remove_tree_at(directory, name, full_path(entry_path));
        ++removed_.special;
      }
    }
  }

  void tidy_subdirectory(int parent, const std::string& name, const std::string& path, int depth,
                         const struct stat& status) {
    if (depth + 1 + below_ >= kMaximumDepth) return lose(parent, name, path);
    if ((status.st_mode & 0700) != 0700) ::fchmodat(parent, name.c_str(), 0755, AT_SYMLINK_NOFOLLOW);
    const Fd directory = open_directory_at(parent, name);
    if (!directory) {
      if (errno == ENOENT) return;
      throw_errno(errno, "open the directory", full_path(path));
    }
    if ((status.st_mode & 07000) != 0) ::fchmod(directory.get(), 0755);
    tidy_directory(directory.get(), path, depth + 1);
  }

  void tidy_file(int directory, const std::string& name, const std::string& path, const struct stat& seen) {
    if (seen.st_nlink == 1 && (seen.st_mode & 07511) == 0400) return; // nothing to do
    if ((seen.st_mode & 0400) == 0) ::fchmodat(directory, name.c_str(), 0600, AT_SYMLINK_NOFOLLOW);
    struct stat status {};
    const Fd fd = open_file_at(directory, name, status);
    if (!fd) {
      if (errno == ENOENT) return;
      throw_errno(errno, "read", full_path(path));
    }
    // A second name may lie outside: changing this file's mode would change that one, and its owner could go on writing
    // into what we seal.
    if (status.st_nlink > 1)
      return give_own_body(directory, name, path, fd, static_cast<std::uint64_t>(status.st_size));
    if ((status.st_mode & 07111) == 0) return;
    if (::fchmod(fd.get(), (status.st_mode & 0666) | 0400) != 0)
      throw_errno(errno, "change the mode of", full_path(path));
  }

  void give_own_body(int directory, const std::string& name, const std::string& path, const Fd& from,
                     std::uint64_t size) {
    const auto fill = [&](int to) {
      copy_body(from.get(), to, size, full_path(path), cancelled_, [](std::string_view) {});
    };
    write_file_at(directory, name, fill, full_path(path), false);
  }

  // Names end up in JSON, in PostgreSQL and on file systems that take UTF-8 only, so the name itself is made valid; a
  // page and a row that merely spelled it differently could not lead to the file.
  std::string rename_to_utf8(int directory, const std::string& path, const std::string& name) {
    const std::string valid = base::percent_encode_invalid_utf8(name);
    if (valid == name) return name;
    for (int number = 0; number < 1000; ++number) {
      const std::string suffix = number == 0 ? "" : "~" + std::to_string(number);
      const std::string candidate = shortened(valid, kMaximumNameBytes - suffix.size()) + suffix;
      if (::renameat2(directory, name.c_str(), directory, candidate.c_str(), RENAME_NOREPLACE) == 0) return candidate;
      if (errno == EINVAL && ::faccessat(directory, candidate.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
          ::renameat(directory, name.c_str(), directory, candidate.c_str()) == 0) // NFS has no NOREPLACE
        return candidate;
      if (errno != EEXIST && errno != EINVAL) throw_errno(errno, "rename", full_path(child_path(path, name)));
    }
    throw_errno(EEXIST, "rename", full_path(child_path(path, name)));
  }

  // Hooks use the spelling that they were given, or the canonical one.
  void find_spellings() {
    if (!spellings_.empty()) return;
    std::error_code ignored;
    spellings_ = {where_, std::filesystem::canonical(where_, ignored).native()};
  }

  // An absolute link into the tree would break when the tree is moved into the archive.
  void make_link_relative(int directory, const std::string& name, int depth) {
    const auto target = read_link(directory, name);
    if (!target || !target->starts_with('/')) return;
    for (const std::string& prefix : spellings_) {
      if (prefix.empty() || !target->starts_with(prefix)) continue;
      if (target->size() > prefix.size() && (*target)[prefix.size()] != '/') continue;
      std::string relative;
      for (int level = 0; level < depth; ++level)
        relative += "../";
      std::string_view rest = std::string_view(*target).substr(prefix.size());
      while (rest.starts_with('/'))
        rest.remove_prefix(1);
      relative += rest.empty() ? "." : rest;
      const std::string temporary = ".partial-" + base::random_hex32();
      if (::symlinkat(relative.c_str(), directory, temporary.c_str()) != 0) return; // then it is replaced below
      if (::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
        ::unlinkat(directory, temporary.c_str(), 0);
      return;
    }
  }

  void mend_link(const TreeEntry& entry) {
    const Fd target = open_beneath(top_, entry.path, O_PATH);
    struct stat status {};
    if (target && ::fstat(target.get(), &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return;

    const std::string text = "This was a symbolic link out of its directory, or to nothing. It pointed to:\n" +
                             read_link(entry.directory, entry.name).value_or("") + "\n";
    for (int number = 1; number < 1000; ++number) {
      const std::string suffix =
          number == 1 ? std::string(kBrokenLinkSuffix) : "." + std::to_string(number) + std::string(kBrokenLinkSuffix);
      const std::string name = shortened(entry.name, kMaximumNameBytes - suffix.size()) + suffix;
      const Fd fd(::openat(entry.directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
      if (!fd && errno == EEXIST) continue;
      if (!fd) throw_errno(errno, "create", full_path(entry.path));
      write_all(fd.get(), text, full_path(entry.path));
      break;
    }
    if (::unlinkat(entry.directory, entry.name.c_str(), 0) != 0 && errno != ENOENT)
      throw_errno(errno, "remove", full_path(entry.path));
  }

  void lose(int directory, const std::string& name, const std::string& path) {
    remove_tree_at(directory, name, full_path(path));
    removed_.lost.push_back(path);
  }

  int top_;
  std::string where_;
  std::vector<std::string> spellings_; // of it; empty until there is a link
  int below_;
  Cancelled cancelled_;
  Removed removed_;
};

void walk_directory(int directory, const std::string& where, const std::string& path, int depth,
                    const std::function<void(const TreeEntry&)>& visit) {
  for (const auto& [name, type] : list_entries(directory, where + "/" + path)) {
    if (type == 0) continue;
    const std::string entry_path = child_path(path, name);
    if (type != S_IFDIR) {
      visit({directory, name, entry_path, depth, type});
      continue;
    }
    if (depth + 1 >= kMaximumDepth)
      throw base::Error(base::ErrorClass::input_output, printable(where + "/" + entry_path) + " is nested too deeply");
    const Fd subdirectory = open_directory_at(directory, name);
    if (!subdirectory) {
      if (errno == ENOENT) continue;
      throw_errno(errno, "open the directory", where + "/" + entry_path);
    }
    walk_directory(subdirectory.get(), where, entry_path, depth + 1, visit);
  }
}

} // namespace

Removed tidy_tree(int top, const std::filesystem::path& where, int below, Cancelled cancelled) {
  return Tidier(top, where, below, cancelled).run();
}

std::optional<std::string> read_link(int directory, const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlinkat(directory, name.c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(length));
}

void walk_tree(int top, const std::filesystem::path& where, const std::function<void(const TreeEntry&)>& visit) {
  walk_directory(top, where.native(), "", 0, visit);
}

} // namespace holdfast::archive
