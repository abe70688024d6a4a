#pragma once
// Takes one claimed snapshot from its first hook to the end of its attempt. Owned by Jobs; main thread only. run() is
// a coroutine that never throws: however it ends, the hooks it started are gone, and the page was submitted - sealed,
// released - or its lease was lost and nothing was written.

#include "lib/base/async.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/attempt/page_work.hpp"
#include "services/worker/attempt/steps.hpp"
#include "services/worker/hook/hook_set.hpp"
#include "services/worker/page/admission.hpp"
#include "services/worker/page/hook_results.hpp"
#include "services/worker/page/submission.hpp"
#include "services/worker/session/crawl_sessions.hpp"
#include "services/worker/session/session_persona.hpp"
#include "services/worker/turn/failure.hpp"

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace holdfast::worker {

class SnapshotJob : public std::enable_shared_from_this<SnapshotJob> {
public:
  using Ending = Submission::Ending;

  SnapshotJob(PageServices& context, store::Claim claim);
  ~SnapshotJob();
  SnapshotJob(const SnapshotJob&) = delete;
  SnapshotJob& operator=(const SnapshotJob&) = delete;

  awaitable<Ending> run();

  // The worker is leaving: end the hooks and release the snapshot.
  void interrupt(const std::string& reason);
  // The lease is no longer ours: kill the hooks, write nothing.
  void lose(const std::string& reason);

  const store::Claim& claim() const noexcept { return claim_; }
  const store::Lease& lease() const noexcept { return claim_.lease; }
  // The hooks are gone, and the page was submitted: it takes up no slot.
  bool submitted() const noexcept { return submission_.submitted(); }
  // Returns true if this snapshot was its crawl's last.
  bool sealed_crawl() const noexcept { return submission_.sealed_crawl(); }
  // Adds the hooks that run at this moment.
  void list_hooks(std::vector<store::ActiveHook>& hooks) const;

private:
  // Why the job is to end, each empty until then.
  struct Reasons {
    std::string interrupted, lost;
    std::string broken; // its crawl session died
    void check() const; // throws Failure if there is one
  };

  awaitable<void> archive_page();
  awaitable<void> capture_by_hooks();
  awaitable<void> join_session();
  awaitable<void> run_hooks();
  void limit_time();
  awaitable<void> run_hook(const hooks::Hook& hook);
  awaitable<void> end_background();
  void heed_machine(const hooks::HookOutcome& outcome);
  awaitable<void> collect(HookSet::Running hook);
  awaitable<void> take_steps(std::span<const PageStep> steps); // before the seal
  awaitable<void> take_steps_after_seal();
  awaitable<void> reap();
  awaitable<void> remove_published();

  PageServices& context_;
  store::Claim claim_;
  hooks::Options options_;
  hooks::HookContext hook_context_;
  Reasons reasons_;
  HookResults results_;
  Admission admission_;
  asio::steady_timer limit_; // worker.snapshot_timeout
  HookSet hooks_;            // their numbers are those in results_
  CrawlSessions::Share session_;
  PagePersona persona_;
  PageWork work_;
  Submission submission_;
};

} // namespace holdfast::worker
