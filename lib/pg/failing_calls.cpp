#include "lib/pg/failing_calls.hpp"

#include "lib/base/text/time.hpp"

#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace holdfast::pg {

namespace {

using base::ErrorClass;
using Clock = std::chrono::steady_clock;

// A call that has not been made for so long, beyond three times its interval, is no longer made.
constexpr std::chrono::seconds kPresent{15};

constexpr std::string_view kSchema = "holdfast.";

struct Failing {
  Clock::time_point since, last;
  Clock::duration interval{};
  int failures{0};
  bool told{false};
  std::string text, hint;
};

struct Calls {
  std::mutex mutex;
  std::set<std::string, std::less<>> worked;
  std::map<std::string, Failing, std::less<>> failing;
};
Calls& calls() {
  static Calls all;
  return all;
}

// Returns the function that a statement calls, or the beginning of another statement.
std::string_view name_of(std::string_view statement) {
  constexpr std::size_t kShown = 40;
  const auto begin = statement.find(kSchema);
  if (begin == std::string_view::npos) return statement.substr(0, kShown);
  const auto name = statement.substr(begin + kSchema.size());
  return name.substr(0, name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"));
}

// Returns the number of failures in a row after which a call counts as failing: a lock is often free at the next try,
// and a session that was lost is followed by another.
int least_failures(std::string_view sqlstate, std::string_view name) {
  if (sqlstate == kLockTimeout || sqlstate.starts_with("40")) return 3;
  return ends_session(sqlstate) || name == kConnect ? 2 : 1;
}

} // namespace

void call_failed(std::string_view statement, const DatabaseError& error, const std::function<std::string()>& blockers) {
  if (error.error_class() != ErrorClass::temporary && error.error_class() != ErrorClass::unavailable) return;
  const std::string name(name_of(statement));
  if (statement == kPing || name == "process_leave") return; // made once: its caller reports it
  {
    const std::lock_guard lock(calls().mutex);
    const auto now = Clock::now();
    auto& call = calls().failing[name];
    call.interval = call.failures++ == 0 ? Clock::duration{} : now - call.last;
    if (call.failures == 1) call.since = now;
    call.last = now;
    call.text = error.what();
    call.hint = error.hint();
    if (call.told || call.failures < least_failures(error.sqlstate(), name)) return;
    call.told = true;
  }
  const auto said = blockers();
  spdlog::warn("the database call {} fails: {}{}{}", name, error.what(),
               error.hint().empty() ? "" : "; " + error.hint(), said.empty() ? "" : "; " + said);
}

void call_worked(std::string_view statement) {
  const auto name = name_of(statement);
  std::optional<Failing> over;
  {
    const std::lock_guard lock(calls().mutex);
    if (const auto found = calls().failing.find(name); found != calls().failing.end()) {
      over = std::move(found->second);
      calls().failing.erase(found);
    }
    if (statement.find(kSchema) != statement.npos && !calls().worked.contains(name)) calls().worked.emplace(name);
  }
  if (over && over->told)
    spdlog::warn(
        "the database call {} works again, after {}", name,
        base::format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - over->since)));
}

bool has_worked(std::string_view statement) {
  const std::lock_guard lock(calls().mutex);
  return calls().worked.contains(name_of(statement));
}

std::vector<FailingCall> failing_calls() {
  const std::lock_guard lock(calls().mutex);
  const auto now = Clock::now();
  std::vector<FailingCall> all;
  std::erase_if(calls().failing, [&](const auto& entry) {
    const auto& [name, call] = entry;
    if (!call.told) return false;
    if (now - call.last < kPresent + 3 * call.interval) {
      all.push_back({name, std::chrono::duration_cast<std::chrono::seconds>(now - call.since), call.text, call.hint});
      return false;
    }
    spdlog::warn("the database call {} is no longer made", name);
    return true;
  });
  return all;
}

} // namespace holdfast::pg
