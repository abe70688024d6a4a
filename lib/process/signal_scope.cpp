#include "lib/process/signal_scope.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace holdfast::process {

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
