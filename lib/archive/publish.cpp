#include "lib/archive/attempt.hpp"
#include "lib/archive/bucket.hpp"
#include "lib/archive/captures.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/uuid.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>

namespace holdfast::archive {

using base::Error;
using base::ErrorClass;

namespace {

constexpr const char* kIndexName = "index.jsonl";
constexpr const char* kPageName = "index.html";

// Files to publish, and their size: links to files count as their targets in `all`, not in the sums.
struct Contents {
  PublishedFiles all;
  std::uint64_t bytes{0};
  std::size_t files{0};

  void add(const std::string& path, PublishedFile file) {
    bytes += file.size;
    ++files;
    all.emplace(path, std::move(file));
  }

  std::string manifest() const {
    std::string text;
    for (const auto& [path, file] : all)
      text += manifest_line(file.sha256, path);
    return text;
  }
};

[[noreturn]] void throw_changed(const std::string& path) {
  throw Error(ErrorClass::input_output, printable(path) + " changed while it was being published");
}

// Hashes every file, and makes it read-only if it is our own. Not earlier: a later hook may change files of an earlier
// one. `to_disk`: starts writing each file, so that making all of them durable one by one waits about once.
Contents describe(int attempt, const std::filesystem::path& where, Cancelled cancelled, Bodies bodies, bool to_disk) {
  Contents contents;
  walk_tree(attempt, where, [&](const TreeEntry& entry) {
    const std::string full = (where / entry.path).native();
    struct stat status {};
    PublishedFile file;
    if (entry.type == S_IFLNK) {
      const Fd target = open_beneath(attempt, entry.path, O_RDONLY);
      if (!target || ::fstat(target.get(), &status) != 0 || !S_ISREG(status.st_mode)) return; // a directory
      file.sha256 = hash_rest(target.get(), full, file.size, cancelled);
      contents.all.emplace(entry.path, std::move(file));
      return;
    }
    const Fd fd = open_file_at(entry.directory, entry.name, status);
    if (!fd) throw_changed(full);
    if (bodies == Bodies::own && ::fchmod(fd.get(), base::allowed(0444)) != 0)
      throw_errno(errno, "make read-only", full);
    file.sha256 = hash_rest(fd.get(), full, file.size, cancelled);
    contents.add(entry.path, std::move(file));
    if (to_disk) ::sync_file_range(fd.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  });
  return contents;
}

void add_file(int attempt, const std::filesystem::path& where, const char* name, std::string_view text,
              Contents& contents) {
  write_file_at(attempt, name, text, (where / name).native(), false);
  ::fchmodat(attempt, name, base::allowed(0444), AT_SYMLINK_NOFOLLOW);
  contents.add(name, {base::sha256_hex(text), text.size()});
}

// A listed file that was deleted keeps its entry: the manifest has the truth.
void fill(SnapshotView& view, const Contents& contents) {
  for (auto& result : view.results)
    for (auto& file : result.files)
      if (const auto found = contents.all.find(file.path); found != contents.all.end()) {
        file.size = found->second.size;
        file.sha256 = found->second.sha256;
      }
}

// Renders the page, which shows the size of the attempt, itself and the manifest included.
std::string render_with_size(const Contents& contents, SnapshotView view) {
  const auto others =
      contents.bytes + contents.manifest().size() + manifest_line(std::string(64, '0'), kPageName).size();
  view.files = contents.files + 2;
  std::string page;
  do { // a longer number makes a longer page
    view.bytes = others + page.size();
    page = render_snapshot_html(view);
  } while (view.bytes < others + page.size());
  return page;
}

// Returns true if an attempt can be moved into the archive without a copy.
bool on_disk_of(const Root& root, int source) {
  struct stat here {};
  struct stat there {};
  return root.bucket() == nullptr && ::fstat(source, &here) == 0 && ::stat(root.path().c_str(), &there) == 0 &&
         here.st_dev == there.st_dev;
}

// Makes a tree durable, from its leaves to its top.
void sync_tree(int directory, const std::string& where) {
  for (const auto& [name, type] : list_entries(directory, where)) {
    const std::string path = where + "/" + name;
    if (type == 0) throw_changed(path);
    if (type == S_IFDIR) {
      const Fd subdirectory = open_directory_at(directory, name);
      if (!subdirectory) throw_changed(path);
      sync_tree(subdirectory.get(), path);
    } else if (type == S_IFREG) {
      struct stat status {};
      const Fd file = open_file_at(directory, name, status);
      if (!file) throw_changed(path);
      sync_fd(file.get(), path);
    }
  }
  ::fchmod(directory, base::allowed(0755)); // readable to all, as far as the umask goes, and removable
  sync_fd(directory, where);
}

// Copies a tree file by file, comparing what is written with the digest that the manifest has, and makes it durable.
class Copier {
public:
  Copier(const Contents& contents, Cancelled cancelled) : contents_(contents), cancelled_(cancelled) {}

  void copy_directory(int from, int to, const std::string& path, const std::string& where) {
    for (const std::string& name : list_names(from, where)) {
      struct stat status {};
      const std::string entry_path = path.empty() ? name : path + "/" + name;
      const std::string full = where + "/" + name;
      if (::fstatat(from, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) throw_changed(full);
      if (S_ISDIR(status.st_mode)) {
        const Fd source = open_directory_at(from, name);
        if (!source) throw_changed(full);
        if (::mkdirat(to, name.c_str(), 0755) != 0) throw_errno(errno, "create the directory", full);
        const Fd target = open_directory_at(to, name);
        if (!target) throw_errno(errno, "open the directory", full);
        copy_directory(source.get(), target.get(), entry_path, full);
      } else if (S_ISLNK(status.st_mode)) {
        copy_link(from, to, name, full);
      } else {
        copy_file(from, to, name, entry_path, full);
      }
    }
    ::fchmod(to, base::allowed(0755));
    sync_fd(to, where);
  }

private:
  static void copy_link(int from, int to, const std::string& name, const std::string& full) {
    const auto target = read_link(from, name);
    if (!target) throw_changed(full);
    if (::symlinkat(target->c_str(), to, name.c_str()) != 0) throw_errno(errno, "create", full);
  }

  void copy_file(int from, int to, const std::string& name, const std::string& path, const std::string& full) {
    struct stat status {};
    const Fd source = open_file_at(from, name, status);
    if (!source) throw_changed(full);
    const Fd target(::openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!target) throw_errno(errno, "create", full);
    Sha256 hash;
    copy_body(source.get(), target.get(), static_cast<std::uint64_t>(status.st_size), full, cancelled_,
              [&](std::string_view bytes) { hash.update(bytes); });
    const auto expected = contents_.all.find(path);
    if (expected == contents_.all.end() || expected->second.sha256 != hash.finish()) throw_changed(full);
    const timespec times[2] = {status.st_atim, status.st_mtim};
    ::futimens(target.get(), times);
    if (::fchmod(target.get(), base::allowed(0444)) != 0 && errno != EPERM) throw_errno(errno, "make read-only", full);
    sync_fd(target.get(), full);
  }

  const Contents& contents_;
  const Cancelled cancelled_;
};

void remove_quietly(int directory, const std::string& name, const std::filesystem::path& where) {
  try {
    remove_tree_at(directory, name, where.native());
  } catch (const Error& error) {
    spdlog::warn("could not remove leftover files: {}", error.what());
  }
}

// Gives `name` in directory `from` the final name. An existing entry of that name is of this very attempt and is
// replaced; it is kept aside until the new one is in place.
void move_into_place(int from, const std::string& name, int parent, const std::string& final_name,
                     const std::filesystem::path& where, int& error_number) {
  const std::string aside = "." + final_name + ".replaced-" + base::random_hex32();
  const bool replaces = ::renameat(parent, final_name.c_str(), parent, aside.c_str()) == 0;
  if (!replaces && errno != ENOENT) throw_errno(errno, "replace", (where / final_name).native());
  error_number = ::renameat(from, name.c_str(), parent, final_name.c_str()) == 0 ? 0 : errno;
  if (error_number != 0) {
    if (replaces) ::renameat(parent, aside.c_str(), parent, final_name.c_str());
    return;
  }
  sync_fd(parent, where.native());
  if (replaces) remove_quietly(parent, aside, where / aside);
}

// ".a<fence>.partial-<random>" or ".a<fence>.replaced-<random>".
struct Leftover {
  std::int64_t fence{0};
  bool replaced{false};
};
std::optional<Leftover> parse_leftover(std::string_view name) {
  if (!name.starts_with(".a")) return std::nullopt;
  Leftover leftover;
  const auto [end, failure] = std::from_chars(name.data() + 2, name.data() + name.size(), leftover.fence);
  if (failure != std::errc{}) return std::nullopt;
  const std::string_view rest = name.substr(static_cast<std::size_t>(end - name.data()));
  leftover.replaced = rest.starts_with(".replaced-");
  if (!leftover.replaced && !rest.starts_with(".partial-")) return std::nullopt;
  return leftover;
}

} // namespace

Published publish(const Root& root, const std::filesystem::path& attempt,
                  const std::filesystem::path& snapshot_directory, SnapshotView& view, Cancelled cancelled,
                  Bodies bodies) {
  if (snapshot_directory.is_absolute() || snapshot_directory.empty() ||
      snapshot_directory.lexically_normal().native().starts_with(".."))
    throw Error(ErrorClass::bug, "not a directory below the archive root: " + printable(snapshot_directory.native()));
  root.check();

  const std::filesystem::path source_path = std::filesystem::absolute(attempt).lexically_normal();
  const Fd source = open_own_directory(source_path);
  const std::string final_name = "a" + std::to_string(view.fence);
  for (const char* name : {kIndexName, kPageName, kManifestName}) // of an earlier try, or of a hook
    remove_tree_at(source.get(), name, (source_path / name).native());
  auto contents = describe(source.get(), source_path, cancelled, bodies, on_disk_of(root, source.get()));
  fill(view, contents);
  add_file(source.get(), source_path, kIndexName, render_index_jsonl(view), contents);
  add_file(source.get(), source_path, kPageName, render_with_size(contents, view), contents);
  add_file(source.get(), source_path, kManifestName, contents.manifest(), contents);

  Published published;
  published.manifest_sha256 = contents.all.at(kManifestName).sha256;
  published.bytes = contents.bytes;
  published.files = contents.files;
  published.directory = snapshot_directory / final_name;
  if (root.bucket() != nullptr) {
    publish_to_bucket(*root.bucket(), source.get(), source_path, published.directory.native(), contents.bytes,
                      std::move(contents.all));
    const Fd parent = open_own_parent(source_path);
    remove_quietly(parent.get(), source_path.filename().native(), source_path);
    return published;
  }
  const auto target_path = root.path() / snapshot_directory;
  const Fd target = make_directories(root.path(), snapshot_directory);
  const Fd source_parent = open_own_parent(source_path);
  const std::string source_name = source_path.filename().native();

  struct stat source_status {};
  struct stat target_status {};
  if (::fstat(source.get(), &source_status) != 0) throw_errno(errno, "look at", source_path.native());
  if (::fstat(target.get(), &target_status) != 0) throw_errno(errno, "look at", target_path.native());
  if (source_status.st_dev == target_status.st_dev) {
    sync_tree(source.get(), source_path.native());
    int error_number = 0;
    move_into_place(source_parent.get(), source_name, target.get(), final_name, target_path, error_number);
    if (error_number == 0) return published;
    // The same device may still be two mounts, or two projects with quotas of their own.
    if (error_number != EXDEV) throw_errno(error_number, "create", (target_path / final_name).native());
  }

  const std::string partial = "." + final_name + ".partial-" + base::random_hex32();
  if (::mkdirat(target.get(), partial.c_str(), 0755) != 0)
    throw_errno(errno, "create the directory", (target_path / partial).native());
  try {
    {
      const Fd copy = open_directory_at(target.get(), partial);
      if (!copy) throw_errno(errno, "open the directory", (target_path / partial).native());
      Copier(contents, cancelled).copy_directory(source.get(), copy.get(), "", (target_path / partial).native());
    }
    root.check(); // the volume may have gone while we wrote
    int error_number = 0;
    move_into_place(target.get(), partial, target.get(), final_name, target_path, error_number);
    if (error_number != 0) throw_errno(error_number, "create", (target_path / final_name).native());
  } catch (...) {
    remove_quietly(target.get(), partial, target_path / partial);
    throw;
  }
  remove_quietly(source_parent.get(), source_name, source_path);
  return published;
}

namespace {

bool link_file(int from, int to, const std::string& name, const std::string& full) {
  if (::linkat(from, name.c_str(), to, name.c_str(), 0) == 0) return true;
  // Other file systems, accounts and too many links.
  if (errno != EXDEV && errno != EPERM && errno != EMLINK && errno != EOPNOTSUPP) throw_errno(errno, "link", full);
  struct stat status {};
  const Fd source = open_file_at(from, name, status);
  if (!source) throw_changed(full);
  const Fd target(::openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!target) throw_errno(errno, "create", full);
  copy_body(source.get(), target.get(), static_cast<std::uint64_t>(status.st_size), full, nullptr,
            [](std::string_view) {});
  ::fchmod(target.get(), base::allowed(0444));
  return false;
}

std::uint64_t link_directory(int from, int to, const std::string& path, const std::string& where) {
  std::uint64_t linked = 0;
  for (const auto& [name, type] : list_entries(from, where)) {
    const auto full = where + "/" + name;
    if (path.empty() && (name == kIndexName || name == kPageName || name == kManifestName)) continue;
    struct stat status {};
    if (type == S_IFDIR) {
      const Fd source = open_directory_at(from, name);
      if (!source) throw_changed(full);
      if (::mkdirat(to, name.c_str(), 0755) != 0) throw_errno(errno, "create the directory", full);
      const Fd target = open_directory_at(to, name);
      if (!target) throw_errno(errno, "open the directory", full);
      linked += link_directory(source.get(), target.get(), path + name + "/", full);
    } else if (const auto link = type == S_IFLNK ? read_link(from, name) : std::nullopt) {
      if (::symlinkat(link->c_str(), to, name.c_str()) != 0) throw_errno(errno, "create", full);
    } else if (type == S_IFREG && !is_warc(name) && ::fstatat(from, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      if (link_file(from, to, name, full)) linked += static_cast<std::uint64_t>(status.st_size);
    }
  }
  return linked;
}

} // namespace

std::uint64_t link_files(const Root& root, const std::string& directory, const std::filesystem::path& attempt) {
  const auto where = (root.path() / directory).native();
  const Fd from = open_below(root.path(), directory, O_RDONLY | O_DIRECTORY);
  if (!from) throw_errno(errno, "open the directory", where);
  const Fd to = open_own_directory(attempt);
  return link_directory(from.get(), to.get(), "", where);
}

void remove_partials(const Root& root, const std::filesystem::path& snapshot_directory, std::int64_t before_fence) {
  if (root.bucket() != nullptr) return; // what is half there has no manifest, and goes with the lost attempts
  const auto path = root.path() / snapshot_directory;
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    if (errno == ENOENT) return;
    throw_errno(errno, "open the directory", path.native());
  }
  for (const std::string& name : list_names(directory.get(), path.native())) {
    const auto leftover = parse_leftover(name);
    if (!leftover || leftover->fence >= before_fence) continue;
    if (leftover->replaced) {
      // The crash came between the two renames: what was there before is complete, so it gets its name back.
      const std::string final_name = "a" + std::to_string(leftover->fence);
      struct stat status {};
      if (::fstatat(directory.get(), final_name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
          ::renameat(directory.get(), name.c_str(), directory.get(), final_name.c_str()) == 0)
        continue;
    }
    remove_tree_at(directory.get(), name, (path / name).native());
  }
}

} // namespace holdfast::archive
