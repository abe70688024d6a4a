#pragma once
// Workers: joining, heartbeats, leaving. One free function per SQL function (migrations/functions/20_worker.sql), same
// name. Each blocks on the given connection; call on the thread that owns it. Errors: lease_lost when the process has
// lapsed; see lib/pg/connection.hpp for the rest. All may be repeated.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::store {

struct MachineInfo {
  std::string id, hostname, os, architecture;
  int cpu_count{0};
  std::int64_t memory_bytes{0};
};

struct ProcessInfo {
  std::string id; // one incarnation
  MachineInfo machine;
  std::string parent_id;              // the runner that started it; "": none of ours
  std::string boot_id, pid_namespace; // pid_namespace: "" if the pid cannot be looked up by others
  int pid{0};
  std::uint64_t start_ticks{0};
  std::string process_type, worker_type, label, version;
  int slots{0};
  std::string capabilities_json{"{}"}; // what it can do, for users and for upgrades
  bool standby{false};                 // it waits for another process to end
};

// The only way to name owned work: a write whose fence is not the row's current one changes nothing.
struct Lease {
  std::string snapshot_id, crawl_id;
  std::int64_t fence{0};
  friend bool operator==(const Lease&, const Lease&) = default;
};

// Identity of a process on its own machine.
struct LocalProcess {
  std::string id, machine_id, boot_id, pid_namespace;
  int pid{0};
  std::uint64_t start_ticks{0};
};

struct HeartbeatAnswer {
  std::vector<Lease> lost;  // what the worker believes to hold, but does not; without the crawl
  std::vector<Lease> extra; // held without knowing: the answer to the claim was lost
  std::string request;      // "", "drain", "stop" or "leave"
  std::string log_level;    // "": the configured one
};

// Joins as a worker, or as a candidate for runner. Returns the collection's id.
std::string worker_join(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease);
HeartbeatAnswer worker_heartbeat(pg::Connection& connection, const std::string& worker, std::chrono::milliseconds lease,
                                 const std::vector<Lease>& held, const std::string& stats_json);
// Reports that a process without claims runs, again and again, and that it has ended.
void process_present(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease);
// Ends the lease of a worker or runner that was seen dead on the caller's own machine, so that others take its work at
// once. Returns false if the lease was over already, or if that process is not the one known by this id.
bool worker_gone(pg::Connection& connection, const LocalProcess& process, const std::string& reason);
std::vector<std::string> processes_on(pg::Connection& connection, const std::string& hostname);

} // namespace holdfast::store
