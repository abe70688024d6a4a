#include "services/runner/purge.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

namespace holdfast::runner {

namespace {

// Until then the worker that sealed the crawl writes its page.
constexpr upkeep::ArchiveUpkeep::Ages kAges{std::chrono::seconds(0), std::chrono::seconds(5)};

} // namespace

Purge::Purge(pg::Pool& pool, const std::filesystem::path& archive_root, const std::string& collection_id)
    : archive_root_(archive_root), collection_id_(collection_id), upkeep_(pool, files_, kAges, spdlog::level::err, 0) {}

Purge::~Purge() { files_.join(); }

awaitable<int> Purge::step() {
  if (archive_root_.empty() || !co_await upkeep_.due()) co_return 0;
  std::optional<archive::Root> root;
  std::string problem;
  co_await base::on_thread(files_, [&] {
    try {
      root = archive::Root::open(archive_root_, collection_id_, false);
    } catch (const base::Error& error) {
      problem = error.what();
    }
  });
  if (!root && !std::exchange(told_, true))
    spdlog::info("files of removed crawls are left to a worker that has the archive: {}", problem);
  if (!root) co_return 0;
  co_return co_await upkeep_.step(*root);
}

} // namespace holdfast::runner
