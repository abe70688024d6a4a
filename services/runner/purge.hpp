#pragma once
// Brings the archive after the collection, where it is mounted: deletes the files of what was removed, and writes the
// pages of crawls that have changed. Owned by the runner's duties; main thread only. The destructor waits for what it
// is deleting.

#include "lib/upkeep/archive_upkeep.hpp"

#include <boost/asio/thread_pool.hpp>

#include <filesystem>
#include <string>

namespace holdfast::runner {

class Purge {
public:
  // A runner without the archive (other machine, unmounted) leaves the list to the workers, which all have it: they
  // look at what has waited for a minute.
  Purge(pg::Pool& pool, const std::filesystem::path& archive_root, const std::string& collection_id);
  ~Purge();
  Purge(const Purge&) = delete;
  Purge& operator=(const Purge&) = delete;

  // Does a little; how much.
  awaitable<int> step();

private:
  std::filesystem::path archive_root_;
  std::string collection_id_;
  boost::asio::thread_pool files_{1};
  upkeep::ArchiveUpkeep upkeep_;
  bool told_{false};
};

} // namespace holdfast::runner
