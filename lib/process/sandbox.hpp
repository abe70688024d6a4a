#pragma once
// Access of a hook beside the permissions of files in the kernel. A plain value, part of a Command; the shim
// carries it out (shim/view.hpp).
//
// Level full: the hook has a mount namespace and a namespace of users of its own.
//   - It sees the file system read-only, without setuid programs. What is `hidden` seems empty: the archive, the work
//     and data directories, secrets, the home directory, directories of sockets. Below it, single directories are
//     shown.
//   - /tmp, /var/tmp and /dev/shm are its own.
//   - It cannot trace, or read memory, environment and open files of, any process but its own.
//   - Where the worker is root, the hook is another user, so it cannot signal the worker either.
//   - With `network` it has that one instead of the machine's, abstract sockets included.
// Level user: rules of Landlock, which need no privilege and no namespace, as in a container of Docker.
//   - What no list names cannot be opened, listed, made or removed. /tmp is closed; the hook has `temporary`.
//   - No tracing, as above, and no abstract sockets of others.
//   - Where the worker is root, the hook is another user.
// Level none: a hook can do all that the worker's user can.
//
// At both levels, system calls that no hook needs are refused (shim/calls.hpp), and `signals` keeps it from signalling
// other processes of its user, the worker and its guard above all.
// Not covered at level user: the network; modes and times of files, and sockets in the file system, as far as its user
// may. Not covered at both levels: the list of processes and their arguments, which plugins need to find each other's
// browser; what all users may read outside the hidden directories; and before Linux 6.12, signals.

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::process {

class PrivateNetwork;
class SignalScope;

enum class SandboxLevel { none, user, full };

std::string to_string(SandboxLevel level);

struct Sandbox {
  struct User {
    uid_t uid;
    gid_t gid;
  };

  SandboxLevel level{SandboxLevel::none};
  std::optional<User> user; // whom the hook runs as (hook_users.hpp); none: as this process
  // All absolute and without symbolic links; what does not exist is passed over.
  std::vector<std::filesystem::path> hidden;  // directories and files that seem empty
  std::vector<std::filesystem::path> emptied; // the same, but writable and discarded at the end: a home directory
  // Shown where they are, also below something hidden. At level user: all that can be read.
  std::vector<std::filesystem::path> readable;
  std::vector<std::filesystem::path> writable;
  std::filesystem::path temporary;               // at level full shown as /tmp and /var/tmp
  std::shared_ptr<const PrivateNetwork> network; // none: the machine's
  std::shared_ptr<SignalScope> signals;          // none: it can signal all processes of its user

  // Returns the text for the shim, without the rules of level user (file_rules.hpp). Throws Error(configuration) for a
  // path with a line feed.
  std::string text() const;
};

// Tries a sandbox on a command that enters `directory`, as hooks do on the way to theirs: "" if it works here, else why
// not. Blocking, some milliseconds.
std::string sandbox_problem(const std::filesystem::path& shim, const Sandbox& sandbox,
                            const std::filesystem::path& directory = "/");

} // namespace holdfast::process
