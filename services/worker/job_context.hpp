#pragma once
// What the jobs and sessions of one worker share. Owned by Node, which outlives them; main thread only.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/binaries.hpp"
#include "services/worker/database.hpp"
#include "services/worker/options.hpp"

#include <boost/asio/thread_pool.hpp>

#include <string>

namespace holdfast::worker {

class CrawlSessions;
class Programs;
class RunningHooks;
class Turns;

struct JobContext {
  const NodeOptions& options;
  const std::string& node_id;
  const std::string& hostname;
  Database& database;
  process::Launcher& launcher;
  Binaries& binaries;
  asio::thread_pool& files;    // hashing, fsync, publication; not two jobs of one attempt at once
  asio::thread_pool& resolver; // name resolution
  const archive::Root& archive_root;
  asio::any_io_executor executor;
  std::string cookie; // HOLDFAST_COOKIE value of this incarnation
  CrawlSessions* sessions{nullptr};
  Programs* programs{nullptr};
  RunningHooks* running_hooks{nullptr};
  Turns* turns{nullptr};
};

} // namespace holdfast::worker
