#pragma once
// Brings the archive after the collection: deletes the files of removed snapshots (holdfast.purge lists them) and
// writes the pages of crawls that have changed. Owned by a worker's housekeeping, and by the leading runner; main
// thread only, the deleting itself on the `files` thread.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/pg/pool.hpp"

#include <boost/asio/thread_pool.hpp>
#include <spdlog/common.h>

#include <chrono>
#include <set>
#include <string>

namespace holdfast::worker {

class ArchiveUpkeep {
public:
  // How long something has waited before it is done here; until then it is left to others.
  struct Ages {
    std::chrono::milliseconds files, pages;
  };

  // `level`: at which it says, once each, what cannot be done.
  ArchiveUpkeep(pg::Pool& pool, boost::asio::thread_pool& files, Ages ages, spdlog::level::level_enum level)
      : pool_(pool), files_(files), ages_(ages), level_(level) {}

  awaitable<bool> due();
  // Deletes and writes a few; returns how many. A row leaves the list when its directory is gone, so that a crash
  // between the two changes nothing.
  awaitable<int> step(const archive::Root& root);

private:
  void refuse(const std::string& what, const std::string& why);

  pg::Pool& pool_;
  boost::asio::thread_pool& files_;
  const Ages ages_;
  const spdlog::level::level_enum level_;
  std::set<std::string> refused_; // said once
};

} // namespace holdfast::worker
