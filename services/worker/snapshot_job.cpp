#include "services/worker/snapshot_job.hpp"

#include "lib/archive/share.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/address.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text.hpp"
#include "lib/base/url.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/store/host.hpp"
#include "services/worker/hook_sandbox.hpp"
#include "services/worker/jitter.hpp"
#include "services/worker/on_thread.hpp"
#include "services/worker/prepare_hook.hpp"
#include "services/worker/running_hooks.hpp"
#include "services/worker/turns.hpp"

#include <boost/asio/steady_timer.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::size_t kFilesInRow = 1000; // files named in a result's row; the manifest names all
constexpr std::size_t kHosts = 20;        // of a page and its redirects, whose rate limits are believed
constexpr std::size_t kLogTail = 4096;    // of a failed hook's stderr, for the page

std::filesystem::path attempt_directory(const JobContext& context, const store::Lease& lease) {
  return context.options.work_dir / "attempts" / lease.crawl_id / lease.snapshot_id /
         ("a" + std::to_string(lease.fence));
}

// The files of a result as its row has them.
void list_files(store::HookResult& row, const archive::ResultView& result) {
  row.files.clear();
  row.bytes = 0;
  for (const auto& file : result.files) {
    row.bytes += file.size;
    if (row.files.size() < kFilesInRow)
      row.files.push_back({file.path.substr(result.plugin.size() + 1), file.type, file.size, file.sha256});
  }
}

} // namespace

SnapshotJob::SnapshotJob(JobContext& context, store::Claim claim)
    : context_(context), claim_(std::move(claim)), options_(context_.options.hook_options),
      files_(context_, attempt_directory(context_, claim_.lease), view_.results, claim_.max_snapshot_bytes),
      admission_(context_, claim_, options_, [this] { check(); }), hooks_(context_) {
  for (const auto& [key, value] : claim_.options)
    options_[key] = value;
  hook_context_.snapshot_id = claim_.lease.snapshot_id;
  hook_context_.crawl_id = claim_.lease.crawl_id;
  hook_context_.url = claim_.url;
  hook_context_.source_url = claim_.url;
  hook_context_.depth = claim_.depth;
  hook_context_.data_dir = context_.options.data_dir;
  hook_context_.crawl_dir = context_.options.work_dir / "crawls" / claim_.lease.crawl_id;
  hook_context_.snapshot_dir = files_.directory();
  const bool sandboxed = context_.sandbox.level != process::SandboxLevel::none;
  hook_context_.temporary_dir = sandboxed ? "/tmp" : context_.options.temporary_dir;
  hook_context_.library_dir = context_.options.data_dir / "lib";
  hook_context_.personas_dir = context_.options.data_dir / "personas";
  hook_context_.persona = claim_.persona;
  hook_context_.last_on_path = context_.options.last_on_path();
  hook_context_.snapshot_title = claim_.title;
  hook_context_.snapshot_tags = base::join(claim_.tags, ",");
  hosts_.insert(claim_.host);
  view_.id = claim_.lease.snapshot_id;
  view_.crawl_id = claim_.lease.crawl_id;
  view_.url = claim_.url;
  view_.title = claim_.title;
  view_.depth = claim_.depth;
  view_.fence = claim_.lease.fence;
  view_.tags = claim_.tags;
  view_.worker = context_.hostname;
  page_.lease = claim_.lease;
}

SnapshotJob::~SnapshotJob() = default;

base::LogAbout SnapshotJob::log_about(const std::string& plugin, const std::string& hook) const {
  return base::LogAbout({lease().crawl_id, lease().snapshot_id, lease().fence, plugin, hook});
}

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
  auto ending = Ending::lost;
  if (!failure || lost_.empty()) ending = co_await hand_in(failure);
  tell_traffic();
  route_.reset();
  session_ = {};
  if (ending == Ending::lost || ending == Ending::cancelled) {
    const auto about = log_about();
    spdlog::warn("dropped {} (attempt a{}): {}", claim_.url, lease().fence, lost_);
  }
  co_await remove_published();
  co_await on_thread(context_.files, [this] { files_.remove_all(); });
  co_return ending;
}

