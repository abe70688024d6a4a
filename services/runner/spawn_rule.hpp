#pragma once
// Decides when the spawner starts and ends local workers: pure functions of the state of one round. Any thread.

#include "lib/store/runner.hpp"
#include "services/runner/options.hpp"

#include <chrono>
#include <deque>
#include <string>
#include <vector>

namespace holdfast::runner {

// The kinds of workers to start in this round: at most one worker of a kind, and within the limits per kind and in
// total. A kind needs a worker if something is due for it and none that could claim it runs, or more is due than those
// can hold. `running`: the workers of this machine, also those of others.
std::vector<std::string> kinds_to_spawn(const store::Backlog& backlog, const store::WorkerCounts& running,
                                        const SpawnerOptions& options);
// The limit of workers per kind where none is configured: `most`, or half the processors, because each worker runs
// several browsers at once.
int limit_by_processors(int most, int processors);
// Returns why no worker is started although work is due, for users; "": for no reason that is outside this process.
std::string why_none(const store::Backlog& backlog, const store::Neighbours& neighbours,
                     const store::WorkerCounts& running, const SpawnerOptions& options);

// Returns true if the queue still needs workers. A spawner that stays counts only work that can be done now.
bool is_busy(const store::Backlog& backlog, const SpawnerOptions& options);
// Returns true if , after so many rounds in a row without work, all is done.
bool is_done(int idle_rounds, const SpawnerOptions& options);
// Returns how many workers to keep after so many such rounds: a spawner that stays keeps one of them warm.
std::size_t to_keep(std::size_t workers, int idle_rounds, const SpawnerOptions& options);

using CrashTimes = std::deque<std::chrono::steady_clock::time_point>; // oldest first; a failed start is one of them
// Forgets crashes before the window. Returns true if the rest are so many that starting another worker would not help.
bool keeps_crashing(CrashTimes& crashes, std::chrono::steady_clock::time_point now, const SpawnerOptions& options);

} // namespace holdfast::runner
