#pragma once
// Reading /proc. Private to this module. Values only; a process may have ended by the time its entry is used, so every
// entry carries its start time.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::process {

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

} // namespace holdfast::process