// What was published and is not sealed is ours alone: its name holds our fence. If the answer to its seal was lost,
// `holdfast verify` decides.
awaitable<void> SnapshotJob::remove_published() {
  if (in_doubt_ || published_.empty()) co_return;
  co_await on_thread(context_.files, [this] {
    try {
      archive::remove_leftover(context_.archive_root, published_);
    } catch (const base::Error& error) {
      const auto about = log_about();
      spdlog::warn("left behind: {}", error.what());
    }
  });
  published_.clear();
}

awaitable<void> SnapshotJob::archive_page() {
  view_.started_at = base::utc_timestamp();
  require_plugins();
  co_await admission_.judge_page();
  co_await join_session();
  co_await run_hooks();
  co_await publish();
}

// What this worker lacks, another may have: that is no failure of the page. A claim passes over crawls that name a
// plugin which its worker has not announced, so this is for crawls that name none.
void SnapshotJob::require_plugins() const {
  const auto& catalog = *context_.options.catalog;
  std::string lacking;
  const auto names = base::join(claim_.plugins, ",");
  if (!names.starts_with('[')) // a JSON list
    for (const auto& name : base::split(names, ","))
      if (lacking.empty()) lacking = catalog.lacking(name);
  if (!lacking.empty())
    throw Failure{Failure::Kind::no_plugin,
                  "the worker on " + context_.hostname + " has no plugin \"" + lacking + "\""};
  if (!names.empty()) return;
  const auto selected = hooks::selected_plugins(catalog, "", context_.options.hook_options);
  if (catalog.hooks_for(hooks::Event::snapshot, selected).empty())
    throw Failure{Failure::Kind::no_plugin,
                  "the worker on " + context_.hostname + " has no plugin with a hook for snapshots that is enabled"};
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
  route_ = context_.networks.route(session_.network(), claim_.host, claim_.max_snapshot_bytes);
  hook_context_.crawl_dir = session_.directory();
  hook_context_.library_dir = session_.library();
  hook_context_.personas_dir = session_.personas();
  for (const auto& [key, value] : session_.options())
    options_[key] = value;
}

// Less those whose results the collection has.
std::vector<std::string> SnapshotJob::selected_plugins() {
  const auto& catalog = *context_.options.catalog;
  auto selected = hooks::selected_plugins(catalog, base::join(claim_.plugins, ","), options_);
  if (claim_.archived.empty()) return selected;
  auto missing = hooks::missing_plugins(catalog, selected, claim_.archived);
  // Where it was added more plugins were wanted than this worker has. Nothing to be done here is no failure of the
  // page.
  if (missing.empty()) throw Failure{Failure::Kind::refused, "all that this worker can run of it is archived already"};
  std::vector<std::string> left_out;
  for (const hooks::Hook* hook : catalog.hooks_for(hooks::Event::snapshot, selected))
    if (const auto& name = hook->plugin->name; std::find(missing.begin(), missing.end(), name) == missing.end() &&
                                               std::find(left_out.begin(), left_out.end(), name) == left_out.end())
      left_out.push_back(name);
  if (!left_out.empty()) page_.reason = "only what was missing; archived before: " + base::join(left_out, ", ");
  return missing;
}

awaitable<void> SnapshotJob::run_hooks() {
  const auto& catalog = *context_.options.catalog;
  const auto selected = selected_plugins();
  co_await files_.make();
  crawl_hooks_ = !catalog.hooks_for(hooks::Event::crawl_setup, selected).empty();
  const auto all = catalog.hooks_for(hooks::Event::snapshot, selected);
  if (all.empty())
    throw base::Error(base::ErrorClass::configuration, "no plugin with a hook for snapshots is enabled for this crawl",
                      "name plugins that have one, or leave out the option that disables them: holdfast config");
  for (const hooks::Hook* hook : all) {
    check();
    if (!unreachable_.empty() && !is_captured(ends_))
      skip_hook(*hook, "the page cannot be fetched: " + unreachable_);
    else
      co_await run_hook(*hook);
  }
  check();
  co_await end_background();
  check();
}

