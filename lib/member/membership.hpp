#pragma once
// Membership of a process in the collection: it joins, sends heartbeats, is trusted as long as they succeed, receives
// notifications, and leaves. Workers and runners share it; they differ in the calls that they make. Owned by Worker or
// Gate; used on the main thread. It owns the heartbeat thread, which has a connection of its own. stop() and the
// destructor join that thread; no callback runs afterwards.

#include "lib/base/async.hpp"
#include "lib/base/trust_window.hpp"
#include "lib/pg/heartbeat.hpp"
#include "lib/pg/pool.hpp"
#include "lib/store/worker.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::member {

// Describes this process for a join. A new incarnation: fresh id, this machine, boot, pid and start time. `keep_in`:
// where a machine without /etc/machine-id keeps its generated id.
store::ProcessInfo describe_process(const std::string& process_type, const std::string& worker_type,
                                    const std::string& version, int slots, const std::filesystem::path& keep_in);

class Membership {
public:
  struct Callbacks {
    // On the heartbeat thread: makes the call. Returns what the main thread is to do with the answer.
    std::function<std::function<void()>(pg::Connection&)> heartbeat;
    // The others on the main thread.
    std::function<void(const std::vector<std::string>& notifications)> notified;
    std::function<void()> restored; // the database is back
    std::function<void(const std::string& reason)>
        ended; // no further heartbeat is made: for example, the lease has lapsed
  };
  using Leave = std::function<void(pg::Connection&)>;

  Membership(asio::any_io_executor executor, store::ProcessInfo process, std::chrono::milliseconds lease,
             std::chrono::milliseconds margin);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Throws what store::process_join() throws.
  void join(pg::Connection& connection);
  void start(const std::string& dsn, pg::ConnectionOptions options, std::chrono::milliseconds interval,
             Callbacks callbacks);
  void heartbeat_now();
  void stop();
  // Records the exit; repeats that for `timeout`. If it fails, the lease expires.
  awaitable<void> leave(pg::Pool& pool, const Leave& leave, std::chrono::milliseconds timeout,
                        const std::string& reason);

  const store::ProcessInfo& process() const noexcept { return process_; }
  const std::string& id() const noexcept { return process_.id; }
  const std::string& label() const noexcept { return process_.label; }
  const std::string& collection_id() const noexcept { return collection_id_; }
  const base::TrustWindow& trust() const noexcept { return trust_; }
  // Returns why the database cannot be reached, for users; "": it can, or the present call has not failed yet.
  const std::string& last_error() const noexcept { return last_error_; }
  bool trusted() const { return trust_.trusted(base::TrustWindow::Clock::now()); }

private:
  std::function<void(pg::Connection&)> heartbeating(std::function<std::function<void()>(pg::Connection&)> heartbeat);

  asio::any_io_executor executor_;
  const store::ProcessInfo process_;
  const std::chrono::milliseconds lease_;
  std::string collection_id_;
  std::string last_error_;
  base::TrustWindow trust_;
  std::shared_ptr<bool> alive_; // what the heartbeat thread has posted may come after stop()
  std::unique_ptr<pg::Heartbeat> heartbeat_;
};

} // namespace holdfast::member
