#pragma once
// Small file systems of a test's own, for full and read-only disks. They live in a mount namespace of this process and
// vanish with it, however it ends.

#include <filesystem>

namespace holdfast::test {

// Mounts an empty tmpfs of `bytes` on `directory`. False if the system does not let us: say so and skip the case.
bool mount_small_disk(const std::filesystem::path& directory, unsigned long bytes);
void make_read_only(const std::filesystem::path& directory);
void unmount(const std::filesystem::path& directory);

} // namespace holdfast::test