std::size_t SnapshotJob::add_result(const hooks::Hook& hook) {
  archive::ResultView result;
  result.plugin = hook.plugin->name;
  result.hook = hook.name.name;
  result.title = hook.plugin->title.empty() ? hook.plugin->name : hook.plugin->title;
  store::HookResult row;
  row.plugin = result.plugin;
  row.hook = result.hook;
  row.background = hook.name.background;
  row.started = std::chrono::steady_clock::now();
  view_.results.push_back(std::move(result));
  rows_.push_back(std::move(row));
  ends_.push_back({hooks::Status::noresults, hook.plugin->captures_page, {}}); // until it has ended
  return rows_.size() - 1;
}

void SnapshotJob::skip_hook(const hooks::Hook& hook, const std::string& reason) {
  auto& result = view_.results[add_result(hook)];
  result.status = "skipped";
  result.error = reason;
  ends_.back().status = hooks::Status::skipped;
  count_hook(result.plugin, hooks::Status::skipped);
}

awaitable<void> SnapshotJob::run_hook(const hooks::Hook& hook) {
  auto prepared = prepare_hook(context_, hook, options_, hook_context_);
  if (!prepared.missing.empty()) co_return skip_hook(hook, prepared.missing);
  auto& limits = prepared.limits;
  if (claim_.max_snapshot_bytes > 0)
    limits.output_bytes =
        std::min(limits.output_bytes, claim_.max_snapshot_bytes - std::min(left_bytes_, claim_.max_snapshot_bytes) +
                                          files_.bytes_of(hook.plugin->name));
  prepared.command.sandbox = context_.sandbox;
  prepared.command.sandbox.writable = {files_.directory(), session_.directory()};
  prepared.command.sandbox.temporary = files_.temporary();
  if (route_) route_->apply(prepared.command);
  const auto number = add_result(hook);
  const auto readiness = limits.timeout + kReadiness;
  const auto run = hooks_.start(hook, std::move(prepared), files_.directory(), number);
  rows_[number].started = run->started_at();
  context_.running_hooks->changed();
  if (hook.name.background)
    co_await run->ready(readiness);
  else
    co_await collect(run);
}

awaitable<void> SnapshotJob::end_background() {
  // With no hook in the foreground the others get their time; else the last foreground hook was what they waited for.
  const bool only_background = std::all_of(view_.results.begin(), view_.results.end(), [](const auto& result) {
    return result.status.empty() || result.status == "skipped";
  });
  if (only_background)
    co_await hooks_.outlast_background();
  else
    hooks_.end_background();
  const auto running = hooks_.running();
  for (const auto& one : running)
    co_await one.run->finish();
  for (const auto& one : running)
    co_await collect(one.run);
}

