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

#include "lib/base/file.hpp"

#include <boost/asio/thread_pool.hpp>

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <list>
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

  // Returns the text for the shim, without the rules of level user (FileRules). Throws Error(configuration) for a
  // path with a line feed.
  std::string text() const;
};

// Tries a sandbox on a command that enters `directory`, as hooks do on the way to theirs: "" if it works here, else why
// not. Blocking, some milliseconds.
std::string sandbox_problem(const std::filesystem::path& shim, const Sandbox& sandbox,
                            const std::filesystem::path& directory = "/");

// Restricts what hooks can open at level user of the sandbox: rules of Landlock (Linux), which every process may give
// itself, and which are inherited by all that it starts. Paths without a rule are closed; there is no way to open a
// directory and close another one below it. A process under such rules can trace, or read memory, environment and open
// files of, no process but its own. Modes, times and sockets are not covered.
//
// The kernel's sets of rules are made here and taken on by the hook's process (shim/view.hpp). The hooks of a page
// share one, because each path in it is opened when it is made, and /etc alone may have 150. They belong to the files
// found at these paths then. Owned by a launcher; used from its thread; the destructor closes them.
//
// Requires the third version of Landlock (Linux 6.2): before it, files could be cut that may not be written.
struct Sandbox;

class FileRules {
public:
  // A descriptor of the rules for these lists, open until the next call; -1: `error` has an errno value. ELOOP: a link
  // is on the way to one of them, which another hook may have left there.
  int of(const Sandbox& sandbox, int& error);

private:
  struct Kept {
    std::string lists;
    base::Fd rules;
  };
  static constexpr std::size_t kMost = 32; // pages and crawls at a time; the one used last is in front

  std::list<Kept> kept_;
};

// A separate network for hooks: a loopback interface, and sockets that listen on it, whose connections this process
// accepts. There is no other way out of it. Made by the shim (shim/network.hpp); lives as long as a process is in it or
// the object exists. Any thread.
class PrivateNetwork {
public:
  static constexpr std::size_t kMostListeners = 250;

  // Blocking, some milliseconds. Throws Error(unavailable) if the system allows none.
  static std::shared_ptr<PrivateNetwork> make(const std::filesystem::path& shim, std::size_t listeners);

  int descriptor() const noexcept { return network_.get(); }
  // The namespace of users that owns it; -1 if that is our own.
  int owner() const noexcept { return owner_.get(); }
  std::size_t listeners() const noexcept { return listeners_.size(); }
  base::Fd listener(std::size_t number) const; // a copy

private:
  base::Fd network_, owner_;
  std::vector<base::Fd> listeners_;
};

// Limits whom hooks can signal: processes that were started in this scope, and no other process of their user. A rule
// of Landlock (Linux 6.12). It holds for the thread that takes it on and for all that the thread starts, so the object
// owns such a thread, which starts the shims of its hooks. Processes that share the object can signal each other:
// plugins check by a signal whether the crawl's browser lives. Used from the main thread; shared by the commands that
// are started in it.
class SignalScope {
public:
  // Null where the kernel has no such rule.
  static std::shared_ptr<SignalScope> make();

  ~SignalScope() { thread_.join(); }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  // Calls `work` on the thread, and waits for it.
  void run(const std::function<void()>& work);

private:
  SignalScope() = default;

  boost::asio::thread_pool thread_{1};
};

} // namespace holdfast::process
