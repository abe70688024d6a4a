#include "services/worker/page/snapshot_job.hpp"

#include "lib/archive/verify.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/prepare_hook.hpp"
#include "services/worker/page/hook_choice.hpp"
#include "services/worker/page/recapture.hpp"
#include "services/worker/turn/running_hooks.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace holdfast::worker {

namespace {

// Describes how far its end went: the signals, and the remains.
std::string ending_of(const process::Exit& exit) {
  std::string text = exit.killed ? ", killed after SIGTERM" : exit.terminated ? ", ended by SIGTERM" : "";
  if (exit.leftovers > 0) text += fmt::format(", {} processes that it left were killed", exit.leftovers);
  return text;
}

} // namespace

SnapshotJob::SnapshotJob(PageServices& context, store::Claim claim)
    : context_(context), claim_(std::move(claim)), options_(context_.options.hook_options),
      hook_context_(machine_context(context_)), results_(context_, claim_, [this] { reasons_.check(); }),
      admission_(context_, claim_, options_, [this] { reasons_.check(); }), limit_(context_.executor),
      hooks_(context_), work_{context_, claim_, results_.files(), results_.view()} {
  for (const auto& [key, value] : hooks::crawl_options(*context_.options.plugin_set, claim_.options))
    options_[key] = value;
  hook_context_.snapshot_id = claim_.lease.snapshot_id;
  hook_context_.crawl_id = claim_.lease.crawl_id;
  hook_context_.url = claim_.url;
  hook_context_.source_url = claim_.url;
  hook_context_.depth = claim_.depth;
  hook_context_.snapshot_dir = work_.files.directory();
  hook_context_.snapshot_title = claim_.title;
  hook_context_.snapshot_tags = base::join(claim_.tags, ",");
  work_.page.lease = claim_.lease;
}

SnapshotJob::~SnapshotJob() = default;

void SnapshotJob::interrupt(const std::string& reason) {
  if (!reasons_.interrupted.empty() || !reasons_.lost.empty()) return;
  reasons_.interrupted = reason;
  admission_.abandon();
  work_.files.abandon();
  hooks_.interrupt(context_.options.kill_grace);
}

void SnapshotJob::lose(const std::string& reason) {
  if (!reasons_.lost.empty()) return;
  reasons_.lost = reason;
  admission_.abandon();
  work_.files.abandon();
  hooks_.kill();
}

void SnapshotJob::Reasons::check() const {
  if (!lost.empty()) throw Failure{Failure::Kind::lost, lost};
  if (!interrupted.empty()) throw Failure{Failure::Kind::interrupted, interrupted};
  if (!broken.empty()) throw Failure{Failure::Kind::error, broken};
}

awaitable<SnapshotJob::Ending> SnapshotJob::run() {
  std::optional<Failure> failure;
  try {
    base::test_point("after_start");
    reasons_.check();
    co_await archive_page();
  } catch (const Failure& thrown) {
    failure = thrown;
  } catch (const SessionsFull&) {
    failure = Failure{Failure::Kind::no_session, "its worker has as many crawls open as it may (sessions.max)"};
  } catch (const base::Error& error) {
    failure = Failure{Failure::Kind::error, error.what(), error.error_class()};
    if (error.error_class() == base::ErrorClass::lease_lost) lose(error.what());
  } catch (const std::exception& error) {
    failure = Failure{Failure::Kind::error, error.what()};
  }
  if (failure) co_await reap();
  if (failure && !reasons_.interrupted.empty()) failure = Failure{Failure::Kind::interrupted, reasons_.interrupted};
  if (failure) co_await remove_published();
  count_traffic(work_); // if no step has: the next page may begin in the same turn that this one ends in
  auto ending = Ending::lost;
  if (!failure || reasons_.lost.empty()) {
    auto rows = results_.take_rows(failure ? failure->reason : "");
    ending = co_await submission_.submit(work_, std::move(rows), failure, reasons_.lost);
  }
  results_.forget_ended();
  context_.running_hooks.changed();
  session_.reset();
  if (ending == Ending::lost || ending == Ending::cancelled) {
    const auto about = log_about(lease());
    spdlog::warn("dropped {} (attempt a{}): {}", claim_.url, lease().fence, reasons_.lost);
  }
  if (ending == Ending::sealed && !failure) co_await take_steps_after_seal();
  co_await remove_published();
  co_await base::on_thread(context_.files, [this] { work_.files.remove_all(); });
  co_return ending;
}

