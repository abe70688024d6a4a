#pragma once

#include "services/cli/context/context.hpp"

#include <functional>
#include <string>
#include <vector>

namespace holdfast::cli {

// Returns this program with the same settings, from whichever layer they came: verb and options follow.
std::vector<std::string> own_command(const Context& context);

// Runs a worker in this process: signals, incarnations, the threads around it. Main thread; returns when the worker
// has left.
struct WorkerOptions {
  std::string kind;   // as the setting worker.kind; empty: that setting
  std::string parent; // id of the runner that starts it; may be empty
  std::vector<std::string> only_crawls{}, only_snapshots{};
};

// Runs until a stop signal or until `done` returns true. SIGTERM drains, again: stops, again: kills; SIGINT stops,
// again: kills. A worker that lost trust is followed by a new incarnation. Returns true if it ended because of a
// signal.
bool run_worker(Context& context, const std::function<bool(pg::Connection&)>& done, const WorkerOptions& worker = {});

} // namespace holdfast::cli
