#include "lib/process/file_rules.hpp"

#include "lib/base/openat2.hpp"
#include "lib/process/sandbox.hpp"
#include "lib/process/shim/protocol.hpp"

#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace holdfast::process {

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

} // namespace holdfast::process
