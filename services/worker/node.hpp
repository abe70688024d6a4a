#pragma once
// One incarnation of a worker node: joins, claims while there is room, runs snapshots, drains, leaves.
// Owned by the verb that runs it; constructed, run and destroyed on the main thread, which owns all domain
// state. Side threads: beat (own connection), database pool, files, resolver. Destroy it only after run() has
// completed.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/base/trust_window.hpp"
#include "lib/pg/heartbeat.hpp"
#include "lib/pg/pool.hpp"
#include "lib/process/launcher.hpp"
#include "services/worker/crawl_session.hpp"
#include "services/worker/options.hpp"
#include "services/worker/programs.hpp"
#include "services/worker/scratch.hpp"
#include "services/worker/snapshot_job.hpp"
#include "services/worker/watchdog.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace holdfast::worker {

class Node {
public:
  enum class Ending {
    left,       // asked to leave, everything given back
    lost_trust, // past the trust window: hooks killed; the caller starts a new incarnation
  };

  // `done`: polled whenever the node is idle and now and then; true ends the node as if it had been asked to drain (for
  // `add` and `run`). May be empty. Throws Error(unavailable, cannot_create, ...) if the node cannot start.
  Node(asio::io_context& io, NodeOptions options, base::StopSignal& stop,
       std::function<bool(pg::Connection&)> done = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  awaitable<Ending> run();

  const std::string& id() const noexcept { return process_.id; }
  std::size_t running() const noexcept { return jobs_.size(); }
  std::uint64_t sealed() const noexcept { return sealed_; }

private:
  // A hook that makes no progress.
  struct Still {
    std::string snapshot_id, plugin, hook;
    hooks::Stillness stillness;
  };
  // What the beat thread may read of us.
  struct Held {
    std::mutex mutex;
    std::vector<store::Lease> leases;
    std::uint64_t sealed{0}, free_bytes{0};
    std::string not_claiming;
    std::vector<Still> still;
    std::string stats_json() const; // as it is at this moment
  };

  void start_heartbeat();
  void spawn(awaitable<void> work, asio::cancellation_slot slot = {});
  void take_beat(base::TrustWindow::Clock::time_point sent, const store::BeatAnswer& answer);
  void heed(const std::vector<std::string>& notifications);
  void publish_held();
  void set_not_claiming(std::string why);
  void fence(const std::string& reason);
  void watch_trust();
  awaitable<void> watch_stop();
  awaitable<void> claim_loop();
  awaitable<bool> expand_crawl();
  awaitable<bool> claim_snapshots();
  awaitable<void> hand_back(store::Lease lease);
  awaitable<void> run_job(std::shared_ptr<SnapshotJob> job);
  awaitable<void> give_up_the_dead();
  awaitable<void> purge();
  awaitable<void> look_at_archive();
  awaitable<void> ask_archive();
  awaitable<void> make_crawl_page(std::string crawl_id);
  awaitable<bool> is_done();
  bool has_room();
  std::string shortage(); // why no new work is taken; empty: it is
  void wake();
  awaitable<void> sleep_until_woken(std::chrono::milliseconds at_most);

  asio::io_context& io_;
  NodeOptions options_;
  base::StopSignal& stop_;
  std::function<bool(pg::Connection&)> done_;
  store::ProcessInfo process_;
  std::string collection_id_;
  Scratch scratch_;
  std::unique_ptr<archive::Root> archive_root_;
  std::unique_ptr<process::Launcher> launcher_;
  Binaries binaries_;
  base::TrustWindow trust_;
  asio::thread_pool files_{1};
  asio::thread_pool resolver_{4}; // names, and robots.txt
  asio::thread_pool looks_{1};    // at the archive
  std::unique_ptr<pg::Pool> pool_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobContext> context_;
  std::unique_ptr<CrawlSessions> sessions_;
  std::unique_ptr<Programs> programs_;
  std::unique_ptr<Writes> writes_;
  std::shared_ptr<Held> held_{std::make_shared<Held>()};
  // By snapshot and fence: what was taken from us may be claimed anew while its first run still ends.
  std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<SnapshotJob>> jobs_;
  std::set<std::string> extra_once_; // "<snapshot> <fence>" seen as extra on the last beat
  asio::steady_timer wake_timer_;
  asio::steady_timer trust_timer_;
  asio::steady_timer look_timer_; // until the archive has answered
  bool looking_{false};
  std::chrono::steady_clock::time_point looked_{};
  std::string archive_trouble_;                                           // as it was last; empty: none
  std::uint64_t archive_free_{std::numeric_limits<std::uint64_t>::max()}; // bytes; of a bucket nobody knows
  std::size_t spawned_{0};                                                // coroutines beside run() that have not ended
  bool woken_{false};
  bool draining_{false};
  bool fenced_{false};
  bool claiming_{false};
  bool crawl_in_doubt_{false}; // the answer to a claim of a crawl was lost, or its expansion broke off
  std::string not_claiming_;
  std::uint64_t sealed_{0};
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<pg::Heartbeat> heartbeat_; // last: its thread ends first
};

} // namespace holdfast::worker
