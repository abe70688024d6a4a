#pragma once
// Takes one claimed snapshot from its first hook to its seal. Owned by Node; main thread only. run()
// is a coroutine that never throws: however it ends, the hooks it started are gone, and the snapshot is sealed, put
// back, or - if its lease was lost - left to its new owner with nothing written.

#include "lib/archive/attempt.hpp"
#include "lib/base/async.hpp"
#include "lib/base/log.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/base/url.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/crawl_session.hpp"
#include "services/worker/job_context.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace holdfast::worker {

class SnapshotJob {
public:
  enum class Ending { sealed, released, lost };

  SnapshotJob(JobContext& context, store::Claim claim);
  ~SnapshotJob();
  SnapshotJob(const SnapshotJob&) = delete;
  SnapshotJob& operator=(const SnapshotJob&) = delete;

  awaitable<Ending> run();

  // We are leaving: end the hooks by the ladder and put the snapshot back.
  void interrupt(const std::string& reason);
  // The lease is no longer ours: kill the hooks, write nothing.
  void lose(const std::string& reason);

  const store::Claim& claim() const noexcept { return claim_; }
  // Whether this snapshot was its crawl's last.
  bool sealed_crawl() const noexcept { return sealed_crawl_; }
  const store::Lease& lease() const noexcept { return claim_.lease; }
  // The hook that the others wait for; nullptr: none runs. For the moment only.
  const hooks::HookRun* foreground() const noexcept { return foreground_; }

private:
  struct Later { // thrown inside run(): put back for reasons of politeness
    std::chrono::milliseconds delay;
    std::string reason;
    bool spend;
  };
  struct Forbidden { // thrown inside run(): nothing of the page may be kept
    std::string reason;
  };
  base::LogAbout log_about(const std::string& plugin = "", const std::string& hook = "") const;
  struct Stopped {}; // thrown inside run() to unwind when interrupted, lost, or left without its session
  struct RunningHook {
    std::unique_ptr<hooks::HookRun> run;
    std::size_t view; // index into view_.results
  };

  void end_hooks();
  awaitable<void> admit();
  awaitable<void> ask_robots();
  awaitable<void> judge_redirects(const std::vector<std::string>& urls);
  awaitable<std::string> robots_rule_against(const base::Url& url);
  awaitable<void> join_session();
  awaitable<void> run_hooks();
  awaitable<void> run_hook(const hooks::Hook& hook);
  awaitable<void> record_start(const store::HookStart& start);
  awaitable<void> end_background();
  awaitable<void> finish_hook(RunningHook hook);
  awaitable<std::string> find_meddling(const hooks::Hook& hook);
  awaitable<void> skip_hook(const hooks::Hook& hook, std::string reason);
  awaitable<void> publish_and_seal();
  awaitable<void> refuse(std::string reason);
  awaitable<void> seal();
  awaitable<void> give_up_results(const std::string& reason);
  awaitable<void> put_back(const std::string& ending, std::chrono::milliseconds delay, const std::string& reason,
                           bool spend);
  awaitable<void> reap();
  std::uint64_t already_in(const hooks::Hook& hook) const;
  void take_discovered(const hooks::HookOutcome& outcome);
  void check() const;
  void check_directory() const;
  void remove_scratch() noexcept;
  std::string decide_outcome() const;

  JobContext& context_;
  store::Claim claim_;
  std::map<std::string, archive::Trace> left_; // by plugin: its directory as its last hook left it
  bool crawl_hooks_{false};                    // the crawl has hooks of its own, which may write here too
  std::set<std::string> judged_;               // URLs of redirects that may be asked for
  std::uint64_t left_bytes_{0};                // by hooks so far, for claim_.max_snapshot_bytes
  std::set<std::string> spoiled_;              // plugins whose files were changed after they had ended
  hooks::Options options_;
  hooks::HookContext hook_context_;
  std::filesystem::path attempt_;
  std::pair<std::uint64_t, std::uint64_t> attempt_inode_; // device and number: hooks could put another in its place
  archive::SnapshotView view_;
  std::vector<RunningHook> background_;
  hooks::HookRun* foreground_{nullptr};
  std::vector<std::pair<std::string, std::string>> unfinished_; // plugin and hook of rows that say: it runs
  std::vector<store::Seed> discovered_;
  store::Sealing sealing_;
  CrawlSessions::Share session_;
  std::string interrupted_, lost_, broken_; // reasons; empty: not. broken_: its crawl session died
  bool no_place_{false};                    // this node may not open another crawl
  std::atomic<bool> abandon_{false};        // what a side thread fetches for us
  std::string published_;                   // directory published but not yet committed
  bool seal_asked_{false};                  // from here on the seal may have been granted without our knowing
  bool sealed_crawl_{false};
};

} // namespace holdfast::worker
