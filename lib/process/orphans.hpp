#pragma once
// Ending marked processes that have no shim any more. Private to this module; used by sweep(), which launcher.hpp
// declares, and by the launcher when a shim was killed. Owned by one round of cleaning; any thread, one at a time. The
// destructor does nothing.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::process {

// Reading /proc. Private to this module. Values only; a process may have ended by the time its entry is used, so every
// entry carries its start time.
struct ProcessEntry {
  pid_t pid{0};
  pid_t parent{0};
  pid_t session{0};
  char state{'?'};
  std::uint64_t start_ticks{0};
  std::string name; // the kernel's short one

  bool zombie() const { return state == 'Z' || state == 'X'; }
  bool shim() const { return name == "holdfast-shim"; }
};

std::optional<ProcessEntry> read_process(pid_t pid);

std::map<pid_t, ProcessEntry> read_processes();

// Returns true if the process belongs to this user, its environment can be read, and one entry of it satisfies
// `matches`.
bool environment_has(pid_t pid, const std::function<bool(std::string_view)>& matches);

class Orphans {
public:
  using Matcher = std::function<bool(const ProcessEntry&)>;

  // `matches` names the processes that may be killed. `reapable` names zombies, children of this process, that may be
  // reaped although this object did not kill them: a zombie has no environment left to tell it by.
  explicit Orphans(
      Matcher matches, Matcher reapable = [](const ProcessEntry&) { return false; })
      : matches_(std::move(matches)), reapable_(std::move(reapable)) {}

  // Runs one round: KILL for every match that is not supervised by a living shim, then reap, by pid, those that were
  // orphaned to this process. Returns true if none is left.
  bool kill_round();

  // Distinct processes killed so far: pid and start time.
  const std::set<std::pair<pid_t, std::uint64_t>>& killed_processes() const { return killed_; }

private:
  Matcher matches_;
  Matcher reapable_;
  std::map<pid_t, std::uint64_t> pending_; // killed, not yet ended: pid and start time
  std::set<std::pair<pid_t, std::uint64_t>> killed_;
};

// Returns this process and its ancestors: never to be killed, whatever their environment holds.
std::set<pid_t> own_line(const std::map<pid_t, ProcessEntry>& processes);

// Returns true if an ancestor of the process is a living shim: then the process is that shim's business.
bool below_shim(const ProcessEntry& entry, const std::map<pid_t, ProcessEntry>& processes);

} // namespace holdfast::process
