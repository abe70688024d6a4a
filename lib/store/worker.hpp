#pragma once
// Processes that join, and what workers share through the database: leases, binaries of a machine, hosts, robots.txt.
// One free function per SQL function, same name (migrations/functions/20_process.sql, 21_worker.sql, 62_binary.sql,
// 50_host.sql, 55_robots.sql). Each blocks on the given connection; call on the thread that owns it. Errors: lease_lost
// when the process has lapsed; see lib/pg/connection.hpp for the rest. All may be repeated.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
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
  // How far the clock of this machine is ahead of the database's (negative: behind), at least. The time of the call is
  // its error; 0: they may be the same.
  std::chrono::milliseconds clock_ahead{0};
};

// Joins as a worker, or as a candidate for runner. Returns the collection's id.
std::string process_join(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease);
HeartbeatAnswer worker_heartbeat(pg::Connection& connection, const std::string& worker, std::chrono::milliseconds lease,
                                 const std::vector<Lease>& held, const std::string& stats_json);
// Reports that a process without claims runs, again and again, and that it has ended.
void process_present(pg::Connection& connection, const ProcessInfo& process, std::chrono::milliseconds lease);
// Ends the lease of a worker or runner that was seen dead on the caller's own machine, so that others take its work at
// once. Returns false if the lease was over already, or if that process is not the one known by this id.
bool process_gone(pg::Connection& connection, const LocalProcess& process, const std::string& reason);

// Binaries that plugins need, and options that hold on one machine.
struct BinaryClaim {
  std::string name, id;
  std::int64_t fence{0};
  std::string providers, overrides;
  std::string path, version, sha256, fingerprint; // as last found; empty: never, or gone
};

struct BinaryFound {
  std::string path, version, sha256, fingerprint, provider; // path empty: not found, `error` has the reason
  std::string error;
};

// A claim: what its lost answer held is due again after ten minutes.
std::vector<BinaryClaim> binary_claim(pg::Connection& connection, const std::string& worker, int limit);
// May be repeated. Errors: lease_lost if the fence is stale.
void binary_set(pg::Connection& connection, const std::string& worker, const BinaryClaim& claim,
                const BinaryFound& found);
struct KnownBinary {
  std::string name, path, error; // path empty: not found
};
std::vector<KnownBinary> binary_known(pg::Connection& connection, const std::string& worker);

std::map<std::string, std::string> machine_options(pg::Connection& connection, const std::string& worker);

struct CrawlOptions {
  std::vector<std::string> plugins;
  std::map<std::string, std::string> options;
  std::string persona;
};
CrawlOptions crawl_options(pg::Connection& connection, const std::string& crawl);

// Hosts: delays, caps, back-off. Changes take effect with the next claim of any worker.

// Records that a site requested fewer requests. `by`: the worker that received that. Returns the remaining back-off.
std::chrono::milliseconds host_rate_limited(pg::Connection& connection, const std::string& host, int status,
                                            std::optional<std::chrono::milliseconds> retry_after,
                                            const std::string& by);

// Rules of a site's robots.txt, as the workers share them (migrations/functions/55_robots.sql).
struct Robots {
  std::string state; // known, unreachable, wanted (not known yet)
  std::string rules, error;
  bool fetch{false};     // the caller is to fetch it within a minute, and to call robots_put
  bool too_early{false}; // claimed before it was known that the site has a delay: put it back
};
Robots robots_get(pg::Connection& connection, const std::string& worker, const Lease& lease, const std::string& origin);

struct RobotsAnswer {
  int status{0}; // 0: there was none
  std::string rules, error;
  std::chrono::milliseconds delay{0}, keep{0}; // Crawl-delay, already capped; how long the answer holds
};
// Stores robots.txt. Returns true if the site has a delay, so that the next request must wait.
bool robots_put(pg::Connection& connection, const std::string& worker, const std::string& origin,
                const std::string& host, const RobotsAnswer& answer);

} // namespace holdfast::store
