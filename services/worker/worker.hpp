#pragma once
// One incarnation of a worker: joins, takes turns (finish pages, claim new ones), runs snapshots, drains, leaves.
// Owned by the verb that runs it; constructed, run and destroyed on the main thread, which owns all domain state. Side
// threads: heartbeat (own connection), database pool, files, resolver, archive watch, watchdog. Destroy it only after
// run() has completed.

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/member/membership.hpp"
#include "lib/pg/pool.hpp"
#include "lib/process/launcher.hpp"
#include "services/worker/hook/binary_resolver.hpp"
#include "services/worker/hook/browser_watch.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/machine/archive_watch.hpp"
#include "services/worker/machine/housekeeping.hpp"
#include "services/worker/machine/scratch.hpp"
#include "services/worker/machine/watchdog.hpp"
#include "services/worker/options.hpp"
#include "services/worker/page/jobs.hpp"
#include "services/worker/session/crawl_sessions.hpp"
#include "services/worker/session/sign_ins.hpp"
#include "services/worker/turn/claim_conditions.hpp"
#include "services/worker/turn/crawl_expander.hpp"
#include "services/worker/turn/heartbeat_state.hpp"
#include "services/worker/turn/running_hooks.hpp"
#include "services/worker/turn/turns.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::worker {

class Worker {
public:
  enum class Ending {
    left,       // asked to leave, everything released
    lost_trust, // past the trust window: hooks killed; the caller starts a new incarnation
  };

  // Constructs it. `done`: polled whenever the worker is idle and now and then; true ends the worker as if it had been
  // drained (for `add` and `run`). May be empty. Throws Error(unavailable, cannot_create, ...) if the worker cannot
  // start.
  Worker(asio::io_context& io, Options options, base::StopSignal& stop, std::function<bool(pg::Connection&)> done = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  awaitable<Ending> run();

  const std::string& id() const noexcept { return membership_.id(); }
  std::size_t running() const noexcept { return jobs_.running(); }
  std::uint64_t sealed() const noexcept { return jobs_.sealed(); }

private:
  archive::Root join();
  void start_heartbeat();
  void spawn(awaitable<void> work, asio::cancellation_slot slot = {});
  void take_heartbeat(const store::HeartbeatAnswer& answer);
  const std::string& label() const noexcept { return membership_.label(); }
  void heed(const std::vector<std::string>& notifications);
  void publish_heartbeat_state();
  void fence(const std::string& reason);
  void fail(std::exception_ptr failure);
  void stop_services(const std::string& reason);
  awaitable<void> watch_stop();
  awaitable<void> leave();
  void wake(); // something may be due

  bool leaving() const noexcept { return draining_ || fenced_; }
  awaitable<void> turn_loop();
  store::ClaimRequest claim_request();
  std::chrono::milliseconds pause_after(const store::TurnAnswer& answer) const;
  std::string drain_reason() const; // empty: it does not drain
  awaitable<void> crawl_sealed(std::string crawl_id);
  awaitable<void> expand();
  awaitable<void> look_whether_done();

  // In the order in which one needs the other.
  asio::io_context& io_;
  Options options_; // work_dir and temporary_dir: those of this incarnation
  base::StopSignal& stop_;
  std::function<bool(pg::Connection&)> done_;
  member::Membership membership_;
  Scratch scratch_;
  SandboxState sandbox_;
  HookNetworks networks_;
  process::Launcher launcher_;
  BinaryLookup binaries_;
  archive::Root archive_root_;
  asio::thread_pool files_{static_cast<std::size_t>(std::clamp(options_.slots, 1, 4))};
  asio::thread_pool resolver_{4}; // names, and robots.txt
  pg::Pool pool_;
  RetryPolicy retry_;
  ArchiveWatch archive_watch_;
  ClaimConditions claim_conditions_;
  Turns turns_;
  RunningHooks running_hooks_;
  CrawlExpander expander_;
  Housekeeping housekeeping_;
  HookServices hook_services_;
  BinaryResolver binary_resolver_;
  BrowserWatch browser_;
  SignIns sign_ins_;
  SessionServices session_services_;
  CrawlSessions sessions_;
  PageServices page_services_;
  Jobs jobs_;
  std::shared_ptr<HeartbeatState> heartbeat_state_{std::make_shared<HeartbeatState>()};
  base::Sleeper sleeper_;
  std::optional<Watchdog> watchdog_; // while it runs
  std::size_t spawned_{0};           // coroutines beside run() that have not ended
  bool draining_{false}, fenced_{false};
  std::exception_ptr failure_;
  std::chrono::steady_clock::time_point looked_whether_done_{};
};

} // namespace holdfast::worker
