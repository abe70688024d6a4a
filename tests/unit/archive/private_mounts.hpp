#pragma once
// Small file systems of a test's own, for full and read-only disks, and files that cannot be read. They live in a mount
// namespace of this process and vanish with it, however it ends.

#include <filesystem>

namespace holdfast::test {

// Mounts an empty tmpfs of `bytes` on `directory`. False if the system does not let us: say so and skip the case.
bool mount_small_disk(const std::filesystem::path& directory, unsigned long bytes);
// Lets every read of a file fail with EIO; it is opened as before. False: as above.
bool make_unreadable(const std::filesystem::path& file);
void make_read_only(const std::filesystem::path& directory, bool read_only = true);
// Lets it take no file more, or as many as before.
void limit_files(const std::filesystem::path& directory, bool limited = true);
void unmount(const std::filesystem::path& directory);

} // namespace holdfast::test
