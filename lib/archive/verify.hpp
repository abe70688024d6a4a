#pragma once
// Published attempts checked against their manifests, and what lost attempts left beside them. Blocking file work;
// stateless, any thread.

#include "lib/archive/root.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

// The files of a published attempt, in a directory or in a bucket, and manifest-sha256.txt, which lists them: one line
// for each file, in the format that `sha256sum -c` checks. Blocking; any thread.
inline constexpr const char* kManifestName = "manifest-sha256.txt";

struct PublishedFile {
  std::string sha256; // 64 hex digits
  std::uint64_t size{0};
};
using PublishedFiles = std::map<std::string, PublishedFile>; // by path, relative to the attempt

// "<digest>  <path>\n"; a path with a backslash, line feed or carriage return is escaped and the line starts with a
// backslash, as coreutils does.
std::string manifest_line(std::string_view sha256, std::string_view path);
// Path -> digest; nullopt if a line is not one of ours.
std::optional<std::map<std::string, std::string>> parse_manifest(std::string_view text);

// The fence of the directory "a<fence>" of an attempt; nullopt for any other name.
std::optional<std::int64_t> attempt_fence(std::string_view name);

using Wanted = std::function<bool(std::string_view path)>;
using Found = std::function<void(int file, const std::string& path)>;

// Calls `found` with each wanted file, open for reading; paths are below `directory`, which is relative to the root.
// Links to files count as files in a bucket, and are left out of a directory: their targets are there.
void each_file(const Root& root, const std::string& directory, const Wanted& wanted, const Found& found);
// Does the same for an attempt that is not published yet.
void each_file(const std::filesystem::path& attempt, const Wanted& wanted, const Found& found);

// Bytes of an open file. Throws Error(input_output).
std::uint64_t file_size(int file, const std::string& path);

} // namespace holdfast::archive
