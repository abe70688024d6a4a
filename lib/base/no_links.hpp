#pragma once
// Files in directories that a hook may write. A hook plants symbolic links where the worker or its shim, which may do
// more than the hook, is about to open, create, change, measure or remove something. These functions follow no link in
// any part of a path: they fail with ELOOP. The path of such a directory must be without links, as work_dir of a
// running worker is. Any thread; blocking. Linux 5.6.

#include "lib/base/file.hpp"

#include <sys/stat.h>

#include <filesystem>

namespace holdfast::base {

// Like open(2): empty, with errno, if it fails.
Fd open_no_links(const std::filesystem::path& path, int flags, mode_t mode = 0);
// Like lstat(2): what the path names may be a link.
bool stat_no_links(const std::filesystem::path& path, struct stat& status);
// Opens a directory, which is made with those above it where they are missing.
Fd make_directories_no_links(const std::filesystem::path& directory, mode_t mode = 0755);
// Like unlink(2).
bool remove_no_links(const std::filesystem::path& file);

} // namespace holdfast::base
