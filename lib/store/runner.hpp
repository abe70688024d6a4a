#pragma once
// The runner: its gate and its maintenance tasks. One free function per SQL function
// (migrations/functions/70_runner.sql), same name. Blocking; call on the thread that owns the connection. Errors:
// lease_lost when the runner has lapsed, or does not lead any more. All may be repeated.

#include "lib/pg/connection.hpp"
#include "lib/store/worker.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

// A runner that stands in the way of another.
struct RunnerInWay : LocalProcess {
  std::string label;
  bool standby{false}, leads{false};
};

struct Entry {
  enum class Answer { lead, yield, wait } answer{Answer::wait};
  std::int64_t epoch{0};           // of lead
  std::vector<RunnerInWay> others; // of yield and wait
};

struct RunnerHeartbeat {
  bool leads{false};
  std::string request;   // "", "leave", "drain", "stop"
  std::string rival;     // who wants the gate, for users; may be empty
  std::string log_level; // "": the configured one
};

struct MaintenanceRun {
  std::string task, error; // error: it failed, and changed nothing
  std::int64_t count{0};
  std::chrono::microseconds duration{0};
};

struct Backlog {
  std::int64_t crawls_due{0}, snapshots_due{0}, held{0};
  bool unfinished{false};
};

struct WorkerCount {
  int running{0};
  int able{0}; // of those: claim whatever is due; not paused, draining, bound to some crawls, or without room on disk
};
using WorkerCounts = std::map<std::string, WorkerCount>; // by kind

// The other processes of a runner's machine.
struct Neighbours {
  WorkerCounts workers;  // started by others
  std::string newer_run; // label of the newest `holdfast run`, which alone starts workers; "": it is this one
};

// Tries to lead. `grace`: how long a leading runner may still lead once it is requested to leave.
Entry runner_enter(pg::Connection& connection, const std::string& runner, std::chrono::milliseconds lease,
                   std::chrono::milliseconds grace);
RunnerHeartbeat runner_heartbeat(pg::Connection& connection, const std::string& runner, std::chrono::milliseconds lease,
                                 const std::string& stats_json);
// The task that is most overdue, done; nothing if none is due.
std::optional<MaintenanceRun> runner_maintenance(pg::Connection& connection, const std::string& runner,
                                                 std::int64_t epoch);
// Processes that should be running in this pid namespace of this machine since this boot.
std::vector<RunnerInWay> local_processes(pg::Connection& connection, const std::string& machine_id,
                                         const std::string& boot_id, const std::string& pid_namespace);
Backlog backlog(pg::Connection& connection);
// Returns the runners of this machine; none as long as the runner has not joined.
Neighbours neighbours(pg::Connection& connection, const std::string& runner);
// Returns the next due page and why it waits, as a sentence for users; empty: nothing waits.
std::string next_work(pg::Connection& connection);

// Work left by commands (lib/catalog/operation.hpp): crawls to stop, files to delete, pages to make again. Blocking;
// call on the thread that owns the connection.

struct StalePage {
  std::string crawl_id, since;
  bool there{true}; // else the crawl was removed, and its page is to go
};
// Returns pages that have waited for `age`; with `crawl` only its own.
std::vector<StalePage> crawl_pages_stale(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age,
                                         const std::optional<std::string>& crawl);

bool may_act_as(pg::Connection& connection, const std::string& role);

} // namespace holdfast::store
