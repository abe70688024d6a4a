#pragma once
// Options of a runner. Plain aggregates; immutable while it lives.

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::runner {

struct GateOptions {
  std::string dsn;
  std::string version;
  std::filesystem::path data_dir; // keeps the machine's id where the system has none
  std::filesystem::path archive_root;
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

} // namespace holdfast::runner
