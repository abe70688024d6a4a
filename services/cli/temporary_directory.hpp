#pragma once
// A directory of our own in the system's directory for temporary files. The destructor removes it with all that it
// holds.

#include <filesystem>
#include <string>

namespace holdfast::cli {

class TemporaryDirectory {
public:
  // Throws Error(cannot_create).
  explicit TemporaryDirectory(const std::string& purpose);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace holdfast::cli
