#pragma once
// Where the files of an export go; and holdfast export --format files: the files of snapshots as people read them, with
// index.jsonl, which lists the snapshots. Blocking; main thread.

#include "lib/archive/root.hpp"
#include "lib/store/capture.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::cli {

// Where files go, by relative path.
class FileTree {
public:
  virtual ~FileTree() = default;
  // `may_be_there`: one of this size is kept, so that an export can go on.
  virtual void add(const std::string& path, int file, std::uint64_t size, bool may_be_there) = 0;
  virtual void close() {}
};
// `location`: a directory, or s3://BUCKET/PREFIX.
std::unique_ptr<FileTree> file_tree(const std::string& location);
std::unique_ptr<FileTree> zip_tree(int file);

struct ExportedFiles {
  std::size_t snapshots{0}, files{0};
  std::uint64_t bytes{0};
};
// <host>/<time>-<id>/... ; `told` is called after each snapshot.
ExportedFiles export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                           FileTree& tree, const std::function<void(const ExportedFiles&)>& told);

} // namespace holdfast::cli
