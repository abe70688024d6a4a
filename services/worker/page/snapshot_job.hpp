#pragma once
// Takes one claimed snapshot from its first hook to the end of its attempt. Owned by Worker; main thread only. run() is
// a coroutine that never throws: at its end, its hooks have ended, and the page was submitted - sealed, released - or
// its lease was lost and nothing was written.

#include "lib/archive/captures.hpp"
#include "lib/base/async.hpp"
#include "lib/base/log.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/hook/hook_set.hpp"
#include "services/worker/hook/job_context.hpp"
#include "services/worker/page/admission.hpp"
#include "services/worker/page/hook_results.hpp"
#include "services/worker/session/crawl_sessions.hpp"
#include "services/worker/turn/failure.hpp"

#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::worker {

class SnapshotJob : public std::enable_shared_from_this<SnapshotJob> {
public:
  enum class Ending { sealed, released, cancelled, lost };

  SnapshotJob(JobContext& context, store::Claim claim);
  ~SnapshotJob();
  SnapshotJob(const SnapshotJob&) = delete;
  SnapshotJob& operator=(const SnapshotJob&) = delete;

  awaitable<Ending> run();

  // Ends the hooks in three phases and releases the snapshot, because the worker leaves.
  void interrupt(const std::string& reason);
  // The lease is no longer ours: kill the hooks, write nothing.
  void lose(const std::string& reason);

  const store::Claim& claim() const noexcept { return claim_; }
  const store::Lease& lease() const noexcept { return claim_.lease; }
  // Returns true once the hooks have ended and the page was submitted: it takes up no slot.
  bool handed_in() const noexcept { return handed_in_; }
  // Returns true if this snapshot was its crawl's last.
  bool sealed_crawl() const noexcept { return sealed_crawl_; }
  // Adds the hooks that run at this moment.
  void list_hooks(std::vector<store::ActiveHook>& hooks) const;

private:
  void check() const; // throws Failure if the job is to end
  awaitable<void> archive_page();
  awaitable<void> join_session();
  awaitable<void> run_hooks();
  void limit_time();
  awaitable<void> run_hook(const hooks::Hook& hook);
  awaitable<void> end_background();
  void heed_machine(const hooks::HookOutcome& outcome);
  awaitable<void> collect(HookSet::Running hook);
  awaitable<void> publish();
  void fill_page(const archive::Published& published, const Verdict& verdict, const std::vector<std::string>& lost);
  awaitable<void> deduplicate();
  void count_traffic();
  awaitable<void> reap();
  awaitable<Ending> hand_in(const std::optional<Failure>& failure);
  void log_answer(const store::PageAnswer& answer, const std::optional<Failure>& failure) const;
  Ending take_answer(const store::PageAnswer& answer);
  awaitable<void> keep_text();
  awaitable<void> remove_published();

  JobContext& context_;
  store::Claim claim_;
  hooks::Options options_;
  hooks::HookContext hook_context_;
  HookResults results_;
  archive::SnapshotView& view_;
  AttemptFiles& files_;
  Admission admission_;
  asio::steady_timer limit_; // worker.snapshot_timeout
  bool crawl_hooks_{false};  // the crawl has hooks of its own, which may write here too
  HookSet hooks_;            // their numbers are those in results_
  store::Page page_;
  CrawlSessions::Share session_;
  std::int64_t persona_version_{0};         // of its persona, as its hooks were given it
  std::optional<warc::Redactor> redactor_;  // of its persona, unless archive.redact is off
  std::unique_ptr<Route> route_;            // null: hooks have the machine's network
  std::string interrupted_, lost_, broken_; // reasons; empty: not. broken_: its crawl session died
  std::string published_;                   // directory published but not yet sealed
  std::string text_;                        // of the page, for search
  archive::Captures captures_;              // the records of its WARC files
  std::string summary_;                     // of it, for the log
  bool in_doubt_{false};                    // the seal may have been granted without our knowing
  bool handed_in_{false}, sealed_crawl_{false};
};

} // namespace holdfast::worker
