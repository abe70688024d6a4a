#pragma once
// Starting and ending hook processes (design decisions 14 and 15). The only door to processes; everything above sees a
// Child. One thread - the main one - starts, signals and waits: PR_SET_PDEATHSIG follows the spawning thread.
//
// Every child runs below its own shim (lib/process/shim): a tiny static program that is the session leader's parent and
// subreaper, applies the limits, walks the ladder and reports the exact resource usage of the whole tree. If this process
// dies, however it dies, the shim sees its control socket close and kills the tree.

#include "lib/base/async.hpp"
#include "lib/process/command.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <sys/types.h>

namespace holdfast::process {

// One started command. Owned by whoever started it. The destructor of a child that has not ended asks its shim to KILL
// the tree and does not wait (the shim finishes alone); normal code waits first.
class Child {
public:
  virtual ~Child() = default;
  // Process id of the shim (stable for as long as the child lives) and of the hook itself (0 until known).
  virtual pid_t shim_pid() const = 0;
  virtual pid_t pid() const = 0;
  // Start time of the hook's process in clock ticks since boot (/proc/<pid>/stat field 22), 0 until known: with machine
  // and boot id it identifies the process beyond pid reuse.
  virtual std::uint64_t start_ticks() const = 0;
  virtual bool running() const = 0;
  // Completes once the hook and every descendant is gone. May be awaited by several coroutines.
  virtual awaitable<Exit> wait() = 0;
  // The ladder: TERM to the hook's group and to everything the shim has adopted; after `grace`, KILL to the whole tree.
  // Signals only get stronger: a later call may shorten the grace, never lengthen it. Idempotent.
  virtual void terminate(std::chrono::milliseconds grace) = 0;
  // KILL now.
  virtual void kill() = 0;
};

// The seam: the real one starts shims; a test may count or delay.
class Launcher {
public:
  virtual ~Launcher() = default;
  // Starts the command. Failure to execute it is reported by wait() (Exit::start_errno), as a shell would; throws
  // Error(system) if no process can be started at all, Error(cannot_create) if the output files cannot be made.
  virtual std::unique_ptr<Child> start(const Command& command) = 0;
};

// shim_path: the holdfast-shim program. Throws Error(unavailable) if it is not executable.
std::unique_ptr<Launcher> make_launcher(asio::any_io_executor executor, const std::filesystem::path& shim_path);

// The directory of the running executable: shim and guard are installed beside it.
std::filesystem::path executable_directory();

// Awaits pidfd readability etc. is private. Kills every process of this user whose environment carries
// `variable=prefix...` (TERM to shims, which take their trees along, KILL after `grace` for whatever is left).
// Blocking, at most grace + 1 s. Returns how many processes were found. For start-up and for the last step of leaving.
int sweep(const std::string& variable, const std::string& prefix, std::chrono::milliseconds grace);

// Identity of this process beyond pid reuse.
std::string machine_id();  // /etc/machine-id, or a random id kept in the given place when there is none
std::string boot_id();     // /proc/sys/kernel/random/boot_id
std::uint64_t process_start_ticks(pid_t pid); // 0 if there is no such process
bool process_alive(pid_t pid, std::uint64_t start_ticks);

} // namespace holdfast::process
