#pragma once
// Runs one hook from start to outcome. A hook that fails is a value. Main thread only; owned by the job that started
// it.
//
// Foreground: start(), then finish(). Background: start(), ready(), later finish(); its HookSet ends it.

#include "lib/hooks/environment.hpp"
#include "lib/hooks/record.hpp"
#include "lib/process/launcher.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::hooks {

struct HookLimits {
  std::chrono::milliseconds timeout{60000};   // wall time of a foreground hook; background hooks only at the end
  std::chrono::milliseconds kill_grace{5000}; // TERM to KILL after a timeout
  // A foreground hook may go so long without printing, writing below its directory, or using two percent of a
  // processor; 0: any time.
  std::chrono::milliseconds stall{0};
  std::uint64_t stdout_bytes{64u << 20}; // more ends the hook
  std::uint64_t stderr_bytes{16u << 20};
  std::uint64_t output_bytes{4ull << 30}; // everything in the hook's directory; more ends the hook
  process::Limits process;
};

struct Stall {
  std::chrono::steady_clock::time_point since{};
  std::chrono::milliseconds limit{0};
};

struct HookOutcome {
  Status status{Status::failed};
  bool interrupted{false}; // ended because we were leaving, without a result: release the work, count no failure
  bool timed_out{false};
  std::string output; // one line for users
  std::string output_json;
  std::string error; // why it failed: record, "timed out after 60s", last line of stderr, exit status; unread records
  process::Exit exit;
  std::vector<SnapshotRecord> discovered;
  std::vector<std::string> tags;
  std::vector<BinaryRecord> binaries;
  std::vector<MachineRecord> machine_records;
  std::vector<RateLimitRecord> rate_limits;
  std::vector<std::string> redirects;           // URLs that the page led to, in order, not yet validated
  std::optional<ResponseRecord> response;       // the last reported one
  base::Facts facts;                            // of the page
  std::optional<std::string> signed_out;        // sign that the persona's session has ended
  std::string unreachable;                      // why no hook can get the page; empty: no reason
  std::filesystem::path stdout_log, stderr_log; // kept only if the hook failed, else empty
};

class HookRun {
public:
  // `directory` is the hook's working directory (<SNAP_DIR>/<plugin>), created here. Runner files are named
  // <hook>.<32hex>.stdout.log and so on.
  HookRun(process::Launcher& launcher, asio::any_io_executor executor, process::Command command, const Hook& hook,
          std::filesystem::path directory, HookLimits limits);
  ~HookRun();
  HookRun(const HookRun&) = delete;
  HookRun& operator=(const HookRun&) = delete;

  // Starts the process and the follower of its stdout. Throws Error(cannot_create) if the directory or the runner files
  // cannot be made, and what Launcher::start throws.
  void start();
  // Background hooks: completes at the first byte on stdout, or when the hook has ended, or after `limit`; true if it
  // is ready (output, or exit 0).
  awaitable<bool> ready(std::chrono::milliseconds limit);
  // Completes with the outcome once the process tree has ended. For a foreground hook the timeout applies.
  awaitable<HookOutcome> finish();
  // TERM now, KILL after `grace`. `interrupting`: we are leaving, so a silent death by signal is not a failure.
  // Otherwise it is the polite end of a background hook, which then counts as exit 0.
  void end(std::chrono::milliseconds grace, bool interrupting);
  void kill();

  const Hook& hook() const noexcept;
  std::chrono::steady_clock::time_point started_at() const noexcept;
  pid_t pid() const noexcept;
  std::chrono::milliseconds timeout() const noexcept;
  // Returns hooks::started_with(), made at the first call.
  std::shared_ptr<const std::string> started_with(const PluginSet& plugin_set) const;
  // Returns since when it has made no progress and how long it may, once a tenth of that is over; limit 0: no stall.
  Stall stall() const noexcept;

private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Outcome of an exit and an optional record, by the contract's table; pure, so that
// the table can be tested row by row. `has_outputs`: files other than runner files are in the directory.
Status decide_status(const process::Exit& exit, const std::optional<ResultRecord>& record, bool has_outputs,
                     bool ended_politely, bool timed_out);

} // namespace holdfast::hooks
