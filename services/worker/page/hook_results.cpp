#include "services/worker/page/hook_results.hpp"

#include "lib/base/file.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "services/worker/hook/prepare_hook.hpp"

#include <algorithm>

namespace holdfast::worker {

namespace {

constexpr std::size_t kFilesInRow = 1000; // files named in a result's row; the manifest names all
constexpr std::size_t kLogTail = 4096;    // of a failed hook's stderr, for the page

std::filesystem::path attempt_directory(const HookServices& context, const store::Lease& lease) {
  return context.options.work_dir / "attempts" / lease.crawl_id / lease.snapshot_id /
         ("a" + std::to_string(lease.fence));
}

// Copies the result on the page into a row.
void fill(store::HookResult& row, const archive::ResultView& result) {
  row.status = result.status;
  row.output = result.output;
  row.error = result.error;
  row.files.clear();
  row.bytes = 0;
  for (const auto& file : result.files) {
    row.bytes += file.size;
    if (row.files.size() < kFilesInRow)
      row.files.push_back({file.path.substr(result.plugin.size() + 1), file.type, file.size, file.sha256});
  }
}

// Fails the result; its files are not kept.
void refuse(archive::ResultView& result, const std::string& why) {
  result.status = "failed";
  result.output.clear();
  result.add_error(why);
}

} // namespace

HookResults::HookResults(HookServices& context, const store::Claim& claim, std::function<void()> check)
    : context_(context), claim_(claim), check_(std::move(check)),
      files_(context_, attempt_directory(context_, claim_.lease), view_.results, claim_.max_snapshot_bytes) {
  view_.id = claim_.lease.snapshot_id;
  view_.crawl_id = claim_.lease.crawl_id;
  view_.url = claim_.url;
  view_.title = claim_.title;
  view_.depth = claim_.depth;
  view_.fence = claim_.lease.fence;
  view_.tags = claim_.tags;
  view_.bookmarked_at = base::canonical_timestamp(claim_.bookmarked_at);
  view_.worker = context_.hostname;
}

std::size_t HookResults::add(const hooks::Hook& hook) {
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

void HookResults::skip(const hooks::Hook& hook, const std::string& reason) {
  auto& result = view_.results[add(hook)];
  result.status = "skipped";
  result.error = reason;
  ends_.back().status = hooks::Status::skipped;
  count_hook(result.plugin, hooks::Status::skipped);
  add_ended(rows_.size() - 1);
}

void HookResults::add_earlier(archive::ResultView result) {
  store::HookResult row;
  row.plugin = result.plugin;
  row.hook = result.hook;
  row.started = std::chrono::steady_clock::now();
  if (const auto* plugin = context_.options.plugin_set->find(result.plugin); result.title.empty())
    result.title = plugin == nullptr || plugin->title.empty() ? result.plugin : plugin->title;
  view_.results.push_back(std::move(result));
  rows_.push_back(std::move(row));
  ends_.push_back({hooks::parse_status(view_.results.back().status), false, {}});
}

void HookResults::add_ended(std::size_t number) {
  auto row = rows_[number];
  fill(row, view_.results[number]);
  row.files.clear();
  row.output_json.clear();
  ended_.push_back(std::make_shared<const store::HookResult>(std::move(row)));
}

void HookResults::take_end(const HookSet::Running& hook, const hooks::HookOutcome& outcome) {
  rows_[hook.number].pid = hook.run->pid();
  take_exit(rows_[hook.number], outcome);
}

awaitable<void> HookResults::take(const HookSet::Running& ended, const hooks::HookOutcome& outcome,
                                  AttemptFiles::Names running) {
  const hooks::Hook& hook = ended.run->hook();
  auto& result = view_.results[ended.number];
  co_await take_files(hook, result, outcome, std::move(running));
  result.wall_time = outcome.exit.wall_time;
  result.cpu_time = std::chrono::duration_cast<std::chrono::milliseconds>(outcome.exit.usage.user_time +
                                                                          outcome.exit.usage.system_time);
  result.peak_memory_bytes = outcome.exit.usage.peak_memory_bytes;
  if (result.status == "failed") {
    if (result.error.empty()) result.error = outcome.exit.describe();
    if (overdue_) result.add_error(kTimeOver);
    rows_[ended.number].started_with = ended.run->started_with(*context_.options.plugin_set);
    if (!outcome.stderr_log.empty()) {
      result.log = base::tail_of(outcome.stderr_log, kLogTail);
      result.stderr_path = outcome.stderr_log.lexically_relative(files_.directory()).string();
    }
  }
  rows_[ended.number].output_json = outcome.output_json;
  auto& end = ends_[ended.number];
  end.status = hooks::parse_status(result.status);
  end.response = outcome.response;
  end.error = result.status == "failed" ? result.error : "";
  base::merge_facts(view_.facts, outcome.facts);
  if (unreachable_.empty()) unreachable_ = outcome.unreachable;
  if (hook.plugin->name == "title" && outcome.status == hooks::Status::succeeded && !outcome.output.empty())
    view_.title = outcome.output;
  take_discovered(outcome);
  count_hook(result.plugin, outcome);
  add_ended(ended.number);
}

// Sets its status, and the files that it left.
awaitable<void> HookResults::take_files(const hooks::Hook& hook, archive::ResultView& result,
                                        const hooks::HookOutcome& outcome, AttemptFiles::Names running) {
  auto left = co_await files_.left_by(result);
  base::test_point("after_scan");
  check_();
  const std::string meddled = co_await files_.find_meddling(hook, left.survey, std::move(running), crawl_hooks_);
  check_();
  result.status = hooks::to_string(outcome.status);
  result.output = outcome.output;
  result.error = outcome.error;
  if (!meddled.empty()) {
    result.status = "failed";
    result.add_error("it wrote into directories of other plugins: " + meddled);
  }
  if (const auto lost = AttemptFiles::describe_lost(left.lost); !lost.empty()) result.add_error(lost);
  if (!left.refusal.empty()) co_return refuse(result, left.refusal);
  std::uint64_t bytes = 0;
  for (const auto& file : left.files)
    bytes += file.size;
  if (claim_.max_snapshot_bytes > 0 && left_bytes_ + bytes > claim_.max_snapshot_bytes) {
    // All files are dropped: half a page that looks like a page would be worse.
    co_await files_.drop(left.files);
    co_return refuse(result, "with its " + base::format_size(bytes) +
                                 " the snapshot would hold more than max_snapshot_bytes (" +
                                 base::format_size(claim_.max_snapshot_bytes) + "); they are not kept");
  }
  left_bytes_ += bytes;
  result.files = std::move(left.files);
}

void HookResults::take_discovered(const hooks::HookOutcome& outcome) {
  for (const auto& record : outcome.discovered) {
    const auto url = base::try_parse_url(record.url);
    if (!url) continue;
    if (!context_.options.allow_private && base::is_private_host(url->host)) continue;
    discovered_.push_back({url->text, record.title, record.tags, base::canonical_timestamp(record.bookmarked_at)});
    view_.discovered.push_back(url->text);
  }
  for (const auto& tag : outcome.tags)
    if (std::find(view_.tags.begin(), view_.tags.end(), tag) == view_.tags.end()) view_.tags.push_back(tag);
}

std::uint64_t HookResults::room_for(const std::string& plugin, std::uint64_t most) const {
  if (claim_.max_snapshot_bytes == 0) return most;
  const auto left = claim_.max_snapshot_bytes - std::min(left_bytes_, claim_.max_snapshot_bytes);
  return std::min(most, left + files_.bytes_of(plugin));
}

bool HookResults::only_background() const {
  return std::all_of(view_.results.begin(), view_.results.end(),
                     [](const auto& result) { return result.status.empty() || result.status == "skipped"; });
}

Verdict HookResults::judge() const {
  auto verdict = judge_hooks(ends_, unreachable_, overdue_);
  // Possibly no single hook is to blame.
  if (const auto& spoiled = files_.spoiled(); verdict.outcome != "failed" && !spoiled.empty()) {
    verdict.outcome = "partial";
    verdict.reason +=
        (verdict.reason.empty() ? "" : "; ") +
        ("another hook changed the files of " + base::join({spoiled.begin(), spoiled.end()}, ", ") + " afterwards");
  }
  return verdict;
}

std::vector<store::HookResult> HookResults::take_rows(const std::string& why) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    auto& result = view_.results[i];
    if (result.status.empty()) {
      result.status = "failed";
      result.error = "ended with its page: " + why;
    }
    fill(rows_[i], result);
  }
  return std::move(rows_);
}

} // namespace holdfast::worker
