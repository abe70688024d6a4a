#include "services/cli/transfer/export_files.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/media_type.hpp"
#include "lib/archive/published.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/url.hpp"
#include "lib/s3/client.hpp"
#include "lib/wacz/sorted_lines.hpp"
#include "lib/wacz/zip.hpp"
#include "lib/warc/capture.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <optional>

namespace holdfast::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kSnapshotsListed = 500;
constexpr const char* kList = "index.jsonl";

class DirectoryTree : public FileTree {
public:
  explicit DirectoryTree(const std::string& directory) : directory_(directory) {
    std::error_code error;
    fs::create_directories(directory_, error);
    if (error)
      throw base::Error(base::ErrorClass::cannot_create, "cannot create " + directory + ": " + error.message());
  }
  void add(const std::string& path, int file, std::uint64_t size, bool may_be_there) override {
    const auto target = directory_ / path;
    std::error_code error;
    if (may_be_there && fs::file_size(target, error) == size && !error) return;
    fs::create_directories(target.parent_path());
    const auto partial = target.parent_path() / ("." + target.filename().native() + ".partial");
    const base::Fd copy(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!copy) archive::throw_errno(errno, "create", partial.native());
    archive::copy_body(file, copy.get(), size, partial.native(), nullptr, [](std::string_view) {});
    fs::rename(partial, target);
  }

private:
  const fs::path directory_;
};

// Objects below a prefix of a bucket.
class BucketTree : public FileTree {
public:
  explicit BucketTree(const std::string& location) : client_(s3::parse_location(location)) {}
  void add(const std::string& path, int file, std::uint64_t size, bool may_be_there) override {
    if (may_be_there) {
      const auto found = client_.list(path, false).objects;
      if (!found.empty() && found.front().key == path && found.front().size == size) return;
    }
    std::uint64_t at = 0;
    client_.put_stream(path, size, std::string(archive::media_type(path, "")), [&](char* buffer, std::size_t room) {
      const auto got = base::read_at(file, buffer, room, at);
      if (got < 0) archive::throw_errno(errno, "read", path);
      at += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    });
  }

private:
  s3::Client client_;
};

class ZipTree : public FileTree {
public:
  explicit ZipTree(int file) : zip_(file, std::time(nullptr)) {}
  void add(const std::string& path, int file, std::uint64_t size, bool) override {
    zip_.begin(path, size);
    archive::read_range(file, 0, size, path, [&](std::string_view piece) { zip_.write(piece); });
    zip_.end();
  }
  void close() override { zip_.close(); }

private:
  wacz::ZipWriter zip_;
};

} // namespace

std::unique_ptr<FileTree> file_tree(const std::string& location) {
  if (s3::is_location(location)) return std::make_unique<BucketTree>(location);
  return std::make_unique<DirectoryTree>(location);
}
std::unique_ptr<FileTree> zip_tree(int file) { return std::make_unique<ZipTree>(file); }

ExportedFiles export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                           FileTree& tree, const std::function<void(const ExportedFiles&)>& told) {
  ExportedFiles counts;
  const auto list = wacz::temporary_file();
  std::uint64_t list_size = 0;
  std::optional<std::string> after;
  for (;;) {
    const auto batch = store::export_snapshots(connection, query, after, kSnapshotsListed);
    for (const auto& snapshot : batch) {
      const auto host = base::host_directory(base::parse_url(snapshot.url));
      const auto path = host + "/" + warc::timestamp_of(snapshot.date) + "-" + snapshot.id;
      archive::each_file(
          root, snapshot.directory, [](std::string_view) { return true; },
          [&](int file, const std::string& name) {
            const auto size = archive::file_size(file, name);
            tree.add(path + "/" + name, file, size, true);
            ++counts.files;
            counts.bytes += size;
          });
      const auto line =
          base::json_text(nlohmann::ordered_json{
              {"url", snapshot.url}, {"title", snapshot.title}, {"date", snapshot.date}, {"path", path}}) +
          "\n";
      wacz::write_all(list.get(), line);
      list_size += line.size();
      ++counts.snapshots;
      told(counts);
    }
    if (static_cast<std::int64_t>(batch.size()) < kSnapshotsListed) break;
    after = batch.back().id;
  }
  tree.add(kList, list.get(), list_size, false);
  tree.close();
  return counts;
}

} // namespace holdfast::cli
