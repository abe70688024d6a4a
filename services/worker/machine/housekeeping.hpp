#pragma once
// Maintenance that every worker does for the archive beside its pages, because a runner may have no access to it:
// deletes the files of removed snapshots and writes the pages of crawls again. It also corrects due times after a
// change of the database's clock if no runner does, and ends the leases of workers that lapsed. Nothing fails because
// of it; another round, or another worker, repeats failed work. Owned by Worker; main thread only, its file work on the
// files thread and the pool.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/maintenance/archive_maintenance.hpp"
#include "lib/pg/pool.hpp"
#include "services/worker/options.hpp"

#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <string>

namespace holdfast::worker {

class Housekeeping {
public:
  // `poll`: how often lapsed workers are looked for at most.
  Housekeeping(asio::any_io_executor executor, pg::Pool& pool, asio::thread_pool& files, const archive::Root& archive,
               const Options& options);

  // A round at once and each half minute, until stop().
  awaitable<void> run();
  void stop() { sleeper_.stop(); }
  // The page of a crawl that has just been sealed.
  awaitable<void> make_crawl_page(std::string crawl_id);
  // Returns true if lapsed workers were not looked for recently.
  bool lapse_due() const;
  // Releases the work of workers that lapsed.
  awaitable<void> lapse_process();

private:
  awaitable<void> check_clock();

  pg::Pool& pool_;
  const archive::Root& archive_;
  maintenance::ArchiveMaintenance maintenance_;
  const std::chrono::milliseconds poll_;
  base::Sleeper sleeper_;
  std::chrono::steady_clock::time_point lapsed_{};
  bool lapsing_{false};
};

} // namespace holdfast::worker
