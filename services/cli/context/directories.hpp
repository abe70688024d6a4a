#pragma once
// A directory of our own in the system's directory for temporary files, or in one that is named and made if it is
// missing. The destructor removes it with all that it holds.

#include "lib/archive/recover.hpp"
#include "services/cli/context/context.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace holdfast::cli {

class TemporaryDirectory {
public:
  // Throws Error(cannot_create).
  explicit TemporaryDirectory(const std::string& purpose,
                              std::filesystem::path parent = std::filesystem::temp_directory_path());
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

// Directories of snapshots in the archive that no row names. Main thread.

// Tells the directories of snapshots that no row names. `below`: relative to the root. Returns how many have one.
std::size_t each_unknown_directory(pg::Connection& connection, const archive::Files& files,
                                   const std::filesystem::path& below,
                                   const std::function<void(const std::string&)>& found);

} // namespace holdfast::cli
