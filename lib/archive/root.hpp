#pragma once
// The archive root: where sealed snapshots live. A directory, perhaps shared by NFS, or a bucket of an object store
// (s3://...). Blocking work; used by one side thread ("files") at a time.
//
// A directory that machines share is only used in ways that NFS supports: names are taken by link, rename and exclusive
// create; files are read after their writer has closed them; nothing is locked, and nothing is ever appended to.

#include "lib/base/file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::s3 {
class Client;
}

namespace holdfast::archive {

inline constexpr const char* kSentinel = ".holdfast-archive";

class Root {
public:
  // Opens the root, a directory or "s3://BUCKET/PREFIX?...". Its sentinel file ".holdfast-archive" holds the
  // collection's id. `create`: make directory and sentinel if the directory is absent or empty; only for a collection
  // that has no files yet, because an unmounted volume looks like an empty directory. Throws Error(unavailable) if the
  // sentinel is missing or of another collection, Error(cannot_create) if it is not writable.
  static Root open(const std::filesystem::path& directory, const std::string& collection_id, bool create);

  // Throws Error(unavailable) if the sentinel has vanished since. Cheap; called before every publication.
  void check() const;
  // Makes and removes something below the root in all steps of a publication: directories, a file of so many bytes,
  // fsync, rename; or an object. Throws what a publication would throw.
  void probe(const std::filesystem::path& below, std::uint64_t bytes) const;
  // Returns the path of a directory; not of a bucket.
  const std::filesystem::path& path() const noexcept { return path_; }
  s3::Client* bucket() const noexcept { return bucket_.get(); }
  // Returns the bytes free for us on its file system; of a bucket: a very large number.
  std::uint64_t free_bytes() const;
  // Writes a page of ours, at once or not at all. `file`: below the root.
  void write_file(const std::filesystem::path& file, const std::string& text, const std::string& type) const;
  // Writes a file in the same way from `size` bytes that `read` yields (0: the end), a piece at a time.
  using Read = std::function<std::size_t(char* buffer, std::size_t room)>;
  void write_file(const std::filesystem::path& file, std::uint64_t size, const std::string& type,
                  const Read& read) const;
  // Removes a file, and the directory that it leaves empty. Succeeds if it does not exist.
  void remove_file(const std::filesystem::path& file) const;
  // A published file, to be read; of a bucket a copy of it, in memory or, if it is large, in the temporary directory
  // without a name. Empty: there is none, or it is no regular file below the root.
  base::Fd open_file(const std::string& file) const;

private:
  Root(std::filesystem::path path, std::shared_ptr<s3::Client> bucket, std::string id)
      : path_(std::move(path)), bucket_(std::move(bucket)), id_(std::move(id)) {}
  std::filesystem::path path_;
  std::shared_ptr<s3::Client> bucket_;
  std::string id_;
};

// The id in the sentinel of a directory; nullopt if there is none.
std::optional<std::string> directory_sentinel(const std::filesystem::path& root);
// Why no page can be published there, found by a probe; empty: one can, or the archive has not begun.
std::string find_trouble(const std::filesystem::path& root);

// Returns the place of a file, for users: "/srv/archive/2026/...", "s3://bucket/prefix/2026/...".
std::string shown(const std::filesystem::path& root, const std::filesystem::path& file);

} // namespace holdfast::archive
