#pragma once
// Starts and ends hook processes. The only access to processes; everything above sees a Child. One thread - the main
// one - starts, signals and waits: PR_SET_PDEATHSIG follows the spawning thread.
//
// Every child runs below its own shim (lib/process/shim): a tiny static program that is the session leader's parent and
// subreaper, applies the limits, ends the tree in three phases and reports the exact resource usage of the whole tree.
// If this process dies, however it dies, the shim sees its control socket close and kills the tree.

#include "lib/base/async.hpp"
#include "lib/process/cgroups.hpp"
#include "lib/process/command.hpp"
#include "lib/process/sandbox.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace holdfast::process {

struct Supervision;

// A started command. Owned by its starter. The destructor of a child that has not ended requests its shim to KILL the
// tree and does not wait (the shim finishes alone); normal code waits first.
class Child {
public:
  explicit Child(std::shared_ptr<Supervision> state) : state_(std::move(state)) {}
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns the process id of the shim (stable for as long as the child lives) and of the hook itself (0 until known).
  pid_t shim_pid() const;
  pid_t pid() const;
  // Returns the start time of the hook's process in clock ticks since boot (/proc/<pid>/stat field 22), 0 until known:
  // with machine and boot id it identifies the process beyond pid reuse.
  std::uint64_t start_ticks() const;
  // Returns the CPU time of the tree at the last check (Command::watch_cpu).
  std::chrono::microseconds cpu_time() const;
  // Completes once the hook and every descendant have ended. May be awaited by several coroutines.
  awaitable<Exit> wait();
  // Sends TERM to the hook's group and to everything the shim has adopted; after `grace`, KILL to the whole tree.
  // Signals only get stronger: a later call may shorten the grace, never lengthen it. Idempotent.
  void terminate(std::chrono::milliseconds grace);
  void kill();

private:
  void begin_termination(bool politely, std::chrono::milliseconds grace);

  std::shared_ptr<Supervision> state_;
};

class Launcher {
public:
  // shim_path: the holdfast-shim program. Throws Error(unavailable) if it is not executable. cgroups: where each
  // command gets some of its own, made ready by the caller.
  Launcher(asio::any_io_executor executor, const std::filesystem::path& shim_path, Cgroups cgroups = {});

  // Starts the command. Failure to execute it is reported by wait() (Exit::start_errno), as a shell would; throws
  // Error(system) if no process can be started at all, Error(cannot_create) if the output files cannot be made.
  std::unique_ptr<Child> start(const Command& command);
  const Cgroups& cgroups() const noexcept { return cgroups_; }

private:
  asio::any_io_executor executor_;
  const std::string shim_path_;
  Cgroups cgroups_;
  FileRules rules_;
};

// Runs one command in a shim to its end, and kills it after `limit`. Blocking. Throws as a Launcher, start() and wait()
// do.
Exit run_to_end(const std::filesystem::path& shim_path, const Command& command, std::chrono::milliseconds limit);

// Makes this process the parent of whatever is orphaned below it (PR_SET_CHILD_SUBREAPER), so that it can end and reap
// what a killed shim leaves behind. Call it once, early in main. Orphans are reaped by their pids, never by
// waitpid(-1), which would steal the exit statuses of children of others. Throws Error(system).
void become_subreaper();

// Keeps other processes of this user from reading this one's memory and environment, or tracing it (PR_SET_DUMPABLE):
// hooks run as the same user. Programs that it starts are not covered: exec resets it. Without effect in a build with
// the address sanitizer, whose search for leaks traces its own process.
void forbid_inspection();

// Raises the limit of open files to the kernel's maximum (RLIMIT_NOFILE): a worker has five for each hook, and a
// login's usual 1,024 are too few for 200 of them. Hooks have a limit of their own.
void allow_open_files();

// The directory of the running executable: shim and guard are installed beside it.
std::filesystem::path executable_directory();

// Returns the path of what comes with the program: below the parent of an installed one's directory, or in deploy/ of
// the source tree of a built one.
std::filesystem::path companion(const std::string& installed, const std::string& in_tree);

// Ends every process of this user whose environment carries `variable=prefix...`: TERM to shims, which end their trees;
// as soon as they have ended, and at the latest after `grace`, KILL to the rest. Never touches this process or its
// ancestors. Blocking, at most grace + 1 s. Returns how many processes were found. For start-up and for the last step
// of leaving; throws Error(bug) if the prefix is empty, which would match everything.
int sweep(const std::string& variable, const std::string& prefix, std::chrono::milliseconds grace);

// Identity of this process beyond pid reuse.
// /etc/machine-id; where there is none (containers), a random id made once and kept in `keep_in`; without such a file,
// an id derived from boot id and host name, stable until one of them changes.
std::string machine_id(const std::filesystem::path& keep_in = {});
// Inode of a namespace of this process. pid: pids mean nothing to a process in another one, even on the same machine;
// mnt: nor do paths.
std::string namespace_id(const std::string& kind);
std::string boot_id();                                    // /proc/sys/kernel/random/boot_id
std::uint64_t process_start_ticks(pid_t pid);             // 0 if there is no such process
bool process_alive(pid_t pid, std::uint64_t start_ticks); // false for a zombie: what is left of it does nothing

} // namespace holdfast::process
