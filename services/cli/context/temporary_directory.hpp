#pragma once
// A directory of our own in the system's directory for temporary files, or in one that is named and made if it is
// missing. The destructor removes it with all that it holds.

#include <filesystem>
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

} // namespace holdfast::cli