// Removes a published directory that was not sealed: its name holds our fence, so no other attempt uses it. If the
// answer to its seal was lost, `holdfast verify` decides.
awaitable<void> SnapshotJob::remove_published() {
  const auto directory = work_.published.directory;
  if (submission_.in_doubt() || directory.empty()) co_return;
  co_await base::on_thread(context_.files, [this, &directory] {
    try {
      archive::remove_leftover(context_.archive_root, directory.string());
    } catch (const base::Error& error) {
      const auto about = log_about(lease());
      spdlog::warn("could not remove files of an attempt: {}", error.what());
    }
  });
  work_.published = {};
}

awaitable<void> SnapshotJob::archive_page() {
  work_.view.started_at = base::utc_timestamp();
  require_plugins(context_, claim_);
  co_await admission_.judge_page();
  const bool unchanged = co_await recapture(work_, results_, options_);
  reasons_.check();
  if (!unchanged) co_await capture_by_hooks();
  co_await take_steps(unchanged ? steps_of_recapture() : steps_before_seal());
}

awaitable<void> SnapshotJob::capture_by_hooks() {
  co_await join_session();
  co_await run_hooks();
  work_.verdict = results_.judge();
  work_.sandbox = session_->directory().sandbox();
  if (claim_.depth < claim_.max_depth) work_.page.links = results_.discovered();
}

// From here on the crawl's hooks run on this worker, and ours may use what they provide.
awaitable<void> SnapshotJob::join_session() {
  session_ = co_await context_.sessions.join(claim_, [this](const std::string& reason) {
    if (!reasons_.broken.empty()) return;
    reasons_.broken = reason;
    work_.files.abandon();
    hooks_.interrupt(context_.options.kill_grace);
  });
  reasons_.check();
  const auto url = base::try_parse_url(claim_.url);
  work_.route = context_.networks.route(session_->network(), {claim_.host, url ? url->port : std::uint16_t{0}},
                                        claim_.max_snapshot_bytes);
  session_->directory().describe(hook_context_);
  co_await persona_.join(session_->persona());
  reasons_.check();
  work_.redactor = persona_.redactor(context_.options, claim_.url);
  for (const auto& [key, value] : session_->set_options())
    options_[key] = value;
}

// Hooks that run then are ended; those that have not begun are skipped.
void SnapshotJob::limit_time() {
  if (context_.options.snapshot_timeout.count() == 0) return;
  limit_.expires_after(context_.options.snapshot_timeout);
  limit_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto job = weak.lock();
    if (error || !job) return;
    job->results_.set_overdue();
    const auto about = log_about(job->lease());
    spdlog::warn("{}: its time is over (worker.snapshot_timeout)", job->claim_.url);
    job->hooks_.end_all(job->context_.options.kill_grace);
  });
}

awaitable<void> SnapshotJob::run_hooks() {
  const auto choice = choose_hooks(context_, claim_, options_);
  work_.page.reason = choice.reason;
  results_.set_crawl_hooks(choice.crawl_hooks);
  {
    const auto about = log_about(lease());
    spdlog::debug("{}: {} hooks", claim_.url, choice.hooks.size());
  }
  co_await work_.files.make(session_->directory().sandbox());
  limit_time();
  for (const hooks::Hook* hook : choice.hooks) {
    reasons_.check();
    if (const auto reason = results_.reason_to_skip(); !reason.empty())
      results_.skip(*hook, reason);
    else
      co_await run_hook(*hook);
  }
  reasons_.check();
  co_await end_background();
  limit_.cancel();
}

awaitable<void> SnapshotJob::run_hook(const hooks::Hook& hook) {
  auto prepared = prepare_hook(context_, hook, options_, hook_context_);
  if (!prepared.missing.empty()) co_return results_.skip(hook, prepared.missing);
  prepared.limits.output_bytes = results_.room_for(hook.plugin->name, prepared.limits.output_bytes);
  confine(context_, session_->directory().sandbox(), prepared.command,
          {work_.files.directory(), session_->directory().path()}, work_.files.temporary());
  prepared.command.sandbox.signals = session_->signals();
  if (work_.route) work_.route->apply(prepared.command);
  const auto readiness = prepared.limits.timeout + kReadiness;
  const auto number = results_.add(hook);
  const auto run = hooks_.start(hook, std::move(prepared), work_.files.directory(), number);
  results_.set_started(number, run->started_at());
  {
    const auto about = log_about(lease(), hook.plugin->name, hook.name.name);
    spdlog::debug("{} {}/{}: started{}, for {} at most", claim_.url, hook.plugin->name, hook.name.name,
                  hook.name.background ? " in the background" : "", base::format_duration(run->timeout()));
  }
  context_.running_hooks.changed();
  const HookSet::Running started = hooks_.running().back();
  if (hook.name.background)
    co_await run->ready(readiness);
  else
    co_await collect(started);
}