// Waits for a hook's end and takes what it left.
awaitable<void> SnapshotJob::collect(std::shared_ptr<hooks::HookRun> run) {
  const hooks::HookOutcome outcome = co_await run->finish();
  const hooks::Hook& hook = run->hook();
  const auto number = hooks_.number_of(*run);
  auto& row = rows_[number];
  row.pid = run->pid();
  take_exit(row, outcome);
  base::test_point("after_hook");
  check();
  if (outcome.interrupted) throw Failure{Failure::Kind::error, outcome.error};

  auto& result = view_.results[number];
  co_await take_files(hook, result, outcome);
  result.wall_time = outcome.exit.wall_time;
  result.cpu_time = std::chrono::duration_cast<std::chrono::milliseconds>(outcome.exit.usage.user_time +
                                                                          outcome.exit.usage.system_time);
  result.peak_memory_bytes = outcome.exit.usage.peak_memory_bytes;
  if (result.status == "failed") {
    if (result.error.empty()) result.error = outcome.exit.describe();
    if (!outcome.stderr_log.empty()) {
      result.log = base::tail_of(outcome.stderr_log, kLogTail);
      result.stderr_path = outcome.stderr_log.lexically_relative(files_.directory()).string();
    }
  }
  row.output_json = outcome.output_json;
  ends_[number].status = hooks::parse_status(result.status);
  ends_[number].response = outcome.response;
  if (unreachable_.empty()) unreachable_ = outcome.unreachable;
  if (hook.plugin->name == "title" && outcome.status == hooks::Status::succeeded && !outcome.output.empty())
    view_.title = outcome.output;
  take_discovered(outcome);
  take_hosts(outcome);
  const auto slower = co_await slow_down(outcome, result);
  count_hook(result.plugin, outcome);
  {
    const auto about = log_about(result.plugin, result.hook);
    spdlog::debug("{} {}/{}: {} in {}", claim_.url, result.plugin, result.hook, result.status,
                  base::format_duration(result.wall_time));
  }
  hooks_.forget(*run);
  context_.running_hooks->changed();
  if (slower) throw Failure(*slower);
  co_await admission_.judge_redirects(outcome.redirects);
}

// Its status, and the files that it left.
awaitable<void> SnapshotJob::take_files(const hooks::Hook& hook, archive::ResultView& result,
                                        const hooks::HookOutcome& outcome) {
  auto left = co_await files_.left_by(result);
  auto& files = left.files;
  base::test_point("after_scan");
  check();
  AttemptFiles::Names running;
  for (const auto& one : hooks_.running())
    running.emplace_back(one.run->hook().plugin->name, one.run->hook().name.name);
  const std::string meddled = co_await files_.find_meddling(hook, std::move(running), crawl_hooks_);
  check();
  result.status = hooks::to_string(outcome.status);
  result.output = outcome.output;
  result.error = outcome.error;
  if (!meddled.empty()) {
    result.status = "failed";
    result.error += (result.error.empty() ? "" : "; ") + ("it wrote into directories of other plugins: " + meddled);
  }
  if (const auto lost = AttemptFiles::describe_lost(left.lost); !lost.empty())
    result.error += (result.error.empty() ? "" : "; ") + lost;
  if (!left.refusal.empty()) {
    result.status = "failed";
    result.output.clear();
    result.error += (result.error.empty() ? "" : "; ") + left.refusal;
    co_return;
  }
  std::uint64_t bytes = 0;
  for (const auto& file : files)
    bytes += file.size;
  if (claim_.max_snapshot_bytes > 0 && left_bytes_ + bytes > claim_.max_snapshot_bytes) {
    // None of it: half a page that looks like a page would be worse.
    co_await files_.drop(files);
    result.status = "failed";
    result.output.clear();
    result.error = "with its " + base::format_size(bytes) + " the snapshot would hold more than max_snapshot_bytes (" +
                   base::format_size(claim_.max_snapshot_bytes) + "); they are not kept";
    co_return;
  }
  left_bytes_ += bytes;
  result.files = std::move(files);
}

