#pragma once
// Careful file work for this module: every step goes through a directory's descriptor and never follows a symbolic
// link, because the trees we touch were written by hooks. Blocking; free functions without state, callable from any
// thread as long as two threads do not work in one tree.

#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::archive {

using base::Fd;
using base::Sha256;

// Throws the Error for `error_number`: cannot_create when there is no space or no permission, input_output otherwise.
// The message reads "cannot <action> <path>: <reason>".
[[noreturn]] void throw_errno(int error_number, std::string_view action, std::string_view path);

// A path for a message or a page: control characters and bytes that are not UTF-8 become %XX, so that it stays one
// line.
std::string printable(std::string_view path);

Fd open_directory(const std::filesystem::path& directory); // throws; follows links, for paths of our own
// Opens a directory that hooks could have locked, or reached by a link that they left: it is unlocked, and no link is
// followed in any part of the path.
Fd open_own_directory(const std::filesystem::path& directory);
Fd find_own_directory(const std::filesystem::path& directory); // the same, but empty if it does not exist
Fd open_own_parent(const std::filesystem::path& path);         // the directory that holds it; no link is followed
Fd open_directory_at(int parent, const std::string& name);     // empty if it is not a directory; never follows
// Opens a regular file for reading, without following a link and without blocking on a fifo; empty if it is none or
// does not exist.
Fd open_file_at(int parent, const std::string& name, struct stat& status);
// Opens what `path` leads to for reading if all of the way stays beneath `top`; empty otherwise. `flags`: O_RDONLY,
// O_PATH.
Fd open_beneath(int top, const std::string& path, int flags);
// Opens `relative` below an archive's root, or below another directory of ours that hooks of its user may write to. The
// way to `root` may have links; below it none is followed. Empty, with errno, if it fails: ELOOP for a link.
Fd open_below(const std::filesystem::path& root, const std::filesystem::path& relative, int flags);
// Opens a regular file below a root for reading; EINVAL if it is something else.
Fd open_file_below(const std::filesystem::path& root, const std::filesystem::path& file);

// Lists a directory without "." and "..", in byte order of the names, so that everything derived from a tree is
// deterministic. The type is S_IFREG, S_IFDIR, S_IFLNK and so on, of a link itself; 0: deleted meanwhile.
struct DirectoryEntry {
  std::string name;
  mode_t type{0};
};
std::vector<DirectoryEntry> list_entries(int directory, std::string_view path);
std::vector<std::string> list_names(int directory, std::string_view path);

// Checked by long work between two pieces: it throws Error(temporary) once this is true; null: never.
using Cancelled = const std::atomic<bool>*;
void check_cancelled(Cancelled cancelled);

// The rest of an open file, or its first `limit` bytes.
std::string read_rest(int fd, std::string_view path, std::size_t limit = SIZE_MAX);
// SHA-256 of the rest of an open file; adds the bytes read to `bytes`.
std::string hash_rest(int fd, std::string_view path, std::uint64_t& bytes, Cancelled cancelled = nullptr);
// Copies `from`, which has `size` bytes, into the empty file `to`, and keeps its holes. `seen` gets every byte in
// order, zeros for those of holes. `path`: for messages.
void copy_body(int from, int to, std::uint64_t size, std::string_view path, Cancelled cancelled,
               const std::function<void(std::string_view)>& seen);
void write_all(int fd, std::string_view text, std::string_view path);
// Hands on the bytes from `begin` to `end`, in pieces. Throws if they are not all there.
void read_range(int fd, std::uint64_t begin, std::uint64_t end, std::string_view path,
                const std::function<void(std::string_view)>& take);
void sync_fd(int fd, std::string_view path);

// Writes `text` under a temporary name and renames it to `name`; a directory in its place is removed. `durable`:
// survives a power cut when it returns; leave it out where the whole tree is made durable later.
void write_file_at(int directory, const std::string& name, std::string_view text, std::string_view path, bool durable);
// Writes a file in the same way, with the bytes that `fill` writes into it.
void write_file_at(int directory, const std::string& name, const std::function<void(int file)>& fill,
                   std::string_view path, bool durable);

// Removes a file or a whole tree of any depth with a bounded number of descriptors; a missing one is fine.
void remove_tree_at(int parent, const std::string& name, std::string_view path);

// Creates the directories of `relative` below `top`, each durable in its parent, and returns the last one. Below `top`,
// no link is followed.
Fd make_directories(const std::filesystem::path& top, const std::filesystem::path& relative);

} // namespace holdfast::archive
