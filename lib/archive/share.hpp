#pragma once
// Equal files of the archive kept once. Every body is a hard link with a name below <root>/.bodies/<ab>/<sha256>, so
// each snapshot's files are ordinary files, any of them may be deleted, and what is unused is found by its
// link count. Blocking; may be used by any number of workers at once: each step is one rename, link or unlink, and
// every state in between is a valid archive.

#include "lib/archive/root.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::archive {

inline constexpr const char* kBodies = ".bodies";
inline constexpr std::uint64_t kLeastShared = 4096; // smaller files fit into one block anyway

struct Shared {
  std::size_t files{0}; // that are now links to what was there before
  std::uint64_t bytes{0};
};

// Looks at every file that the manifest of a published directory (relative to the root) names. A body is compared byte
// by byte before it takes a file's place. Never throws: a file system that cannot link keeps its copies, and is told
// once.
Shared share_bodies(const Root& root, const std::filesystem::path& directory) noexcept;

// Digests that the manifests of a snapshot's attempts name; for drop_bodies().
std::vector<std::string> bodies_below(const std::filesystem::path& root,
                                      const std::filesystem::path& snapshot_directory);
// Removes the names below .bodies of those that no snapshot has any more.
void drop_bodies(const std::filesystem::path& root, const std::vector<std::string>& digests) noexcept;

} // namespace holdfast::archive
