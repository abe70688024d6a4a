#include "services/runner/purge.hpp"

#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/store/control.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <vector>

namespace holdfast::runner {

namespace {

constexpr int kBatch = 20;

} // namespace

Purge::Purge(const std::filesystem::path& archive_root, const std::string& collection_id)
    : archive_root_(archive_root), collection_id_(collection_id) {}

Purge::~Purge() { files_.join(); }

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
      for (const auto& relative : listed) {
        try {
          archive::remove_snapshot(root, relative);
          gone.push_back(relative);
        } catch (const base::Error& error) {
          if (refused_.insert(relative).second) spdlog::error("not deleted: {}", error.what());
        }
      }
    } catch (const base::Error& error) {
      problem = error.what();
    }
    co_return;
  };
  co_await boost::asio::co_spawn(files_, work, boost::asio::use_awaitable);
  if (!problem.empty() && !std::exchange(told_, true))
    spdlog::info("files of removed crawls are left to a node that has the archive: {}", problem);
  if (gone.empty()) co_return 0;
  co_await pool.run([&](pg::Connection& connection) { store::purge_done(connection, gone); });
  co_return static_cast<int>(gone.size());
}

} // namespace holdfast::runner
