#pragma once
// A runner at the single-runner gate: joins as a waiting one, leads or steps down, keeps its lead by heartbeats,
// leaves. Owned by `Maintenance`; constructed, used and destroyed on the main thread. Side threads: heartbeat (own
// connection), database pool. Destroy it only after leave() has completed; the destructor stops the heartbeat and joins
// both threads.
//
// The newest wins. The leading runner is requested to leave through the database only: a signal would also end its
// other work. Then it cannot renew its lease past graceful_timeout. The database lets no other runner lead while a task
// of the old one runs.

#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/member/membership.hpp"
#include "lib/pg/pool.hpp"
#include "lib/store/runner.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::runner {

// Options of a runner. Plain aggregates; immutable while it lives.
struct GateOptions {
  std::string dsn;
  std::string version;
  std::filesystem::path data_dir; // keeps the machine's id where the system has none
  std::filesystem::path archive_root;
  std::string keep; // rule about captures without a change, as keep_rule() has it; empty: none
  std::function<void(const std::string&)> joined; // called with the id of each incarnation; may be empty
  bool spawns{false};                             // it has local workers: it steps down without ending, and goes on
  bool standby{false}; // wait until the leading runner has left instead of requesting it to leave
  std::chrono::milliseconds lease{15000}, heartbeat{3000}, poll{1000};
  // Time that a leading runner may take to leave. Then its lease ends, as if it were dead.
  std::chrono::milliseconds graceful_timeout{5000};
};

struct SpawnerOptions {
  std::vector<std::string> command;          // starts one worker; "--set worker.kind=K" and "--parent ID" are added
  std::shared_ptr<const std::string> runner; // id of the runner that starts them, as it is just now; may be empty
  bool split{false};                         // workers for crawls and workers for snapshots, instead of those for all
  int max_per_type{4}, max_crawl_workers{1}, max_total{12}; // workers of this machine, also those of others
  int slots{4};                                             // snapshots that one worker works on at once
  int idle_timeout{3};                                      // rounds without work after which all is done; 0: never
  bool stay{false};                                         // --daemon
  int max_crashes{5}; // so many within crash_window, and something is wrong that starting again does not mend
  std::chrono::milliseconds crash_window{60000}, poll{1000};
  std::chrono::milliseconds drain_timeout{120000}, stop_timeout{20000}; // as the workers' own
};

class Gate {
public:
  enum class Entered {
    leads,      // through: epoch() is valid
    superseded, // a newer runner requests it: leave
    stopped,    // stopped while waiting
    lost,       // lapsed: start again
  };

  // Joins, on a connection of its own. Throws if the database is unreachable at start.
  Gate(asio::io_context& io, GateOptions options, base::StopSignal& stop);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Waits until one of the endings; as long as it takes.
  awaitable<Entered> enter();
  // Closes the lead (or the waiting) in the database, if that can be reached within a moment; else the lease runs out.
  awaitable<void> leave(std::string reason);

  // Returns true if it leads as far as it knows: its last heartbeat is young enough, and it was not requested to leave.
  // The database checks its calls again.
  bool leads() const;
  bool stepped_down() const noexcept { return !rival_.empty(); } // a newer runner wants to lead
  // Returns why it does not lead, for users: "stepped down for ...", "lost its lease ...", "lost the database: ...".
  std::string ending() const;
  void lose(const std::string& why); // the database reports that it does not lead any more

  const std::string& id() const noexcept { return membership_.id(); }
  const std::string& label() const noexcept { return membership_.label(); }
  const std::string& collection_id() const noexcept { return membership_.collection_id(); }
  std::int64_t epoch() const noexcept { return epoch_; }
  pg::Pool& pool() { return *pool_; }

  // Sleeps until something happened (notification, heartbeat with news, stop), or that time has passed.
  awaitable<bool> sleep(std::chrono::milliseconds at_most) { return sleeper_.sleep(at_most); }
  void wake() { sleeper_.wake(); }

  // Ends the leases of processes of this machine that are dead; how many there were. For the leading runner.
  awaitable<int> lapse_dead();

private:
  void start_heartbeat();
  void take_heartbeat(const store::RunnerHeartbeat& heartbeat);
  awaitable<void> end_if_dead(store::RunnerInWay other);
  bool is_local(const store::RunnerInWay& other) const;

  GateOptions options_;
  base::StopSignal& stop_;
  member::Membership membership_;
  std::unique_ptr<pg::Pool> pool_;
  base::Sleeper sleeper_;
  std::int64_t epoch_{0};
  std::string rival_; // label of the newer runner that wants to lead
  std::string lost_;  // why the lease is lost
};

} // namespace holdfast::runner
