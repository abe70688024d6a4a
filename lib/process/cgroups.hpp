#pragma once
// Finds where on this machine hooks can have cgroups of their own: below the one that this process is in, if that was
// delegated to us - version 2 delegated by systemd (Delegate=yes), by ownership or as the top of a container; version 1
// where its directories may be written to, as root may. The shim makes, uses and removes the leaf of each hook
// (lib/process/shim/cgroup.hpp); without any, nothing here costs anything. A value, held by the launcher; main thread.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::process {

class Cgroups {
public:
  Cgroups() = default; // none

  // Looks; changes nothing. Never throws: what cannot be read is not there.
  static Cgroups find();

  // Makes ready: turns on the controllers of version 2, for which this process and those beside it must move into a
  // group of their own, and ends and removes what a killed worker has left. Never throws.
  void prepare();

  bool any() const { return !places_.empty(); }
  // Describes them for users: "version 2, /sys/fs/cgroup/holdfast: kill, CPU time, memory, processes", "none: ...".
  std::string describe() const;

  // Returns the leaves of one more hook, for its shim; "-" if there are to be none.
  std::string next_leaves(bool memory_limited);

  // Kills all processes in leaves whose shim has ended, and removes them; waits a tenth of a second at most. Returns
  // how many processes there were.
  static int end(const std::string& leaves);

private:
  struct Place {
    std::filesystem::path directory;
    bool unified{false};                  // version 2
    bool ours{false};                     // to rearrange: processes in it may be moved
    std::vector<std::string> controllers; // that are used there
  };

  static void enable_controllers(Place& place);
  void remove_leftovers() const;

  std::vector<Place> places_;
  std::string why_none_{"hook.cgroups is off"};
  std::uint64_t made_{0};
};

} // namespace holdfast::process
