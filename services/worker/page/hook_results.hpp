#pragma once
// Results of the hooks of one attempt so far: on the page and in rows, links and titles, and the verdict. Owned by
// SnapshotJob; main thread only, with the work on files on the files thread.

#include "lib/archive/attempt.hpp"
#include "lib/base/async.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/attempt/attempt_files.hpp"
#include "services/worker/attempt/verdict.hpp"
#include "services/worker/hook/hook_services.hpp"
#include "services/worker/hook/hook_set.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::worker {

class HookResults {
public:
  // `check`: throws when the job is to end.
  HookResults(HookServices& context, const store::Claim& claim, std::function<void()> check);

  // Returns the page as users will see it.
  archive::SnapshotView& view() noexcept { return view_; }
  AttemptFiles& files() noexcept { return files_; }
  const std::vector<store::Seed>& discovered() const noexcept { return discovered_; }
  const store::HookResult& row(std::size_t number) const { return rows_[number]; }
  archive::ResultView& result(std::size_t number) { return view_.results[number]; }

  // The crawl has hooks of its own, which may write here too.
  void set_crawl_hooks(bool any) { crawl_hooks_ = any; }
  // A hook begins; returns its number.
  std::size_t add(const hooks::Hook& hook);
  void skip(const hooks::Hook& hook, const std::string& reason);
  // Takes over a result without running its hook.
  void add_earlier(archive::ResultView result);
  void set_started(std::size_t number, std::chrono::steady_clock::time_point at) { rows_[number].started = at; }
  // Records the end of a hook in its row.
  void take_end(const HookSet::Running& hook, const hooks::HookOutcome& outcome);
  // Records the files and records of a hook. `running`: it and those that run beside it.
  awaitable<void> take(const HookSet::Running& hook, const hooks::HookOutcome& outcome, AttemptFiles::Names running);

  // Returns the bytes that the page may still have, for a hook of that plugin: `most` or fewer.
  std::uint64_t room_for(const std::string& plugin, std::uint64_t most) const;
  // The time of the page is over (worker.snapshot_timeout).
  void set_overdue() { overdue_ = true; }
  std::string reason_to_skip() const { return worker::reason_to_skip(ends_, unreachable_, overdue_); }
  // Returns the results of hooks that have ended, in that order, without their files.
  const std::vector<std::shared_ptr<const store::HookResult>>& ended() const noexcept { return ended_; }
  void forget_ended() { ended_.clear(); } // the database has their rows
  // No foreground hook has run.
  bool only_background() const;
  Verdict judge() const;
  // The rows, once. A hook without a status has ended with the job, and has failed; `why`: for its row.
  std::vector<store::HookResult> take_rows(const std::string& why);

private:
  awaitable<void> take_files(const hooks::Hook& hook, archive::ResultView& result, const hooks::HookOutcome& outcome,
                             AttemptFiles::Names running);
  void take_discovered(const hooks::HookOutcome& outcome);
  void add_ended(std::size_t number);

  HookServices& context_;
  const store::Claim& claim_;
  const std::function<void()> check_;
  archive::SnapshotView view_;
  std::vector<store::HookResult> rows_; // beside view_.results, whose text and files they get in the end
  std::vector<std::shared_ptr<const store::HookResult>> ended_;
  std::vector<HookEnd> ends_; // beside them, for the verdict
  AttemptFiles files_;
  std::vector<store::Seed> discovered_;
  std::string unreachable_; // why no hook can get the page; empty: none has said so
  bool overdue_{false}, crawl_hooks_{false};
  std::uint64_t left_bytes_{0}; // by hooks so far, for claim_.max_snapshot_bytes
};

} // namespace holdfast::worker