awaitable<void> SnapshotJob::end_background() {
  // With no hook in the foreground the others get their time; else the last foreground hook was what they waited for.
  if (results_.only_background()) co_await hooks_.outlast_background();
  hooks_.end_background();
  const auto running = hooks_.running();
  for (const auto& one : running)
    co_await one.run->finish();
  for (const auto& one : running)
    co_await collect(one);
}

// Applies options that a hook reports for this machine to the hooks of this page that start after it. They are not
// kept: a page must not choose programs for other pages. Only options of plugins: no LD_PRELOAD.
void SnapshotJob::heed_machine(const hooks::HookOutcome& outcome) {
  const auto set = [this](const std::string& key, const std::string& value) {
    if (context_.options.plugin_set->is_option(key)) options_[key] = value;
  };
  for (const auto& record : outcome.machine_records)
    for (const auto& [key, value] : record.config)
      set(key, value);
  for (const auto& record : outcome.binaries)
    if (!record.path.empty()) set(hooks::key_prefix(record.name) + "_BINARY", record.path);
}

// Waits for a hook's end and takes what it left.
awaitable<void> SnapshotJob::collect(HookSet::Running hook) {
  hooks::HookOutcome outcome = co_await hook.run->finish();
  results_.take_end(hook, outcome);
  co_await persona_.heed(*hook.run, outcome, context_.options, lease());
  co_await persona_.keep(lease(), work_.redactor, claim_.url); // what is hidden then has the new secrets
  if (work_.redactor) hide_secrets(*work_.redactor, outcome);
  base::test_point("after_hook");
  reasons_.check();
  if (outcome.interrupted) throw Failure{Failure::Kind::error, outcome.error};
  if (outcome.exit.ended_by() == process::EndedBy::machine)
    work_.machine_trouble = "hook " + hook.run->hook().name.name + ": " + outcome.exit.describe();

  AttemptFiles::Names running;
  for (const auto& one : hooks_.running())
    running.emplace_back(one.run->hook().plugin->name, one.run->hook().name.name);
  co_await results_.take(hook, outcome, std::move(running));
  auto& result = results_.result(hook.number);
  const auto slower = co_await admission_.heed_rate_limits(outcome, result);
  {
    const auto about = log_about(lease(), result.plugin, result.hook);
    spdlog::debug("{} {}/{}: {} in {}{}", claim_.url, result.plugin, result.hook, result.status,
                  base::format_duration(result.wall_time), ending_of(outcome.exit));
  }
  heed_machine(outcome);
  hooks_.forget(*hook.run);
  context_.running_hooks.changed();
  if (slower) throw Failure(*slower);
  co_await admission_.judge_redirects(outcome.redirects);
}

void SnapshotJob::list_hooks(std::vector<store::ActiveHook>& hooks) const {
  for (const auto& [run, number] : hooks_.running()) {
    const auto& row = results_.row(number);
    store::ActiveHook hook{lease(),        row.plugin, row.hook,
                           row.background, run->pid(), row.started,
                           run->timeout(), {},         run->started_with(*context_.options.plugin_set)};
    if (const auto stall = run->stall(); stall.limit.count() > 0) hook.still_since = stall.since;
    hooks.push_back(std::move(hook));
  }
  for (const auto& result : results_.ended()) {
    store::ActiveHook hook{lease(), result->plugin, result->hook, result->background, result->pid, result->started};
    hook.ended = result;
    hooks.push_back(std::move(hook));
  }
}

awaitable<void> SnapshotJob::take_steps(std::span<const PageStep> steps) {
  for (const auto& step : steps) {
    co_await step.run(work_);
    reasons_.check();
  }
}

// The seal does not wait for them.
awaitable<void> SnapshotJob::take_steps_after_seal() {
  for (const auto& step : steps_after_seal())
    try {
      co_await step.run(work_);
    } catch (const base::Error& error) {
      const auto about = log_about(lease());
      spdlog::warn("{}, after its seal, {}: {}", claim_.url, step.name, error.what());
    }
}

// Ends all processes of this snapshot.
awaitable<void> SnapshotJob::reap() {
  hooks_.interrupt(reasons_.interrupted.empty() ? std::chrono::milliseconds(0) : context_.options.kill_grace);
  for (const auto& hook : hooks_.running()) {
    try {
      const auto outcome = co_await hook.run->finish();
      results_.take_end(hook, outcome);
    } catch (const std::exception& error) {
      const auto& name = hook.run->hook();
      spdlog::debug("{}: nothing is known of the end of {}/{}: {}", claim_.url, name.plugin->name, name.name.name,
                    error.what());
    }
  }
  hooks_.clear();
  context_.running_hooks.changed();
}

} // namespace holdfast::worker
