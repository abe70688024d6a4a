#pragma once
// Turns a tree that hooks wrote into one that may be kept: only directories, plain files of its own and links that stay
// inside. Blocking; the caller is the only one to work in the tree.

#include "lib/archive/file_work.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::archive {

// Bounds of a tree that is kept. Far above what any page needs, far below what exhausts descriptors or path lengths.
inline constexpr int kMaximumDepth = 100;
inline constexpr std::size_t kMaximumPathBytes = 3000;

// Strips executable and set-id bits, makes everything readable to us, gives files with several hard links a body of
// their own, renames what is not valid UTF-8 (bytes percent-encoded), turns absolute links to inside into relative
// ones, replaces other links that leave or dangle by "<name>.broken-symlink.txt", removes sockets, fifos, devices and
// what lies deeper than the bounds.
struct Removed {
  std::size_t special{0};        // sockets, fifos, devices
  std::vector<std::string> lost; // files and directories beyond the bounds: their paths, relative to the top
};
// `below`: how many directories above the top belong to the tree that will be kept; the bounds are those of that tree.
Removed tidy_tree(int top, const std::filesystem::path& where, int below, Cancelled cancelled = nullptr);

struct TreeEntry {
  int directory;           // open descriptor of the directory that holds it
  const std::string& name; // in that directory
  const std::string& path; // relative to the top, "/" separated
  int depth;               // 0 directly below the top
  mode_t type;             // as DirectoryEntry has it
};
// Returns the target of a symbolic link. nullopt: it is none.
std::optional<std::string> read_link(int directory, const std::string& name);
// Calls `visit` for everything but directories below `top`, in byte order of the path's parts.
void walk_tree(int top, const std::filesystem::path& where, const std::function<void(const TreeEntry&)>& visit);

} // namespace holdfast::archive
