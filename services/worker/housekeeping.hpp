#pragma once
// What every worker does for the archive beside its pages, because a runner may have no access to it: deletes the files
// of removed snapshots and writes the pages of crawls again. It also looks after the clock of the database if no runner
// does. Nothing fails because of it; another round, or another worker, does what could not be done. Owned by Worker;
// main thread only, its file work on the files thread and the pool.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/pg/pool.hpp"
#include "services/worker/sleeper.hpp"

#include <boost/asio/thread_pool.hpp>

#include <string>
#include <utility>

namespace holdfast::worker {

class Housekeeping {
public:
  Housekeeping(asio::any_io_executor executor, pg::Pool& pool, asio::thread_pool& files, const archive::Root& archive)
      : pool_(pool), files_(files), archive_(archive), sleeper_(std::move(executor)) {}

  // A round at once and each half minute, until stop().
  awaitable<void> run();
  void stop();
  // The page of a crawl that has just been sealed.
  awaitable<void> make_crawl_page(std::string crawl_id);

private:
  awaitable<void> check_clock();
  awaitable<void> purge();

  pg::Pool& pool_;
  asio::thread_pool& files_;
  const archive::Root& archive_;
  Sleeper sleeper_;
  bool stopped_{false};
};

} // namespace holdfast::worker