// A hook may say this of the page's own host, and of hosts to which the page redirects. The page comes back when its
// host may be asked again. Another host is not slowed down on a hook's word: that would stop its pages in all crawls.
awaitable<std::optional<Failure>> SnapshotJob::slow_down(const hooks::HookOutcome& outcome,
                                                         archive::ResultView& result) {
  std::optional<Failure> slower;
  const bool failed = result.status == "failed";
  std::set<std::string> ignored;
  for (const auto& limit : outcome.rate_limits) {
    const auto site = base::try_parse_url("http://" + (limit.host.empty() ? claim_.host : limit.host) + "/");
    if (!site || !hosts_.contains(site->host)) {
      ignored.insert(limit.host);
      continue;
    }
    std::optional<std::chrono::milliseconds> wait;
    if (limit.retry_after_seconds)
      wait = std::chrono::milliseconds(
          static_cast<std::int64_t>(std::clamp(*limit.retry_after_seconds, 0.0, 86400.0) * 1000));
    const auto left_alone = co_await context_.retry.repeat([&](pg::Connection& connection) {
      return store::host_rate_limited(connection, site->host, limit.status, wait, context_.hostname);
    });
    {
      const auto about = log_about(result.plugin, result.hook);
      spdlog::info("{} asked to be left alone for {} s (status {})", site->host, limit.retry_after_seconds.value_or(0),
                   limit.status);
    }
    if (site->host != claim_.host || !failed || claim_.attempts > context_.options.rate_limit_retries) continue;
    slower = Failure{Failure::Kind::later,
                     fmt::format("the site asked us to slow down (status {}), try {} of {}", limit.status,
                                 claim_.attempts, context_.options.rate_limit_retries + 1)};
    slower->delay = left_alone;
    slower->spend = true;
  }
  if (!ignored.empty()) {
    std::string hosts = *ignored.begin();
    if (ignored.size() > 1) hosts += fmt::format(" and {} more", ignored.size() - 1);
    const auto about = log_about(result.plugin, result.hook);
    spdlog::warn("{}: {}/{} reports a rate limit of {}, to which the page does not lead: ignored", claim_.url,
                 result.plugin, result.hook, hosts);
    result.error += (result.error.empty() ? "" : "; ") +
                    ("the rate limit of " + hosts + " is ignored: the page does not lead there");
  }
  co_return slower;
}

// Where the page leads, as its hooks say.
void SnapshotJob::take_hosts(const hooks::HookOutcome& outcome) {
  for (const auto& location : outcome.redirects) {
    const auto url = base::try_parse_url(location);
    if (url && hosts_.size() < kHosts) hosts_.insert(url->host);
  }
}

void SnapshotJob::take_discovered(const hooks::HookOutcome& outcome) {
  for (const auto& record : outcome.discovered) {
    const auto url = base::try_parse_url(record.url);
    if (!url) continue;
    if (!context_.options.allow_private && base::is_private_host(url->host)) continue;
    discovered_.push_back({url->text, record.title, record.tags});
    view_.discovered.push_back(url->text);
  }
  for (const auto& tag : outcome.tags) {
    if (std::find(view_.tags.begin(), view_.tags.end(), tag) != view_.tags.end()) continue;
    view_.tags.push_back(tag);
  }
}

void SnapshotJob::list_hooks(std::vector<store::ActiveHook>& hooks) const {
  for (const auto& [run, number] : hooks_.running()) {
    const auto& row = rows_[number];
    store::ActiveHook hook{lease(), row.plugin, row.hook, row.background, run->pid(), row.started, run->timeout(), {}};
    if (const auto stillness = run->stillness(); stillness.limit.count() > 0) hook.still_since = stillness.since;
    hooks.push_back(std::move(hook));
  }
}

Verdict SnapshotJob::judge() const {
  auto verdict = judge_hooks(ends_, unreachable_);
  // It may be that no hook could be blamed for it.
  if (const auto& spoiled = files_.spoiled(); verdict.outcome != "failed" && !spoiled.empty()) {
    verdict.outcome = "partial";
    verdict.reason =
        "another hook changed the files of " + base::join({spoiled.begin(), spoiled.end()}, ", ") + " afterwards";
  }
  return verdict;
}

