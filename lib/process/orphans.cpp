#include "lib/process/orphans.hpp"

#include "lib/base/error.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/pidfd.hpp"
#include "lib/process/launcher.hpp"
#include "lib/process/shim/process_tree.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>

namespace holdfast::process {

namespace {

using Clock = std::chrono::steady_clock;

// Waits until every process named has ended, or until the deadline.
void wait_until_gone(const std::vector<ProcessEntry>& processes, Clock::time_point deadline) {
  for (const auto& process : processes) {
    const base::Fd descriptor = base::open_pidfd(process.pid);
    if (process_alive(process.pid, process.start_ticks)) // the same one
      base::wait_for_exit(descriptor, std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()));
  }
}

} // namespace

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

int sweep(const std::string& variable, const std::string& prefix, std::chrono::milliseconds grace) {
  if (variable.empty() || prefix.empty())
    throw base::Error(base::ErrorClass::bug, "sweep: the name and the prefix of the marker variable must not be empty");
  const std::string marker = variable + "=" + prefix;
  const auto marked = [&](const ProcessEntry& entry) {
    return environment_has(entry.pid,
                           [&](std::string_view variable_text) { return variable_text.starts_with(marker); });
  };

  const auto deadline = Clock::now() + grace;
  const auto processes = read_processes();
  const auto spared = own_line(processes);
  std::set<std::pair<pid_t, std::uint64_t>> found;
  std::vector<ProcessEntry> shims;
  for (const auto& [pid, entry] : processes) {
    if (entry.zombie() || spared.contains(pid) || !marked(entry)) continue;
    found.emplace(pid, entry.start_ticks);
    if (entry.shim()) shims.push_back(entry);
  }
  for (const auto& shim : shims) { // after the look round, which would miss what is ended during it
    ::kill(shim.pid, SIGTERM);
    ::kill(shim.pid, SIGCONT); // a hook may have stopped its own shim
  }
  wait_until_gone(shims, deadline);
  // A shim that did not obey in time is killed as well: what it leaves has no owner then and is found by the same
  // marker.
  for (const auto& shim : shims)
    if (process_alive(shim.pid, shim.start_ticks)) ::kill(shim.pid, SIGKILL);

  Orphans orphans([&](const ProcessEntry& entry) { return !entry.shim() && marked(entry); });
  const auto give_up = Clock::now() + std::chrono::milliseconds(900);
  while (!orphans.kill_round() && Clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const auto& killed : orphans.killed_processes())
    found.insert(killed);
  return static_cast<int>(found.size());
}

namespace {

// nullopt if it cannot be read. /proc files have no size, so they are read to the end.
std::optional<std::string> read_proc_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(fd);
  if (got < 0) return std::nullopt;
  return text;
}

} // namespace

std::optional<ProcessEntry> read_process(pid_t pid) {
  tree::Stat stat;
  if (!tree::read_stat(pid, stat)) return std::nullopt;
  return ProcessEntry{pid, stat.parent, stat.session, stat.state, stat.start_ticks, stat.name};
}

std::map<pid_t, ProcessEntry> read_processes() {
  std::map<pid_t, ProcessEntry> processes;
  tree::for_each_number("/proc", [&](pid_t pid) {
    if (auto entry = read_process(pid)) processes.emplace(pid, std::move(*entry));
  });
  return processes;
}

bool environment_has(pid_t pid, const std::function<bool(std::string_view)>& matches) {
  const std::string directory = "/proc/" + std::to_string(pid);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  const auto environment = read_proc_file(directory + "/environ");
  if (!environment) return false;
  for (std::size_t at = 0; at < environment->size();) {
    const std::size_t end = std::min(environment->find('\0', at), environment->size());
    if (matches(std::string_view(*environment).substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

} // namespace holdfast::process
