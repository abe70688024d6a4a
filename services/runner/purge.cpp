#include "services/runner/purge.hpp"

#include "lib/base/error.hpp"
#include "lib/store/control.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

namespace holdfast::runner {

namespace {

constexpr int kBatch = 20;

} // namespace

Purge::Purge(const std::filesystem::path& archive_root, const std::string& collection_id)
    : archive_root_(archive_root), collection_id_(collection_id) {}

Purge::~Purge() { files_.join(); }

bool delete_snapshot_directory(const std::filesystem::path& root, const std::string& relative) {
  const std::filesystem::path path(relative);
  const auto parts = std::distance(path.begin(), path.end());
  const bool odd = std::any_of(path.begin(), path.end(), [](const auto& part) {
    return part.empty() || part == "." || part == ".." || part == "/";
  });
  if (odd || parts != 4 || path.is_absolute()) {
    spdlog::error("not deleted: \"{}\" is no snapshot's directory; see holdfast.purge", relative);
    return false;
  }
  std::error_code error;
  auto directory = root / path;
  // Nothing above the snapshot may lead elsewhere.
  const auto parent = std::filesystem::weakly_canonical(directory.parent_path(), error);
  if (error || parent != std::filesystem::weakly_canonical(root, error) / path.parent_path()) {
    spdlog::error("not deleted: {} leads out of the archive", directory.string());
    return false;
  }
  std::filesystem::remove_all(directory, error);
  if (error) {
    spdlog::warn("cannot delete {}: {}", directory.string(), error.message());
    return false;
  }
  for (int level = 0; level < 3; ++level) {
    directory = directory.parent_path();
    if (!std::filesystem::remove(directory, error)) break; // not empty
  }
  return true;
}

awaitable<int> Purge::step(pg::Pool& pool) {
  if (archive_root_.empty()) co_return 0;
  const auto listed =
      co_await pool.run([](pg::Connection& connection) { return store::purge_list(connection, kBatch); });
  if (listed.empty()) co_return 0;
  std::vector<std::string> gone;
  std::string problem;
  const auto work = [this, &listed, &gone, &problem]() -> awaitable<void> {
    try {
      const auto root = archive::Root::open(archive_root_, collection_id_, false);
      for (const auto& relative : listed)
        if (delete_snapshot_directory(root.path(), relative)) gone.push_back(relative);
    } catch (const base::Error& error) {
      problem = error.what();
    }
    co_return;
  };
  co_await boost::asio::co_spawn(files_, work, boost::asio::use_awaitable);
  if (!problem.empty() && !std::exchange(told_, true))
    spdlog::info("files of removed crawls are left to a runner that has the archive: {}", problem);
  if (gone.empty()) co_return 0;
  co_await pool.run([&](pg::Connection& connection) { store::purge_done(connection, gone); });
  co_return static_cast<int>(gone.size());
}

} // namespace holdfast::runner
