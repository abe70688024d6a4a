#pragma once
// Runs a worker in this process: signals, incarnations, the threads around it. Main thread; returns when the worker
// has left.

#include "services/cli/context.hpp"
#include "services/cli/verbs.hpp"

#include <functional>

namespace holdfast::cli {

// Notes SIGINT, SIGTERM and SIGHUP from now on, so that one that comes while the embedded database is being started
// still ends in good order. Called early by verbs that will call run_worker().
void note_early_signals();

// Runs until a signal says stop or `done` says so. SIGTERM drains, again: stops, again: kills; SIGINT stops, again:
// kills. A worker that lost trust is followed by a new incarnation. Returns true if it ended because of a signal.
bool run_worker(Context& context, const std::function<bool(pg::Connection&)>& done, const WorkerOptions& worker = {});

} // namespace holdfast::cli
