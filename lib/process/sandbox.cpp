#include "lib/process/sandbox.hpp"

#include "lib/base/async.hpp"
#include "lib/base/error.hpp"
#include "lib/base/openat2.hpp"
#include "lib/process/launcher.hpp"
#include "lib/process/shim/protocol.hpp"
#include "lib/process/spawn_launcher.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace holdfast::process {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::chrono::minutes kLongestTry{1};

} // namespace

std::string to_string(SandboxLevel level) {
  if (level == SandboxLevel::full) return "full";
  return level == SandboxLevel::user ? "user" : "none";
}

std::string Sandbox::text() const {
  if (level == SandboxLevel::none) return "-";
  std::string lines;
  const auto add = [&lines](char kind, const std::filesystem::path& path) {
    if (path.native().find('\n') != std::string::npos)
      throw Error(ErrorClass::configuration, "a hook's sandbox cannot have a path with a line feed: " + path.string());
    lines += kind + path.string() + '\n';
  };
  if (user) lines += "U" + std::to_string(user->uid) + ":" + std::to_string(user->gid) + "\n";
  if (level == SandboxLevel::user) {
    return lines + "L\n"; // its lists are in the rules that the shim is given
  }
  if (network) lines += network->owner() < 0 ? "N\n" : "NU\n";
  for (const auto& path : hidden)
    add('H', path);
  for (const auto& path : emptied)
    add('E', path);
  for (const auto& path : readable)
    add('R', path);
  for (const auto& path : writable)
    add('W', path);
  if (!temporary.empty()) add('T', temporary);
  return lines;
}

std::string sandbox_problem(const std::filesystem::path& shim, const Sandbox& sandbox,
                            const std::filesystem::path& directory) {
  Command command;
  command.argv = {"/bin/sh", "-c", "cd \"$0\"", directory.string()};
  command.directory = directory;
  command.sandbox = sandbox;
  const auto exit = run_to_end(shim, command, kLongestTry);
  if (exit.clean()) return {};
  return exit.start_errno == 0 && exit.signal == 0 ? "hooks cannot enter " + directory.string() : exit.describe();
}

namespace {

constexpr std::uint64_t kTruncate = 1U << 14; // these three are not in every <linux/landlock.h>
constexpr std::uint64_t kAll = (1U << 15) - 1;
constexpr std::uint64_t kAbstractSockets = 1U << 0;
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kUse = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
constexpr std::uint64_t kWrite = kAll & ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

// Devices that every program needs. /dev/ptmx may be a link into /dev/pts.
constexpr const char* kUsed[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                                 "/dev/tty",  "/dev/ptmx", "/dev/pts",  "/proc"};

// An empty set. With an errno value if there is none.
base::Fd begin(int& error) {
  constexpr long kWithTruncate = 3, kWithScopes = 6;
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  error = version < 0 ? errno : version < kWithTruncate ? EOPNOTSUPP : 0;
  if (error != 0) return {};
  struct {
    std::uint64_t files, network, scopes;
  } handled{kAll, 0, version >= kWithScopes ? kAbstractSockets : 0};
  const std::size_t size = version >= kWithScopes ? sizeof handled : sizeof handled.files;
  base::Fd rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, size, 0)));
  if (!rules) error = errno;
  return rules;
}

// Returns 0 or an errno value. Missing files, and files closed to us anyway, are skipped.
int allow(const base::Fd& rules, const char* path, std::uint64_t access) {
  const base::Fd found(base::open_no_links_at(AT_FDCWD, path, O_PATH));
  if (!found) return errno == ELOOP ? ELOOP : 0;
  struct stat status {};
  if (::fstat(found.get(), &status) != 0) return errno;
  landlock_path_beneath_attr rule{};
  rule.parent_fd = found.get();
  rule.allowed_access = S_ISDIR(status.st_mode) ? access : access & kOfFiles;
  return ::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 ? 0 : errno;
}

base::Fd make(const Sandbox& sandbox, int& error) {
  auto rules = begin(error);
  for (const char* path : kUsed)
    if (error == 0)
      if (error = allow(rules, path, kUse); error == ELOOP) error = 0;
  for (const auto& path : sandbox.readable)
    if (error == 0) error = allow(rules, path.c_str(), kRead);
  for (const auto& path : sandbox.writable)
    if (error == 0) error = allow(rules, path.c_str(), kWrite);
  if (error == 0 && !sandbox.temporary.empty()) error = allow(rules, sandbox.temporary.c_str(), kWrite);
  if (error != 0) return {};
  return base::Fd(::fcntl(rules.get(), F_DUPFD_CLOEXEC, shim::kFirstFree)); // above those a shim is started with
}

