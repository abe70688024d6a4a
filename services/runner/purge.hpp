#pragma once
// Deletes the files of what was removed from the collection (holdfast.purge lists them) and writes the pages of crawls
// that this makes wrong again, where the archive is mounted.
// Owned by the runner's duties; used on the main thread, the deleting itself on the "files" thread. The destructor
// waits for what it is deleting.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/pg/pool.hpp"

#include <boost/asio/thread_pool.hpp>

#include <filesystem>
#include <set>
#include <string>

namespace holdfast::runner {

class Purge {
public:
  // A runner without the archive (other machine, unmounted) leaves the list to the workers, which all have it: they
  // look at what has waited for a minute.
  Purge(const std::filesystem::path& archive_root, const std::string& collection_id);
  ~Purge();
  Purge(const Purge&) = delete;
  Purge& operator=(const Purge&) = delete;

  // Deletes and writes a few; how many. A row leaves the list when its directory is gone, so that a crash between the
  // two changes nothing.
  awaitable<int> step(pg::Pool& pool);

private:
  std::filesystem::path archive_root_;
  std::string collection_id_;
  boost::asio::thread_pool files_{1};
  bool told_{false};
  std::set<std::string> refused_; // said once
};

} // namespace holdfast::runner
