#include "services/worker/page/snapshot_job.hpp"

#include "lib/archive/deduplicate.hpp"
#include "lib/archive/page_text.hpp"
#include "lib/archive/redact.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/backoff.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/duration.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/timestamp.hpp"
#include "lib/base/text/url.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/text.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/prepare_hook.hpp"
#include "services/worker/page/hook_choice.hpp"
#include "services/worker/turn/claim_conditions.hpp"
#include "services/worker/turn/running_hooks.hpp"
#include "services/worker/turn/turns.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace holdfast::worker {

namespace {

// Describes how far its end went: the signals, and the remains.
std::string ending_of(const process::Exit& exit) {
  std::string text = exit.killed ? ", killed after SIGTERM" : exit.terminated ? ", ended by SIGTERM" : "";
  if (exit.leftovers > 0) text += fmt::format(", {} processes that it left were killed", exit.leftovers);
  return text;
}

// Takes secrets out of the texts of a hook. archive::redact_attempt() does that for its files.
void hide_secrets(const warc::Redactor& redactor, hooks::HookOutcome& outcome) {
  const auto all = [&](std::initializer_list<std::string*> texts) {
    for (auto* const text : texts)
      redactor.apply(*text);
  };
  all({&outcome.output, &outcome.output_json, &outcome.error, &outcome.unreachable});
  for (auto* const list : {&outcome.redirects, &outcome.tags})
    for (auto& text : *list)
      all({&text});
  for (auto& record : outcome.discovered) {
    all({&record.url, &record.title});
    for (auto& tag : record.tags)
      all({&tag});
  }
  for (auto& [name, value] : outcome.facts)
    all({&value});
  if (outcome.signed_out) all({&*outcome.signed_out});
}

} // namespace

SnapshotJob::SnapshotJob(JobContext& context, store::Claim claim)
    : context_(context), claim_(std::move(claim)), options_(context_.options.hook_options),
      hook_context_(machine_context(context_)), results_(context_, claim_, [this] { check(); }), view_(results_.view()),
      files_(results_.files()), admission_(context_, claim_, options_, [this] { check(); }), limit_(context_.executor),
      hooks_(context_) {
  for (const auto& [key, value] : hooks::crawl_options(*context_.options.catalog, claim_.options))
    options_[key] = value;
  hook_context_.snapshot_id = claim_.lease.snapshot_id;
  hook_context_.crawl_id = claim_.lease.crawl_id;
  hook_context_.url = claim_.url;
  hook_context_.source_url = claim_.url;
  hook_context_.depth = claim_.depth;
  hook_context_.snapshot_dir = files_.directory();
  hook_context_.snapshot_title = claim_.title;
  hook_context_.snapshot_tags = base::join(claim_.tags, ",");
  page_.lease = claim_.lease;
}

SnapshotJob::~SnapshotJob() = default;

void SnapshotJob::interrupt(const std::string& reason) {
  if (!interrupted_.empty() || !lost_.empty()) return;
  interrupted_ = reason;
  admission_.abandon();
  files_.abandon();
  hooks_.interrupt(context_.options.kill_grace);
}

void SnapshotJob::lose(const std::string& reason) {
  if (!lost_.empty()) return;
  lost_ = reason;
  admission_.abandon();
  files_.abandon();
  hooks_.kill();
}

void SnapshotJob::check() const {
  if (!lost_.empty()) throw Failure{Failure::Kind::lost, lost_};
  if (!interrupted_.empty()) throw Failure{Failure::Kind::interrupted, interrupted_};
  if (!broken_.empty()) throw Failure{Failure::Kind::error, broken_};
}

