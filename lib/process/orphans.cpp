#include "lib/process/orphans.hpp"

#include "lib/base/metrics.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

namespace holdfast::process {

std::set<pid_t> own_line(const std::map<pid_t, ProcessEntry>& processes) {
  std::set<pid_t> line;
  for (pid_t pid = ::getpid(); pid > 0 && line.insert(pid).second;) {
    const auto entry = processes.find(pid);
    pid = entry == processes.end() ? 0 : entry->second.parent;
  }
  return line;
}

bool below_shim(const ProcessEntry& entry, const std::map<pid_t, ProcessEntry>& processes) {
  std::set<pid_t> visited; // the entries were not read at one instant: a recycled pid could close a circle
  for (pid_t pid = entry.parent; pid > 0 && visited.insert(pid).second;) {
    const auto parent = processes.find(pid);
    if (parent == processes.end()) return false;
    if (parent->second.shim() && !parent->second.zombie()) return true;
    pid = parent->second.parent;
  }
  return false;
}

bool Orphans::kill_round() {
  const auto processes = read_processes();
  const auto spared = own_line(processes);
  bool found = false;
  for (const auto& [pid, entry] : processes) {
    if (entry.zombie() && entry.parent == ::getpid() && reapable_(entry)) ::waitpid(pid, nullptr, WNOHANG);
    if (entry.zombie() || spared.contains(pid) || below_shim(entry, processes) || !matches_(entry)) continue;
    found = true;
    pending_.insert_or_assign(pid, entry.start_ticks);
    if (killed_.emplace(pid, entry.start_ticks).second) base::count("holdfast_worker_orphans_killed_total");
    ::kill(pid, SIGKILL);
  }
  // A zombie's environment is empty, so these are remembered rather than found again. One that is not our child is its
  // parent's to reap, unless that parent is dying too: then it will be ours.
  for (auto at = pending_.begin(); at != pending_.end();) {
    const bool reaped = ::waitpid(at->first, nullptr, WNOHANG) == at->first;
    const auto entry = read_process(at->first);
    const bool gone = reaped || !entry || entry->start_ticks != at->second ||
                      (entry->zombie() && entry->parent != ::getpid() && !pending_.contains(entry->parent));
    at = gone ? pending_.erase(at) : std::next(at);
  }
  return !found && pending_.empty();
}

} // namespace holdfast::process
