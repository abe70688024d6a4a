#pragma once
// Protocol between the launcher and the shim over the control socket (SOCK_SEQPACKET, descriptor 3 in the shim).
// Plain values in the machine's own layout: both programs come from one build. Used by the shim, so no library types.
//
// Command line of the shim: holdfast-shim LIMITS CGROUPS VIEW DIRECTORY PROGRAM [ARGUMENT...]; its environment is the
// hook's. LIMITS is seven decimal numbers or "-" joined by commas: address space, file size, open files and core size,
// which the kernel enforces on each process; memory and processes of the whole tree, which the shim watches; and the
// milliseconds between two reports of the CPU time used. CGROUPS is what cgroup.hpp takes, VIEW what view.hpp does.
// "holdfast-shim network COUNT" makes a network for hooks (network.hpp); "holdfast-shim end UID" ends every process of
// a user (user.hpp).

#include <stdint.h>

namespace holdfast::process::shim {

inline constexpr int kControlDescriptor = 3;
// Descriptors of a hook with a network of its own: that network, and the namespace of users that owns it unless the
// shim is root.
inline constexpr int kNetworkDescriptor = 4, kOwnerDescriptor = 5, kFirstFree = 6;
// Descriptor of a hook in a sandbox of level user, which has no such network: the rules that it takes on.
inline constexpr int kRulesDescriptor = 4;
inline constexpr unsigned kMostListeners = 250; // of one network; the kernel passes 253 descriptors at once
inline constexpr int kLimitCount = 2;           // of the kernel

enum class CommandKind : uint32_t {
  terminate = 'T', // TERM to everything now, KILL after grace_ms; a later order may only shorten what is left
  kill = 'K',      // KILL everything now
};

struct Command {
  CommandKind kind;
  uint32_t grace_ms;
};

// Reports of the shim to the launcher: `started` once the hook's program runs, then one `ended`; only `ended` if it
// could not be started. Between them, on request, `used` whenever the tree's CPU time (`tree`) has grown.
enum class ReportKind : uint32_t { started = 'S', used = 'U', ended = 'E' };

// The step at which starting failed; equal to process::StartStep.
enum class Step : uint32_t { none, fork, sandbox, directory, limits, execute };

// Exceeded limit of the tree; equal to process::TreeLimit.
enum class Excess : uint32_t { none, memory, processes };

struct Consumption {
  int64_t user_us;
  int64_t system_us;
  uint64_t peak_kib; // largest resident set of one process or, if the cgroup reports more, memory of all at once
  uint64_t read_blocks;
  uint64_t written_blocks;
};

struct Report {
  ReportKind kind;
  int32_t pid;
  uint64_t start_ticks;
  // The rest counts only in `ended`.
  int32_t wait_status; // of the hook's first process, as wait4 gives it
  int32_t start_errno;
  Step failed_step;
  uint32_t terminated; // 1: TERM or KILL was sent to the hook before it ended
  uint32_t killed;     // 1: KILL found something to kill after that
  uint32_t leftovers;  // descendants that had to be ended after the hook's first process had ended
  uint32_t unkillable; // still there when the shim gave up
  Excess excess;       // why the shim ended it, if it did
  uint64_t wall_us;    // life of the hook's first process
  Consumption leader;
  Consumption tree;
};

} // namespace holdfast::process::shim