awaitable<SnapshotJob::Ending> SnapshotJob::run() {
  std::optional<Failure> failure;
  try {
    base::test_point("after_start");
    check();
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
  if (failure && !interrupted_.empty()) failure = Failure{Failure::Kind::interrupted, interrupted_};
  if (failure) co_await remove_published();
  // No hook runs any more. The next page may begin in the same turn that this one ends in, and needs the way out.
  count_traffic();
  route_.reset();
  auto ending = Ending::lost;
  if (!failure || lost_.empty()) ending = co_await hand_in(failure);
  results_.forget_ended();
  context_.running_hooks->changed();
  session_.reset();
  if (ending == Ending::lost || ending == Ending::cancelled) {
    const auto about = log_about(lease());
    spdlog::warn("dropped {} (attempt a{}): {}", claim_.url, lease().fence, lost_);
  }
  if (ending == Ending::sealed && !failure) co_await keep_text();
  co_await remove_published();
  co_await base::on_thread(context_.files, [this] { files_.remove_all(); });
  co_return ending;
}

// After the seal, which does not wait for it. ArchiveMaintenance adds what is lost here.
awaitable<void> SnapshotJob::keep_text() {
  if (context_.options.text_bytes == 0) co_return;
  try {
    const auto call = [this](pg::Connection& connection) { return store::text_keep(connection, lease(), text_); };
    co_await context_.retry.once(call);
  } catch (const base::Error& error) {
    const auto about = log_about(lease());
    spdlog::warn("could not index the text of {} yet: {}", claim_.url, error.what());
  }
}

// Removes the published files of an unsealed page, which are ours alone: their name holds our fence. If the answer to
// its seal was lost, `holdfast verify` decides.
awaitable<void> SnapshotJob::remove_published() {
  if (in_doubt_ || published_.empty()) co_return;
  co_await base::on_thread(context_.files, [this] {
    try {
      archive::remove_leftover(context_.archive_root, published_);
    } catch (const base::Error& error) {
      const auto about = log_about(lease());
      spdlog::warn("could not remove files of an attempt: {}", error.what());
    }
  });
  published_.clear();
}

awaitable<void> SnapshotJob::archive_page() {
  view_.started_at = base::utc_timestamp();
  require_plugins(context_, claim_);
  co_await admission_.judge_page();
  co_await join_session();
  co_await run_hooks();
  co_await publish();
}

// From here on the crawl's hooks run on this worker, and ours may use what they provide.
awaitable<void> SnapshotJob::join_session() {
  session_ = co_await context_.sessions->join(claim_, [this](const std::string& reason) {
    if (!broken_.empty()) return;
    broken_ = reason;
    files_.abandon();
    hooks_.interrupt(context_.options.kill_grace);
  });
  check();
  const auto url = base::try_parse_url(claim_.url);
  route_ = context_.networks.route(session_->network(), {claim_.host, url ? url->port : std::uint16_t{0}},
                                   claim_.max_snapshot_bytes);
  session_->directory().describe(hook_context_);
  if (auto* const persona = session_->persona()) {
    co_await persona->renew();
    check();
    persona_version_ = persona->version();
    if (context_.options.redact) {
      redactor_ = persona->redactor();
      redactor_->except(claim_.url); // who added it has told it
    }
  }
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
  page_.reason = choice.reason;
  crawl_hooks_ = choice.crawl_hooks;
  {
    const auto about = log_about(lease());
    spdlog::debug("{}: {} hooks", claim_.url, choice.hooks.size());
  }
  co_await files_.make(session_->directory().sandbox());
  limit_time();
  for (const hooks::Hook* hook : choice.hooks) {
    check();
    if (const auto reason = results_.reason_to_skip(); !reason.empty())
      results_.skip(*hook, reason);
    else
      co_await run_hook(*hook);
  }
  check();
  co_await end_background();
  limit_.cancel();
  if (auto* const persona = session_->persona()) co_await persona->keep(lease());
  check();
}

awaitable<void> SnapshotJob::run_hook(const hooks::Hook& hook) {
  auto prepared = prepare_hook(context_, hook, options_, hook_context_);
  if (!prepared.missing.empty()) co_return results_.skip(hook, prepared.missing);
  prepared.limits.output_bytes = results_.room_for(hook.plugin->name, prepared.limits.output_bytes);
  confine(context_, session_->directory().sandbox(), prepared.command,
          {files_.directory(), session_->directory().path()}, files_.temporary());
  prepared.command.sandbox.signals = session_->signals();
  if (route_) route_->apply(prepared.command);
  const auto readiness = prepared.limits.timeout + kReadiness;
  const auto number = results_.add(hook);
  const auto run = hooks_.start(hook, std::move(prepared), files_.directory(), number);
  results_.set_started(number, run->started_at());
  {
    const auto about = log_about(lease(), hook.plugin->name, hook.name.name);
    spdlog::debug("{} {}/{}: started{}, for {} at most", claim_.url, hook.plugin->name, hook.name.name,
                  hook.name.background ? " in the background" : "", base::format_duration(run->timeout()));
  }
  context_.running_hooks->changed();
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
    if (context_.options.catalog->is_option(key)) options_[key] = value;
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
  if (redactor_) hide_secrets(*redactor_, outcome);
  const auto& with_persona = context_.options.persona_plugins;
  if (outcome.signed_out && session_->persona() &&
      std::find(with_persona.begin(), with_persona.end(), hook.run->hook().plugin->name) != with_persona.end())
    co_await session_->persona()->signed_out(persona_version_, lease(), *outcome.signed_out);
  base::test_point("after_hook");
  check();
  if (outcome.interrupted) throw Failure{Failure::Kind::error, outcome.error};

  AttemptFiles::Names running;
  for (const auto& one : hooks_.running())
    running.emplace_back(one.run->hook().plugin->name, one.run->hook().name.name);
  co_await results_.take(hook, outcome, std::move(running), crawl_hooks_);
  auto& result = results_.result(hook.number);
  const auto slower = co_await admission_.heed_rate_limits(outcome, result);
  {
    const auto about = log_about(lease(), result.plugin, result.hook);
    spdlog::debug("{} {}/{}: {} in {}{}", claim_.url, result.plugin, result.hook, result.status,
                  base::format_duration(result.wall_time), ending_of(outcome.exit));
  }
  heed_machine(outcome);
  hooks_.forget(*hook.run);
  context_.running_hooks->changed();
  if (slower) throw Failure(*slower);
  co_await admission_.judge_redirects(outcome.redirects);
}

void SnapshotJob::list_hooks(std::vector<store::ActiveHook>& hooks) const {
  for (const auto& [run, number] : hooks_.running()) {
    const auto& row = results_.row(number);
    store::ActiveHook hook{lease(),        row.plugin, row.hook,
                           row.background, run->pid(), row.started,
                           run->timeout(), {},         run->started_with(*context_.options.catalog)};
    if (const auto stall = run->stall(); stall.limit.count() > 0) hook.still_since = stall.since;
    hooks.push_back(std::move(hook));
  }
  for (const auto& result : results_.ended()) {
    store::ActiveHook hook{lease(), result->plugin, result->hook, result->background, result->pid, result->started};
    hook.ended = result;
    hooks.push_back(std::move(hook));
  }
}

awaitable<void> SnapshotJob::publish() {
  const auto verdict = results_.judge();
  view_.outcome = verdict.outcome;
  if (verdict.response) {
    view_.facts["http_status"] = std::to_string(verdict.response->status);
    if (!verdict.response->mime.empty()) view_.facts["mime"] = base::fact_value(verdict.response->mime);
  }
  count_traffic();
  view_.ended_at = base::utc_timestamp();
  // Lack of space on this worker's disk and errors of its network are not the page's failure: elsewhere, or later, the
  // page will succeed.
  if (view_.outcome != "succeeded") {
    std::error_code error;
    const auto space = std::filesystem::space(context_.options.work_dir, error);
    if (!error && space.available < context_.options.minimum_free_bytes / 8)
      throw base::Error(base::ErrorClass::cannot_create,
                        "hooks failed with " + base::format_size(space.available) + " free in work_dir");
    if (const auto trouble = route_ ? route_->traffic().trouble : std::string(); !trouble.empty()) {
      context_.claim_conditions->rest(trouble);
      throw base::Error(base::ErrorClass::unavailable, trouble);
    }
  }
  const auto url = base::parse_url(claim_.url);
  const auto directory = archive::snapshot_directory(claim_.created_at, base::host_directory(url), lease().snapshot_id);
  const auto lost = co_await base::on_thread(context_.files, [&] {
    context_.archive_root.check();
    files_.check();
    files_.check_weight();
    take_from_hooks(session_->directory().sandbox(), files_.directory());
    auto removed =
        archive::tidy(context_.archive_root, files_.directory(), directory, lease().fence, &files_.abandoned());
    if (redactor_) archive::redact_attempt(files_.directory(), view_, *redactor_, &files_.abandoned());
    captures_ = archive::read_captures(files_.directory(), &files_.abandoned());
    return removed;
  });
  co_await deduplicate();
  const auto published = co_await base::on_thread(context_.files, [&] {
    files_.check_room(context_.archive_root);
    text_ = archive::page_text(files_.directory(), context_.options.text_bytes);
    archive::remove_partials(context_.archive_root, directory, lease().fence);
    archive::remove_lost_attempts(context_.archive_root, directory, lease().fence);
    return archive::publish(context_.archive_root, files_.directory(), directory, view_, &files_.abandoned());
  });
  published_ = published.directory.string();
  summary_ =
      fmt::format("{}{}, {} files, {}", verdict.outcome, verdict.outcome == "failed" ? " (" + verdict.reason + ")" : "",
                  published.files, base::format_size(published.bytes));
  base::test_point("after_publish");
  check();
  fill_page(published, verdict, lost);
}

// Fills the page for the seal. `lost`: files that were left out.
void SnapshotJob::fill_page(const archive::Published& published, const Verdict& verdict,
                            const std::vector<std::string>& lost) {
  const auto add_reason = [this](const std::string& why) { page_.reason += (page_.reason.empty() ? "" : "; ") + why; };
  page_.outcome = view_.outcome;
  if (page_.outcome == "failed")
    page_.reason = verdict.reason;
  else if (!verdict.reason.empty())
    add_reason(verdict.reason);
  if (route_ && route_->traffic().over_limit)
    add_reason("its hooks were cut off after " + base::format_size(claim_.max_snapshot_bytes) +
               " from the network (max_snapshot_bytes)");
  if (!lost.empty()) add_reason(AttemptFiles::describe_lost(lost));
  for (const auto& problem : captures_.problems)
    spdlog::warn("{}: not indexed: {}", claim_.url, problem);
  if (!captures_.records.empty()) page_.captures = archive::captures_json(captures_);
  page_.directory = published_;
  page_.manifest = published.manifest_sha256;
  page_.bytes = published.bytes;
  page_.files = published.files;
  page_.title = view_.title;
  page_.facts = view_.facts;
  page_.tags = view_.tags;
  if (claim_.depth < claim_.max_depth) page_.links = results_.discovered();
}

// Payloads that sealed pages hold leave the WARC files. The seal sees to it that these pages are still there.
awaitable<void> SnapshotJob::deduplicate() {
  const auto& scope = context_.options.deduplicate;
  if (scope == "off") co_return;
  const auto payloads = archive::payloads_of(captures_);
  if (payloads.empty()) co_return;
  const auto crawl = scope == "crawl" ? std::optional(lease().crawl_id) : std::nullopt;
  const auto call = [&](pg::Connection& connection) {
    return store::captures_stored(connection, payloads, crawl, archive::kLeastRepeated);
  };
  const auto stored = co_await context_.retry.repeat(call);
  if (stored.empty()) co_return;
  std::map<archive::Payload, warc::Capture> originals;
  for (const auto& capture : stored)
    originals.emplace(archive::Payload(capture.key, capture.digest), capture);
  const auto done = co_await base::on_thread(context_.files, [&] {
    auto result =
        archive::deduplicate(context_.archive_root, files_.directory(), captures_, originals, &files_.abandoned());
    if (!result.left_out.empty()) captures_ = archive::read_captures(files_.directory(), &files_.abandoned());
    return result;
  });
  for (const auto& capture : stored)
    if (capture.crawl_id != lease().crawl_id && done.left_out.contains({capture.key, capture.digest}))
      page_.originals.emplace(capture.crawl_id, capture.snapshot_id);
  if (done.bytes_saved > 0) view_.facts["bytes_saved"] = std::to_string(done.bytes_saved);
}

// Records the requests of the page's hooks, once all of them have ended.
void SnapshotJob::count_traffic() {
  if (!route_ || view_.facts.contains("requests")) return;
  const auto traffic = route_->traffic();
  view_.facts["requests"] = std::to_string(traffic.requests);
  view_.facts["requests_refused"] = std::to_string(traffic.refused);
  view_.facts["received_bytes"] = std::to_string(traffic.bytes);
  base::count("holdfast_worker_egress_requests_total", {}, static_cast<double>(traffic.requests));
  base::count("holdfast_worker_egress_refused_total", {}, static_cast<double>(traffic.refused));
  base::count("holdfast_worker_egress_received_bytes_total", {}, static_cast<double>(traffic.bytes));
  const auto about = log_about(lease());
  spdlog::debug("{}: {} requests to {} hosts, {}", claim_.url, traffic.requests, traffic.hosts.size(),
                base::format_size(traffic.bytes));
  if (traffic.refused > 0)
    spdlog::warn("{}: {} requests of its hooks were refused: {}", claim_.url, traffic.refused, traffic.first_refusal);
}

// Ends all processes of this snapshot.
awaitable<void> SnapshotJob::reap() {
  hooks_.interrupt(interrupted_.empty() ? std::chrono::milliseconds(0) : context_.options.kill_grace);
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
  context_.running_hooks->changed();
}

// Submits the page. If the database refuses it, submits it once more as a failure, without the parts that could be
// refused.
awaitable<SnapshotJob::Ending> SnapshotJob::hand_in(const std::optional<Failure>& failure) {
  std::optional<Failure> why = failure;
  for (bool again = false;; again = true) {
    store::Page page = why ? page_after(lease(), *why) : std::move(page_);
    if (why && why->kind == Failure::Kind::error && page.delay) page.delay = base::jittered(*page.delay);
    if (why && !again) page.facts = view_.facts;
    if (!again) page.results = results_.take_rows(why ? why->reason : "");
    if (redactor_) // of files that were not published
      for (auto& row : page.results)
        for (auto& file : row.files)
          redactor_->apply(file.path);
    handed_in_ = true;
    in_doubt_ = !page.directory.empty();
    std::optional<store::PageAnswer> answer;
    std::optional<base::Error> error;
    try {
      answer = co_await context_.turns->finish(std::move(page));
    } catch (const pg::DatabaseError& refusal) {
      in_doubt_ = false; // that is an answer too: nothing was written
      error = refusal;
    } catch (const base::Error& unanswered) {
      error = unanswered;
    }
    if (answer) {
      in_doubt_ = false;
      if (answer->what == store::PageAnswer::What::sealed && !why) published_.clear(); // it is the archive's now
      log_answer(*answer, why);
      co_return take_answer(*answer);
    }
    if (again || error->error_class() == base::ErrorClass::lease_lost) {
      if (lost_.empty()) lost_ = error->what();
      co_return Ending::lost;
    }
    spdlog::error("the database refuses {}: {}", claim_.url, error->what());
    why = Failure{Failure::Kind::error, error->what(), error->error_class()};
  }
}

void SnapshotJob::log_answer(const store::PageAnswer& answer, const std::optional<Failure>& failure) const {
  const auto about = log_about(lease());
  const bool written =
      answer.what != store::PageAnswer::What::lost && answer.what != store::PageAnswer::What::cancelled;
  if (!written) return;
  if (!failure)
    spdlog::info("sealed {} ({})", claim_.url, summary_);
  else if (answer.what == store::PageAnswer::What::released && failure->kind == Failure::Kind::later)
    spdlog::info("{} waits: {}", claim_.url, failure->reason);
  else if (failure->kind == Failure::Kind::error)
    spdlog::warn("{} is {}: {}", claim_.url,
                 answer.what == store::PageAnswer::What::released ? "released" : "sealed as failed", failure->reason);
}

SnapshotJob::Ending SnapshotJob::take_answer(const store::PageAnswer& answer) {
  sealed_crawl_ = answer.crawl_sealed;
  switch (answer.what) {
  case store::PageAnswer::What::sealed:
  case store::PageAnswer::What::failed:
    return Ending::sealed;
  case store::PageAnswer::What::released:
    return Ending::released;
  case store::PageAnswer::What::cancelled:
    if (lost_.empty()) lost_ = "its crawl has been stopped, and keeps nothing more";
    return Ending::cancelled;
  case store::PageAnswer::What::lost:
    break;
  }
  if (lost_.empty()) lost_ = "it is no longer held with this fence";
  return Ending::lost;
}

} // namespace holdfast::worker
