#pragma once
// Published attempts checked against their manifests, and what lost attempts left beside them. Blocking file work;
// stateless, any thread.

#include "lib/archive/root.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::archive {

struct Defect {
  std::string kind; // missing, changed, extra, unreadable
  std::string path; // relative to the archive root
};

// Hashes every file of an attempt's directory (relative to the root) again and compares it with the manifest, and the
// manifest with `manifest_sha256`, the digest that was sealed. Empty: all is as it was published.
std::vector<Defect> verify_attempt(const Root& root, const std::filesystem::path& directory,
                                   const std::string& manifest_sha256);

// Attempts beside the one that counts, a<fence> and half-made ones, of a sealed snapshot: left over. Paths
// relative to the root. `kept`: the name of the attempt that counts, or empty.
std::vector<std::filesystem::path> find_leftovers(const Root& root, const std::filesystem::path& snapshot_directory,
                                                  const std::string& kept);
// Removes a snapshot's directory, <yyyy>/<mm>/<host>/<id>, with all it holds, and what that leaves empty above it.
// Throws Error(bug) for any other path, and when links lead out of the archive.
void remove_snapshot(const Root& root, const std::string& directory);
// Removes one of them, and the snapshot's directory if that leaves it empty.
void remove_leftover(const Root& root, const std::filesystem::path& leftover);

// For who holds the snapshot's lease with `fence`: attempts with smaller fences were lost, and cannot be sealed any
// more.
void remove_lost_attempts(const Root& root, const std::filesystem::path& snapshot_directory, std::int64_t fence);

} // namespace holdfast::archive
