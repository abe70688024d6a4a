#pragma once
// Command line, environment and limits of a start. Plain aggregate.

#include "lib/base/log.hpp"
#include "lib/process/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::process {

// Limits of one hook and everything it starts. Unset: not limited. The first two are set by the shim with setrlimit
// before exec, and each process of the tree inherits them; there are no core files. The last two are of the tree as a
// whole: the shim checks it several times a second and kills all of it when it is over. Between two checks,
// RLIMIT_NPROC keeps it within a multiple of tree_processes (shim/limits.hpp); the kernel has no such limit for root.
struct Limits {
  std::optional<std::uint64_t> file_bytes;        // RLIMIT_FSIZE: largest file
  std::optional<std::uint64_t> open_files;        // RLIMIT_NOFILE
  std::optional<std::uint64_t> tree_memory_bytes; // resident and swapped; what processes share counts once
  std::optional<std::uint64_t> tree_processes;
};

struct Command {
  std::vector<std::string> argv;        // argv[0] is the path to execute; no PATH search, no shell
  std::vector<std::string> environment; // the whole environment, "NAME=value" each
  std::filesystem::path directory;      // working directory; must exist; empty: this process' own
  std::filesystem::path stdout_path;    // created, appended to; a regular file, because descendants keep pipes open
  std::filesystem::path stderr_path;    // either may be empty: /dev/null
  int stdout_file{-1}, stderr_file{-1}; // open for appending, instead of a path; the caller closes them after start()
  int stdin_file{-1};                   // open for reading; the same; -1: /dev/null
  Limits limits;
  Sandbox sandbox;                        // what it may reach; by default everything that this process may
  std::chrono::milliseconds watch_cpu{0}; // how often Child::cpu_time() is brought up to date; 0: never
  // Name and value of the marker variable ("HOLDFAST_COOKIE=<worker>.<hex>") added to the environment: it finds
  // descendants that left the session, and leftovers of an earlier incarnation.
  std::string cookie;
  base::LogSubject subject; // of what we log about it
};

void set_variable(std::vector<std::string>& environment, const std::string& name, const std::string& value);

// CPU and memory of a hook. From wait4 in the shim: exact for everything that was reaped below it. Where hooks have
// cgroups, of everything.
struct Usage {
  std::chrono::microseconds user_time{0};
  std::chrono::microseconds system_time{0};
  std::uint64_t peak_memory_bytes{0}; // largest resident set of any single process; with a cgroup, if more: of the tree
  std::uint64_t read_blocks{0};       // 512-byte blocks, ru_inblock
  std::uint64_t written_blocks{0};
};

// The step at which starting a command failed.
enum class StartStep { none, fork, sandbox, directory, limits, execute };

enum class TreeLimit { none, memory, processes };

// Cause of a hook's end: itself, a limit that it exceeded, a request of ours, or the machine, which has no memory or
// processes left (the kernel kills a shim then), or whose operator has killed the shim.
enum class EndedBy { itself, limit, request, machine };

struct Exit {
  int code{0};                            // exit status if it exited by itself, else -1
  int signal{0};                          // signal that ended it, else 0
  int start_errno{0};                     // != 0: it could not be executed at all (ENOENT, EACCES, ...)
  StartStep failed_step{StartStep::none}; // ... and what could not be done
  bool terminated{false};                 // TERM or KILL was sent by us
  bool killed{false};                     // ... and KILL was needed
  TreeLimit exceeded{TreeLimit::none};    // ... because its tree was over this limit
  int leftovers{0};                       // descendants that had to be killed after the leader had ended
  int unkillable{0};                      // descendants still there 10 s after KILL: stuck in the kernel
  bool shim_lost{false}; // its shim was killed: the tree was ended by cookie; code and usage are not known
  std::chrono::milliseconds wall_time{0}; // life of the hook's first process
  Usage usage;

  EndedBy ended_by() const;
  bool clean() const { return start_errno == 0 && signal == 0 && code == 0; }
  // "exit 3", "killed by SIGSEGV", "cannot execute: No such file or directory",
  // "cannot enter its directory: No such file or directory", "lost: its shim was killed by SIGKILL"
  std::string describe() const;
};

} // namespace holdfast::process
