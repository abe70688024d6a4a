#include "services/runner/purge.hpp"

#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/store/control.hpp"
#include "services/worker/crawl_page.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <vector>

namespace holdfast::runner {

namespace {

constexpr int kBatch = 20;
constexpr std::chrono::seconds kPageAge{5}; // until then the worker that sealed the crawl writes its page

} // namespace

Purge::Purge(const std::filesystem::path& archive_root, const std::string& collection_id)
    : archive_root_(archive_root), collection_id_(collection_id) {}

Purge::~Purge() { files_.join(); }

awaitable<int> Purge::step(pg::Pool& pool) {
  if (archive_root_.empty()) co_return 0;
  const auto listed =
      co_await pool.run([](pg::Connection& connection) { return store::purge_list(connection, kBatch); });
  const bool pages = co_await pool.run(
      [](pg::Connection& connection) { return !store::crawl_pages_stale(connection, 1, kPageAge, {}).empty(); });
  if (listed.empty() && !pages) co_return 0;
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
    spdlog::info("files of removed crawls are left to a worker that has the archive: {}", problem);
  if (!problem.empty()) co_return 0;
  int done = static_cast<int>(gone.size());
  if (!gone.empty()) co_await pool.run([&](pg::Connection& connection) { store::purge_done(connection, gone); });
  if (pages)
    done += co_await pool.run([&](pg::Connection& connection) {
      try {
        const auto root = archive::Root::open(archive_root_, collection_id_, false);
        return worker::refresh_crawl_pages(connection, root, kPageAge);
      } catch (const base::Error& error) {
        if (error.error_class() != base::ErrorClass::cannot_create) throw;
        if (refused_.insert("crawls").second) spdlog::error("no page for a crawl: {}", error.what());
        return 0; // a full disk is no reason for the runner to end; it is tried again
      }
    });
  co_return done;
}

} // namespace holdfast::runner