awaitable<void> SnapshotJob::publish() {
  const auto verdict = judge();
  view_.outcome = verdict.outcome;
  if (verdict.response) {
    view_.http_status = page_.http_status = verdict.response->status;
    view_.mime = page_.mime = verdict.response->mime;
  }
  view_.ended_at = base::utc_timestamp();
  // What fails for want of room on this worker's disk is not the page's failure: elsewhere, or later, it will do.
  if (view_.outcome != "succeeded") {
    std::error_code error;
    const auto space = std::filesystem::space(files_.directory(), error);
    if (!error && space.available < context_.options.minimum_free_bytes / 8)
      throw base::Error(base::ErrorClass::cannot_create,
                        "hooks failed with " + base::format_size(space.available) + " free in work_dir");
  }
  const auto url = base::parse_url(claim_.url);
  const auto directory = archive::snapshot_directory(claim_.created_at, base::host_directory(url), lease().snapshot_id);
  const auto published = co_await on_thread(context_.files, [&] {
    context_.archive_root.check();
    files_.check();
    files_.check_weight();
    take_from_hooks(context_.sandbox, files_.directory());
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
  if (context_.options.share_bodies)
    co_await on_thread(context_.files, [&] { archive::share_bodies(context_.archive_root, published.directory); });
  page_.outcome = view_.outcome;
  if (page_.outcome == "failed")
    page_.reason = verdict.reason;
  else if (!verdict.reason.empty())
    page_.reason += (page_.reason.empty() ? "" : "; ") + verdict.reason;
  if (route_ && route_->traffic().over_limit)
    page_.reason += (page_.reason.empty() ? "" : "; ") +
                    ("its hooks were cut off after " + base::format_size(claim_.max_snapshot_bytes) +
                     " from the network (max_snapshot_bytes)");
  if (const auto lost = AttemptFiles::describe_lost(published.lost); !lost.empty())
    page_.reason += (page_.reason.empty() ? "" : "; ") + lost;
  page_.directory = published_;
  page_.manifest = published.manifest_sha256;
  page_.bytes = published.bytes;
  page_.files = published.files;
  page_.title = view_.title;
  page_.tags = view_.tags;
  if (claim_.depth < claim_.max_depth) page_.links = discovered_;
}

// What its hooks asked for through the egress proxy.
void SnapshotJob::tell_traffic() const {
  if (!route_) return;
  const auto traffic = route_->traffic();
  base::count("holdfast_worker_egress_requests_total", {}, static_cast<double>(traffic.requests));
  base::count("holdfast_worker_egress_refused_total", {}, static_cast<double>(traffic.refused));
  base::count("holdfast_worker_egress_received_bytes_total", {}, static_cast<double>(traffic.bytes));
  const auto about = log_about();
  spdlog::debug("{}: {} requests to {} hosts, {}", claim_.url, traffic.requests, traffic.hosts.size(),
                base::format_size(traffic.bytes));
  if (traffic.refused > 0)
    spdlog::warn("{}: {} requests of its hooks were refused: {}", claim_.url, traffic.refused, traffic.first_refusal);
}

// Nothing of this snapshot runs afterwards.
awaitable<void> SnapshotJob::reap() {
  hooks_.interrupt(interrupted_.empty() ? std::chrono::milliseconds(0) : context_.options.kill_grace);
  for (const auto& [run, number] : hooks_.running()) {
    auto& row = rows_[number];
    try {
      const auto outcome = co_await run->finish();
      row.pid = run->pid();
      take_exit(row, outcome);
    } catch (const std::exception& error) {
      spdlog::debug("{}: nothing is known of the end of {}/{}: {}", claim_.url, row.plugin, row.hook, error.what());
    }
  }
  hooks_.clear();
  context_.running_hooks->changed();
}

// What the page and the rows have in common. A hook that ended with the job has failed; `why`: for its row.
void SnapshotJob::complete_rows(const std::string& why) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto& result = view_.results[i];
    auto& row = rows_[i];
    row.status = result.status.empty() ? "failed" : result.status;
    row.output = result.output;
    row.error = result.status.empty() ? "ended with its page: " + why : result.error;
    list_files(row, result);
  }
}

// Hands the page in. What the database refuses is handed in once more, as a failure and without anything that could be
// refused.
awaitable<SnapshotJob::Ending> SnapshotJob::hand_in(const std::optional<Failure>& failure) {
  std::optional<Failure> why = failure;
  for (bool again = false;; again = true) {
    store::Page page = why ? page_after(lease(), *why) : std::move(page_);
    if (why && why->kind == Failure::Kind::error && page.delay) page.delay = jittered(*page.delay);
    if (!again) {
      complete_rows(why ? why->reason : "");
      page.results = std::move(rows_);
    }
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
  const auto about = log_about();
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