// Equal for equal lists; no path has a zero byte.
std::string key_of(const Sandbox& sandbox) {
  std::string key;
  for (const auto* list : {&sandbox.readable, &sandbox.writable}) {
    for (const auto& path : *list)
      key.append(path.native()) += '\0';
    key += '\0';
  }
  return key + sandbox.temporary.native();
}

} // namespace

int FileRules::of(const Sandbox& sandbox, int& error) {
  error = 0;
  auto lists = key_of(sandbox);
  const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.lists == lists; });
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
  } else {
    auto rules = make(sandbox, error);
    if (error == 0 && !rules) error = errno;
    if (error != 0) return -1;
    kept_.push_front({std::move(lists), std::move(rules)});
    if (kept_.size() > kMost) kept_.pop_back();
  }
  return kept_.front().rules.get();
}

namespace {

static_assert(PrivateNetwork::kMostListeners == shim::kMostListeners);

// Receives the answer of the shim: an errno value with the descriptors beside it.
std::vector<base::Fd> receive(int socket, int& error) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * shim::kMostListeners + 2 * sizeof(int))];
  iovec text{&error, sizeof error};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  error = EPIPE;
  std::vector<base::Fd> result;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof error)) return result;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(part) + at, sizeof fd);
      result.push_back(out_of_the_way(fd));
    }
  }
  return result;
}

} // namespace

std::shared_ptr<PrivateNetwork> PrivateNetwork::make(const std::filesystem::path& shim, std::size_t listeners) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    throw Error(ErrorClass::system, "cannot open a control socket: " + base::errno_text(errno));
  const auto ours = out_of_the_way(pair[0]);
  auto theirs = out_of_the_way(pair[1]);
  asio::io_context io;
  SpawnLauncher launcher;
  launcher.duplicate(-1, STDIN_FILENO);
  launcher.duplicate(theirs.get(), shim::kControlDescriptor);
  launcher.close_from(shim::kControlDescriptor + 1);
  boost::system::error_code failure;
  auto helper = launcher(io.get_executor(), failure, shim.string(),
                         std::vector<std::string>{"network", std::to_string(listeners)});
  if (failure) throw Error(ErrorClass::system, "cannot start " + shim.string() + ": " + failure.message());
  theirs.reset();
  int error = 0;
  auto received = receive(ours.get(), error);
  boost::system::error_code ignored;
  helper.wait(ignored);
  if (error == 0 && received.size() < listeners + 1) error = EMFILE;
  if (error != 0)
    throw Error(ErrorClass::unavailable, "hooks cannot have a network of their own: " + base::errno_text(error));
  auto network = std::make_shared<PrivateNetwork>();
  network->network_ = std::move(received.front());
  received.erase(received.begin());
  if (received.size() > listeners) {
    network->owner_ = std::move(received.front());
    received.erase(received.begin());
  }
  network->listeners_ = std::move(received);
  return network;
}

base::Fd PrivateNetwork::listener(std::size_t number) const {
  base::Fd copy(::fcntl(listeners_.at(number).get(), F_DUPFD_CLOEXEC, shim::kFirstFree));
  if (!copy) throw Error(ErrorClass::system, "cannot copy a socket: " + base::errno_text(errno));
  return copy;
}

namespace {

// Restricts this thread for good. Returns false where the kernel does not support it.
bool scope_signals() {
  constexpr long kWithScopes = 6; // of the interface's versions; not in every <linux/landlock.h>
  constexpr std::uint64_t kSignals = 1U << 1;
  struct {
    std::uint64_t files, network, scopes;
  } rules{0, 0, kSignals};
  if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < kWithScopes) return false;
  const auto set = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0));
  if (set < 0) return false;
  const bool kept = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(SYS_landlock_restrict_self, set, 0) == 0;
  ::close(set);
  return kept;
}

} // namespace

std::shared_ptr<SignalScope> SignalScope::make() {
  const std::shared_ptr<SignalScope> scope(new SignalScope);
  bool kept = false;
  scope->run([&] { kept = scope_signals(); });
  return kept ? scope : nullptr;
}

void SignalScope::run(const std::function<void()>& work) {
  boost::asio::post(thread_, boost::asio::use_future([&] { work(); })).get();
}

} // namespace holdfast::process
