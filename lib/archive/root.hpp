#pragma once
// The archive root: where sealed snapshots live. Blocking file work; used by one side thread ("files") at a time.

#include <cstdint>
#include <filesystem>
#include <string>

namespace holdfast::archive {

class Root {
public:
  // Opens the root; its sentinel file ".holdfast-archive" holds the collection's id. `create`: make directory and
  // sentinel if the directory is absent or empty. Throws Error(unavailable) if the sentinel is missing or of another
  // collection (an unmounted volume looks like an empty directory), Error(cannot_create) if it is not writable.
  static Root open(const std::filesystem::path& directory, const std::string& collection_id, bool create);

  // Throws Error(unavailable) if the sentinel has vanished since. Cheap; called before every publication.
  void check() const;
  const std::filesystem::path& path() const noexcept { return path_; }
  // Bytes free for us on its file system.
  std::uint64_t free_bytes() const;

private:
  Root(std::filesystem::path path, std::string id) : path_(std::move(path)), id_(std::move(id)) {}
  std::filesystem::path path_;
  std::string id_;
};

} // namespace holdfast::archive
