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
#include "lib/robots/fetch.hpp"
#include "lib/robots/rules.hpp"
#include "lib/store/host.hpp"
#include "services/worker/on_thread.hpp"
#include "services/worker/prepare_hook.hpp"

#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <optional>
#include <random>
#include <set>

namespace holdfast::worker {

namespace {

constexpr int kAttempts = 5; // after as many that failed for reasons of their own, the snapshot is sealed as failed
constexpr std::size_t kFilesInRow = 1000;           // files named in a result's row; the manifest names all
constexpr std::size_t kLogTail = 4096;              // of a failed hook's stderr, for the page
constexpr std::chrono::seconds kReadiness{30};      // beyond a background hook's timeout, to say that it is ready
constexpr std::chrono::milliseconds kNoPlace{2000}; // for a node with room for its crawl to take it
constexpr std::chrono::milliseconds kRobotsElsewhere{1000}; // while another node fetches it
constexpr std::size_t kRedirects = 20;                      // of one page, that are judged
constexpr std::chrono::hours kRobotsKeep{24};               // as RFC 9309 recommends
constexpr std::chrono::minutes kRobotsKeepTrouble{1};
constexpr std::chrono::milliseconds kNodeTrouble{60000}; // before work is tried again that failed for want of disk

// Work that failed together must not come back together.
std::chrono::milliseconds jittered(std::chrono::milliseconds delay) {
  static std::mt19937 generator{std::random_device{}()};
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::int64_t>(delay.count() * 3 / 4, delay.count() * 5 / 4)(generator));
}

// A few, for people.
std::string shortened(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  auto text =
      base::join({names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown))}, ", ");
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

// The files of a result as its row has them: paths below the plugin's directory.
nlohmann::json file_rows(const archive::ResultView& card) {
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < std::min(card.files.size(), kFilesInRow); ++i) {
    const auto& file = card.files[i];
    rows.push_back({{"path", file.path.substr(card.plugin.size() + 1)},
                    {"type", file.type},
                    {"size", file.size},
                    {"sha256", file.sha256}});
  }
  return rows;
}

} // namespace

base::LogAbout SnapshotJob::log_about(const std::string& plugin, const std::string& hook) const {
  return base::LogAbout({lease().crawl_id, lease().snapshot_id, lease().fence, plugin, hook});
}

SnapshotJob::SnapshotJob(JobContext& context, store::Claim claim) : context_(context), claim_(std::move(claim)) {
  options_ = context_.options.hook_options;
  for (const auto& [key, value] : claim_.options)
    options_[key] = value;
  const auto scratch = context_.options.work_dir / "attempts" / claim_.lease.snapshot_id;
  attempt_ = scratch / ("a" + std::to_string(claim_.lease.fence));
  hook_context_.snapshot_id = claim_.lease.snapshot_id;
  hook_context_.crawl_id = claim_.lease.crawl_id;
  hook_context_.url = claim_.url;
  hook_context_.source_url = claim_.url;
  hook_context_.depth = claim_.depth;
  hook_context_.data_dir = context_.options.data_dir;
  hook_context_.crawl_dir = context_.options.work_dir / "crawls" / claim_.lease.crawl_id;
  hook_context_.snapshot_dir = attempt_;
  hook_context_.temporary_dir = context_.options.temporary_dir;
  hook_context_.library_dir = context_.options.data_dir / "lib";
  hook_context_.personas_dir = context_.options.data_dir / "personas";
  hook_context_.persona = claim_.persona;
  hook_context_.last_on_path = context_.options.libexec;
  hook_context_.snapshot_title = claim_.title;
  hook_context_.snapshot_tags = base::join(claim_.tags, ",");
  view_.id = claim_.lease.snapshot_id;
  view_.crawl_id = claim_.lease.crawl_id;
  view_.url = claim_.url;
  view_.title = claim_.title;
  view_.depth = claim_.depth;
  view_.fence = claim_.lease.fence;
  view_.tags = claim_.tags;
  view_.node = context_.hostname;
}

SnapshotJob::~SnapshotJob() = default;

void SnapshotJob::interrupt(const std::string& reason) {
  if (!interrupted_.empty() || !lost_.empty()) return;
  interrupted_ = reason;
  abandon_ = true;
  end_hooks();
}

void SnapshotJob::end_hooks() {
  if (foreground_ != nullptr) foreground_->end(context_.options.kill_grace, true);
  for (auto& hook : background_)
    if (hook.run) hook.run->end(context_.options.kill_grace, true);
}

void SnapshotJob::lose(const std::string& reason) {
  if (!lost_.empty()) return;
  lost_ = reason;
  abandon_ = true;
  if (foreground_ != nullptr) foreground_->kill();
  for (auto& hook : background_)
    if (hook.run) hook.run->kill();
}

// What is not the directory that we made must not be tidied up, nor published.
void SnapshotJob::check_directory() const {
  struct stat status {};
  if (lstat(attempt_.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
      attempt_inode_ == std::pair<std::uint64_t, std::uint64_t>(status.st_dev, status.st_ino)) {
    if ((status.st_mode & 0700) != 0700) fchmodat(AT_FDCWD, attempt_.c_str(), 0700, AT_SYMLINK_NOFOLLOW);
    return;
  }
  throw base::Error(base::ErrorClass::refused, "a hook has taken away the directory of its snapshot");
}

void SnapshotJob::check() const {
  if (!lost_.empty() || !interrupted_.empty() || !broken_.empty()) throw Stopped{};
}

awaitable<SnapshotJob::Ending> SnapshotJob::run() {
  // co_await is not allowed in a catch clause: what happened is noted there and dealt with below.
  bool sealed = false;
  std::string problem;
  base::ErrorClass problem_class = base::ErrorClass::bug;
  std::optional<Later> later;
  std::optional<Forbidden> forbidden;
  try {
    base::test_point("after_start");
    view_.started_at = base::utc_timestamp();
    check();
    co_await admit();
    if (sealing_.outcome.empty() && claim_.robots) co_await ask_robots();
    if (sealing_.outcome.empty()) {
      co_await join_session();
      co_await run_hooks();
      if (sealing_.outcome.empty()) co_await publish_and_seal();
    }
    sealed = true;
  } catch (const Stopped&) {
    problem = broken_;
  } catch (const Later& politely) {
    later = politely;
  } catch (const Forbidden& error) {
    forbidden = error;
  } catch (const SessionsFull&) {
    no_place_ = true;
  } catch (const base::Error& error) {
    if (error.error_class() == base::ErrorClass::lease_lost) lose(error.what());
    problem = error.what();
    problem_class = error.error_class();
  } catch (const std::exception& error) {
    problem = error.what();
  }

  if (!sealed) co_await reap();
  if (!sealed && lost_.empty()) {
    try {
      if (!interrupted_.empty()) {
        co_await put_back("interrupted", std::chrono::milliseconds(0), interrupted_, false);
      } else if (forbidden) {
        co_await give_up_results(forbidden->reason);
        co_await refuse(forbidden->reason);
        sealed = true;
      } else if (later) {
        {
          const auto about = log_about();
          spdlog::info("{} waits: {}", claim_.url, later->reason);
        }
        co_await put_back("released", later->delay, later->reason, later->spend);
      } else if (no_place_) {
        co_await put_back("handed_back", kNoPlace, "its node has as many crawls open as it may (sessions.max)", false);
      } else if (problem_class == base::ErrorClass::usage || problem_class == base::ErrorClass::configuration ||
                 problem_class == base::ErrorClass::refused || claim_.attempts >= kAttempts) {
        // Another try would end the same way.
        sealing_ = {};
        sealing_.outcome = "failed";
        sealing_.reason = problem;
        co_await give_up_results(problem);
        co_await seal();
        sealed = true;
      } else {
        // Trouble of this node (a full disk, a missing archive root) is not the page's fault.
        const bool node_trouble = problem_class == base::ErrorClass::cannot_create ||
                                  problem_class == base::ErrorClass::unavailable ||
                                  problem_class == base::ErrorClass::system;
        {
          const auto about = log_about();
          spdlog::warn("snapshot {} of {} is put back: {}", lease().snapshot_id, claim_.url, problem);
        }
        const auto delay =
            node_trouble ? kNodeTrouble : std::chrono::milliseconds(5000) * (1 << std::min(claim_.attempts, 6));
        co_await put_back("released", jittered(delay), problem, !node_trouble);
      }
    } catch (const base::Error& error) {
      if (lost_.empty()) lost_ = error.what();
    }
  }
  session_ = {};
  const bool lost = !sealed && !lost_.empty();
  if (lost) {
    const auto about = log_about();
    spdlog::warn("dropped {} (attempt a{}): {}", claim_.url, lease().fence, lost_);
  }
  co_await on_thread(context_.files, [&] {
    // What was published without being committed is nobody's: its name holds our fence, so it can only be ours. But
    // once we have asked for the seal, it may have been granted, and only the answer lost: then `holdfast verify`
    // decides.
    try {
      if (lost && !published_.empty() && !seal_asked_) archive::remove_leftover(context_.archive_root, published_);
    } catch (const base::Error& error) {
      const auto about = log_about();
      spdlog::warn("left behind: {}", error.what());
    }
    remove_scratch();
  });
  co_return sealed ? Ending::sealed : lost ? Ending::lost : Ending::released;
}

// The URL may have been private all along (a name that resolves to 127.0.0.1), so it is asked where it leads.
awaitable<void> SnapshotJob::admit() {
  if (context_.options.allow_private) co_return;
  std::string refusal;
  try {
    co_await on_thread(context_.resolver, [&] { base::require_public_host(claim_.host); });
  } catch (const base::Error& error) {
    if (error.error_class() != base::ErrorClass::refused) throw;
    refusal = error.what();
    if (!error.hint().empty()) refusal += " (" + error.hint() + ")";
  }
  check();
  if (refusal.empty()) co_return;
  co_await refuse(refusal);
}

// Before anything of the page is asked for. The answer is shared by all nodes; asking for it is a request to the site
// like any other, made within its limits: a page of a site with a delay goes back into the queue, to be claimed once
// the delay is over.
awaitable<void> SnapshotJob::ask_robots() {
  const auto url = base::parse_url(claim_.url);
  const std::string rule = co_await robots_rule_against(url);
  if (!rule.empty()) co_await refuse("the site's robots.txt forbids it (Disallow: " + rule + ")");
}

// A redirect is followed by the hook that meets it, so its target is judged when that hook has ended: no later hook
// asks for it, and nothing of it is kept.
awaitable<void> SnapshotJob::judge_redirects(const std::vector<std::string>& urls) {
  if (context_.options.allow_private && !claim_.robots) co_return;
  for (const auto& text : urls) {
    const auto url = base::try_parse_url(text);
    if (!url || url->text == claim_.url || judged_.contains(url->text)) continue;
    if (judged_.size() >= kRedirects)
      throw Forbidden{"it redirects to more URLs than are judged (" + std::to_string(kRedirects) + ")"};
    std::string where;
    try {
      if (!context_.options.allow_private)
        where = co_await on_thread(context_.resolver, [&] { return base::private_address_of(url->host); });
    } catch (const base::Error&) { // a name that nobody knows leads nowhere
    }
    check();
    if (!where.empty()) throw Forbidden{"it redirects to " + url->text + ", and " + where};
    std::string rule; // not by "?:", within which g++ 12 destroys what is awaited twice
    if (claim_.robots) rule = co_await robots_rule_against(*url);
    if (!rule.empty())
      throw Forbidden{"it redirects to " + url->text +
                      ", which the robots.txt of that site forbids (Disallow: " + rule + ")"};
    judged_.insert(url->text);
  }
}

// The rule of its site's robots.txt that forbids a URL, or nothing.
awaitable<std::string> SnapshotJob::robots_rule_against(const base::Url& url) {
  const std::string origin = robots::origin_of(url);
  const bool own = origin == robots::origin_of(base::parse_url(claim_.url)); // whose delays its claim has kept
  auto known = co_await context_.database.repeat(
      [&](pg::Connection& connection) { return store::robots_get(connection, context_.node_id, lease(), origin); });
  if (known.fetch) {
    robots::FetchOptions options;
    if (const auto agent = options_.find("USER_AGENT"); agent != options_.end()) options.user_agent = agent->second;
    if (const auto check = options_.find("CHECK_SSL_VALIDITY"); check != options_.end())
      options.check_certificates = !(check->second == "false" || check->second == "False" || check->second == "0");
    options.allow_private = context_.options.allow_private;
    const auto fetched =
        co_await on_thread(context_.resolver, [&] { return robots::fetch(origin, options, abandon_); });
    check();
    store::RobotsAnswer answer;
    answer.status = fetched.status;
    answer.rules = fetched.rules;
    answer.error = fetched.error;
    answer.keep = fetched.error.empty() ? std::chrono::milliseconds(kRobotsKeep) : kRobotsKeepTrouble;
    if (const auto delay = robots::parse(fetched.rules).delay)
      answer.delay = std::min(*delay, context_.options.robots_delay_max);
    const bool delayed = co_await context_.database.repeat([&](pg::Connection& connection) {
      return store::robots_put(connection, context_.node_id, origin, url.host, answer);
    });
    if (fetched.status == 429 || fetched.status == 503)
      co_await context_.database.repeat([&](pg::Connection& connection) {
        store::host_rate_limited(connection, url.host, fetched.status, fetched.retry_after, context_.hostname);
      });
    check();
    {
      const auto about = log_about();
      spdlog::info("{}/robots.txt: {}", origin,
                   fetched.error.empty() ? "status " + std::to_string(fetched.status) : fetched.error);
    }
    if (own && delayed && fetched.error.empty())
      throw Later{std::chrono::milliseconds(0), "robots.txt was asked for first", false};
    known.state = fetched.error.empty() ? "known" : "unreachable";
    known.rules = fetched.rules;
    known.error = fetched.error;
  }
  if (own && known.too_early) throw Later{std::chrono::milliseconds(0), "robots.txt asks for a delay", false};
  if (known.state == "wanted") throw Later{kRobotsElsewhere, origin + "/robots.txt is just being fetched", false};
  if (known.state == "unreachable")
    throw base::Error(base::ErrorClass::temporary, origin + "/robots.txt cannot be read: " + known.error);
  const auto rest = url.text.find('/', url.text.find("://") + 3);
  co_return robots::forbidding_rule(robots::parse(known.rules), rest == std::string::npos ? "/" : url.text.substr(rest))
      .value_or("");
}

// Sealed without files.
awaitable<void> SnapshotJob::refuse(std::string reason) {
  sealing_ = {};
  sealing_.outcome = "refused";
  sealing_.reason = std::move(reason);
  co_await seal();
}

// From here on the crawl's hooks run on this node, and ours may use what they provide.
awaitable<void> SnapshotJob::join_session() {
  session_ = co_await context_.sessions->join(claim_, [this](const std::string& reason) {
    if (!broken_.empty()) return;
    broken_ = reason;
    end_hooks();
  });
  check();
  hook_context_.crawl_dir = session_.directory();
  hook_context_.personas_dir = session_.personas();
  for (const auto& [key, value] : session_.options())
    options_[key] = value;
}

awaitable<void> SnapshotJob::run_hooks() {
  const auto& catalog = *context_.options.catalog;
  auto selected = hooks::selected_plugins(catalog, base::join(claim_.plugins, ","), options_);
  if (!claim_.archived.empty()) {
    const auto missing = hooks::missing_plugins(catalog, selected, claim_.archived);
    // Where it was added more plugins were wanted than this node has. Nothing to be done here is no failure of the
    // page.
    if (missing.empty()) co_return co_await refuse("all that this node can run of it is archived already");
    std::vector<std::string> left_out;
    for (const hooks::Hook* hook : catalog.hooks_for(hooks::Event::snapshot, selected))
      if (const auto& name = hook->plugin->name; std::find(missing.begin(), missing.end(), name) == missing.end() &&
                                                 std::find(left_out.begin(), left_out.end(), name) == left_out.end())
        left_out.push_back(name);
    if (!left_out.empty()) sealing_.reason = "only what was missing; archived before: " + base::join(left_out, ", ");
    selected = missing;
  }
  co_await on_thread(context_.files, [this] {
    std::error_code error;
    std::filesystem::create_directories(attempt_, error);
    if (error)
      throw base::Error(base::ErrorClass::cannot_create, "cannot create " + attempt_.string() + ": " + error.message(),
                        "check owner, permissions and free space of work_dir");
    struct stat status {};
    if (lstat(attempt_.c_str(), &status) == 0) attempt_inode_ = {status.st_dev, status.st_ino};
  });
  crawl_hooks_ = !catalog.hooks_for(hooks::Event::crawl_setup, selected).empty();
  const auto all = catalog.hooks_for(hooks::Event::snapshot, selected);
  if (all.empty())
    throw base::Error(base::ErrorClass::configuration, "no plugin with a hook for snapshots is enabled on this node",
                      "set plugins.path, or name plugins that exist: holdfast config");
  for (const hooks::Hook* hook : all) {
    check();
    co_await run_hook(*hook);
  }
  check();
  co_await end_background();
  check();
}

awaitable<void> SnapshotJob::run_hook(const hooks::Hook& hook) {
  auto prepared = prepare_hook(context_, hook, options_, hook_context_);
  if (!prepared.missing.empty()) {
    co_await skip_hook(hook, prepared.missing);
    co_return;
  }
  auto& limits = prepared.limits;
  if (claim_.max_snapshot_bytes > 0)
    limits.output_bytes =
        std::min(limits.output_bytes,
                 claim_.max_snapshot_bytes - std::min(left_bytes_, claim_.max_snapshot_bytes) + already_in(hook));

  RunningHook running;
  running.run = std::make_unique<hooks::HookRun>(context_.launcher, context_.executor, std::move(prepared.command),
                                                 hook, attempt_ / hook.plugin->name, limits);
  running.view = view_.results.size();
  archive::ResultView card;
  card.plugin = hook.plugin->name;
  card.hook = hook.name.name;
  card.title = hook.plugin->title.empty() ? hook.plugin->name : hook.plugin->title;
  view_.results.push_back(std::move(card));
  hooks::HookRun* run = running.run.get();
  run->start();
  // From here on the run is where interrupt() and lose() find it.
  if (hook.name.background)
    background_.push_back(std::move(running));
  else
    foreground_ = run;

  unfinished_.emplace_back(hook.plugin->name, hook.name.name);
  const store::HookStart start{hook.plugin->name, hook.name.name,
                               run->pid(),        process::process_start_ticks(run->pid()),
                               limits.timeout,    hook.name.background};
  struct ForgetForeground {
    hooks::HookRun*& slot;
    ~ForgetForeground() { slot = nullptr; }
  };
  if (hook.name.background) {
    co_await record_start(start);
    co_await run->ready(limits.timeout + kReadiness);
    co_return;
  }
  std::exception_ptr failure;
  try {
    co_await record_start(start);
  } catch (...) {
    failure = std::current_exception();
    run->kill();
  }
  if (failure) {
    co_await run->finish();
    foreground_ = nullptr;
    std::rethrow_exception(failure);
  }
  const ForgetForeground forget{foreground_};
  co_await finish_hook(std::move(running));
}

awaitable<void> SnapshotJob::record_start(const store::HookStart& start) {
  const auto written = co_await context_.writes->starts.write(lease().crawl_id, {lease(), start});
  store::require_written(lease(), written);
}

awaitable<void> SnapshotJob::end_background() {
  // With no hook in the foreground the others get their time; else the last foreground hook was what they waited for.
  const bool only_background = std::all_of(view_.results.begin(), view_.results.end(), [](const auto& result) {
    return result.status.empty() || result.status == "skipped";
  });
  std::vector<std::unique_ptr<asio::steady_timer>> timers;
  for (auto& hook : background_) {
    hooks::HookRun* run = hook.run.get();
    const auto deadline = run->started_at() + run->timeout();
    const auto now = std::chrono::steady_clock::now();
    if (only_background && deadline > now) {
      timers.push_back(std::make_unique<asio::steady_timer>(context_.executor, deadline));
      timers.back()->async_wait([run, grace = context_.options.kill_grace](const boost::system::error_code& error) {
        if (!error) run->end(grace, false);
      });
    } else {
      // Each has its own remaining time to finish what it does.
      const auto remaining = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now);
      run->end(std::max(remaining, context_.options.kill_grace), false);
    }
  }
  for (std::size_t i = 0; i < background_.size(); ++i) {
    // The run stays in the list until it has ended: interrupt() and lose() must find it.
    co_await background_[i].run->finish();
  }
  timers.clear();
  auto ended = std::move(background_);
  background_.clear();
  for (auto& hook : ended)
    co_await finish_hook(std::move(hook));
}

awaitable<void> SnapshotJob::finish_hook(RunningHook running) {
  const hooks::HookOutcome outcome = co_await running.run->finish();
  base::test_point("after_hook");
  check();
  if (outcome.interrupted) throw Stopped{};
  const hooks::Hook& hook = running.run->hook();
  const auto directory = attempt_ / hook.plugin->name;
  const auto scanned = co_await on_thread(context_.files, [&] {
    check_directory();
    // A hook may have removed its own directory, or put something else there: then it left nothing.
    std::error_code gone;
    return std::filesystem::is_directory(std::filesystem::symlink_status(directory, gone))
               ? archive::scan_outputs(directory)
               : archive::ScanReport{};
  });
  base::test_point("after_scan");
  check();

  const std::string meddled = co_await find_meddling(hook);
  check();

  auto& card = view_.results[running.view];
  std::set<std::string> reported; // by another hook of the same plugin
  for (const auto& other : view_.results)
    if (&other != &card && other.plugin == card.plugin)
      for (const auto& file : other.files)
        reported.insert(file.path);
  std::uint64_t bytes = 0;
  for (auto file : scanned.files) {
    file.path = hook.plugin->name + "/" + file.path;
    if (reported.contains(file.path)) continue;
    bytes += file.size;
    card.files.push_back(std::move(file));
  }
  auto files = file_rows(card);
  card.status = hooks::to_string(outcome.status);
  card.output = outcome.output;
  card.error = outcome.error;
  if (!meddled.empty()) {
    card.status = "failed";
    card.error += (card.error.empty() ? "" : "; ") + ("it wrote into directories of other plugins: " + meddled);
  }
  if (claim_.max_snapshot_bytes > 0 && left_bytes_ + bytes > claim_.max_snapshot_bytes) {
    // None of it: half a page that looks like a page would be worse.
    co_await on_thread(context_.files, [&] {
      std::error_code ignored;
      for (const auto& file : card.files)
        std::filesystem::remove(attempt_ / file.path, ignored);
    });
    card.status = "failed";
    card.output.clear();
    card.error = "with its " + base::format_size(bytes) + " the snapshot would hold more than max_snapshot_bytes (" +
                 base::format_size(claim_.max_snapshot_bytes) + "); they are not kept";
    card.files.clear();
    files = nlohmann::json::array();
    bytes = 0;
  }
  left_bytes_ += bytes;
  card.wall_time = outcome.exit.wall_time;
  card.cpu_time = std::chrono::duration_cast<std::chrono::milliseconds>(outcome.exit.usage.user_time +
                                                                        outcome.exit.usage.system_time);
  card.peak_memory_bytes = outcome.exit.usage.peak_memory_bytes;
  if (card.status == "failed") {
    if (card.error.empty()) card.error = outcome.exit.describe();
    if (!outcome.stderr_log.empty()) {
      card.log = base::tail_of(outcome.stderr_log, kLogTail);
      card.stderr_path = outcome.stderr_log.lexically_relative(attempt_).string();
    }
  }
  if (hook.plugin->name == "title" && outcome.status == hooks::Status::succeeded && !outcome.output.empty())
    view_.title = outcome.output;
  take_discovered(outcome);
  std::optional<Later> slower;
  for (const auto& limit : outcome.rate_limits) {
    // A hook may say this of the page's own host, or of another that it asked.
    const auto site = base::try_parse_url("http://" + (limit.host.empty() ? claim_.host : limit.host) + "/");
    if (!site) continue;
    std::optional<std::chrono::milliseconds> wait;
    if (limit.retry_after_seconds)
      wait = std::chrono::milliseconds(
          static_cast<std::int64_t>(std::clamp(*limit.retry_after_seconds, 0.0, 86400.0) * 1000));
    const auto left_alone = co_await context_.database.repeat([&](pg::Connection& connection) {
      return store::host_rate_limited(connection, site->host, limit.status, wait, context_.hostname);
    });
    // The page itself could not be had. That is not its end: it comes back when the site may be asked again.
    if (site->host == claim_.host && card.status == "failed" && claim_.attempts <= context_.options.rate_limit_retries)
      slower = Later{left_alone,
                     fmt::format("the site asked us to slow down (status {}), try {} of {}", limit.status,
                                 claim_.attempts, context_.options.rate_limit_retries + 1),
                     true};
  }

  auto result = result_columns(outcome);
  result["error"] = card.error;
  result["output_files"] = std::move(files);
  result["output_bytes"] = bytes;
  if (!outcome.output_json.empty()) {
    auto json = nlohmann::json::parse(outcome.output_json, nullptr, false);
    if (!json.is_discarded()) result["output_json"] = std::move(json);
  }
  const std::string text = to_text(result);
  const auto written =
      co_await context_.writes->finishes.write(lease().crawl_id, {lease(), card.plugin, card.hook, card.status, text});
  store::require_written(lease(), written);
  std::erase(unfinished_, std::pair{card.plugin, card.hook});
  count_hook(card.plugin, outcome);
  {
    const auto about = log_about(card.plugin, card.hook);
    spdlog::debug("{} {}/{}: {} in {}", claim_.url, card.plugin, card.hook, card.status,
                  base::format_duration(card.wall_time));
  }
  if (slower) throw *slower;
  co_await judge_redirects(outcome.redirects);
}

// Hooks of one snapshot run as the same user and read what the others left, so nothing keeps one from writing there.
// What was changed in the directory of a plugin whose hooks have all ended is not what that plugin made: its rows are
// made to list what is there now, and to say who did it. Returns what `hook`, which has just ended, has changed, if it
// can only have been that one.
awaitable<std::string> SnapshotJob::find_meddling(const hooks::Hook& hook) {
  std::set<std::string> busy;
  std::string suspects;
  for (const auto& [plugin, name] : unfinished_) {
    busy.insert(plugin);
    suspects += (suspects.empty() ? "" : ", ") + plugin + "/" + name;
  }
  const bool certain = unfinished_.size() == 1 && !crawl_hooks_;
  if (!certain) suspects = "one of " + suspects + (crawl_hooks_ ? ", hooks of the crawl" : "");

  struct Change {
    std::vector<archive::OutputFile> files;
    archive::Trace trace;
  };
  std::map<std::string, Change> changes; // by plugin
  std::vector<std::string> done, planted;
  co_await on_thread(context_.files, [&] {
    left_[hook.plugin->name] = archive::trace_outputs(attempt_ / hook.plugin->name);
    for (const auto& [plugin, trace] : left_) {
      if (busy.contains(plugin) || archive::trace_outputs(attempt_ / plugin) == trace) continue;
      auto& change = changes[plugin];
      std::error_code gone;
      if (std::filesystem::is_directory(std::filesystem::symlink_status(attempt_ / plugin, gone)))
        change.files = archive::scan_outputs(attempt_ / plugin).files;
      change.trace = archive::trace_outputs(attempt_ / plugin);
    }
    // What lies ready for a plugin that has yet to run would pass for its own.
    std::error_code error;
    for (std::filesystem::directory_iterator entry(attempt_, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      const bool has_run = std::any_of(view_.results.begin(), view_.results.end(),
                                       [&](const auto& result) { return result.plugin == name; });
      if (!has_run && context_.options.catalog->find(name) != nullptr) planted.push_back(name);
    }
    for (const auto& name : planted)
      std::filesystem::remove_all(attempt_ / name, error);
  });
  for (const auto& name : planted)
    done.push_back(name + "/ (taken away)");

  for (auto& [plugin, change] : changes) {
    left_[plugin] = std::move(change.trace);
    std::map<std::string, archive::OutputFile> now;
    for (auto& file : change.files) {
      file.path = plugin + "/" + file.path;
      now.emplace(file.path, std::move(file));
    }
    std::vector<archive::ResultView*> cards;
    std::vector<std::string> what;
    for (auto& card : view_.results)
      if (card.plugin == plugin) cards.push_back(&card);
    for (auto* card : cards)
      for (auto file = card->files.begin(); file != card->files.end();) {
        const auto found = now.find(file->path);
        if (found == now.end() || found->second.sha256 != file->sha256)
          what.push_back(file->path + (found == now.end() ? " (gone)" : " (changed)"));
        if (found == now.end()) {
          file = card->files.erase(file);
          continue;
        }
        *file++ = found->second;
        now.erase(found);
      }
    for (const auto& [path, file] : now) {
      what.push_back(path + " (new)");
      cards.front()->files.push_back(file);
    }
    if (what.empty()) continue; // touched, but the same
    done.insert(done.end(), what.begin(), what.end());
    spoiled_.insert(plugin);
    for (auto* card : cards) {
      card->error += (card->error.empty() ? "" : "; ") +
                     ("after it had ended, its files were changed by " + suspects + ": " + shortened(what));
      std::uint64_t bytes = 0;
      for (const auto& file : card->files)
        bytes += file.size;
      const std::string text =
          to_text({{"error", card->error}, {"output_files", file_rows(*card)}, {"output_bytes", bytes}});
      co_await context_.database.repeat([&](pg::Connection& connection) {
        store::result_amend(connection, context_.node_id, lease(), card->plugin, card->hook, text);
      });
    }
  }
  if (!done.empty())
    spdlog::warn("{}: {} wrote into directories of other plugins: {}", claim_.url, suspects, shortened(done));
  co_return certain ? shortened(done) : "";
}

// A hook is measured by its plugin's directory, in which earlier hooks may have left something.
std::uint64_t SnapshotJob::already_in(const hooks::Hook& hook) const {
  std::uint64_t bytes = 0;
  for (const auto& result : view_.results)
    if (result.plugin == hook.plugin->name)
      for (const auto& file : result.files)
        bytes += file.size;
  return bytes;
}

awaitable<void> SnapshotJob::skip_hook(const hooks::Hook& hook, std::string reason) {
  archive::ResultView card;
  card.plugin = hook.plugin->name;
  card.hook = hook.name.name;
  card.title = hook.plugin->title.empty() ? hook.plugin->name : hook.plugin->title;
  card.status = "skipped";
  card.error = reason;
  view_.results.push_back(std::move(card));
  base::count("holdfast_node_hooks_total", {{"plugin", card.plugin}, {"outcome", card.status}});
  const std::string text = to_text({{"error", reason}});
  const store::HookStart start{hook.plugin->name,   hook.name.name, 0, 0, std::chrono::milliseconds(0),
                               hook.name.background};
  co_await context_.database.repeat([&](pg::Connection& connection) {
    store::result_start(connection, context_.node_id, lease(), start);
    store::result_finish(connection, context_.node_id, lease(), start.plugin, start.hook_name, "skipped", text);
  });
}

void SnapshotJob::take_discovered(const hooks::HookOutcome& outcome) {
  for (const auto& record : outcome.discovered) {
    const auto url = base::try_parse_url(record.url);
    if (!url) continue;
    if (!context_.options.allow_private && base::is_private_host(url->host)) continue;
    discovered_.push_back({url->text, url->host, record.title, record.tags});
    view_.discovered.push_back(url->text);
  }
  for (const auto& tag : outcome.tags) {
    if (std::find(view_.tags.begin(), view_.tags.end(), tag) != view_.tags.end()) continue;
    view_.tags.push_back(tag);
  }
  const auto about = log_about();
  for (const auto& limit : outcome.rate_limits)
    spdlog::info("{} asked to be left alone for {} s (status {})", limit.host, limit.retry_after_seconds.value_or(0),
                 limit.status);
}

std::string SnapshotJob::decide_outcome() const {
  std::size_t succeeded = 0, failed = 0;
  for (const auto& result : view_.results) {
    succeeded += result.status == "succeeded";
    failed += result.status == "failed";
  }
  if (succeeded == 0) return "failed";
  return failed == 0 && spoiled_.empty() ? "succeeded" : "partial";
}

awaitable<void> SnapshotJob::publish_and_seal() {
  view_.outcome = decide_outcome();
  view_.ended_at = base::utc_timestamp();
  // What fails for want of room on this node's disk is not the page's failure: elsewhere, or later, it will do.
  if (view_.outcome != "succeeded") {
    std::error_code error;
    const auto space = std::filesystem::space(attempt_, error);
    if (!error && space.available < context_.options.minimum_free_bytes / 8)
      throw base::Error(base::ErrorClass::cannot_create,
                        "hooks failed with " + base::format_size(space.available) + " free in work_dir");
  }
  const auto url = base::parse_url(claim_.url);
  const auto directory = archive::snapshot_directory(claim_.created_at, base::host_directory(url), lease().snapshot_id);
  const auto published = co_await on_thread(context_.files, [&] {
    context_.archive_root.check();
    check_directory();
    archive::remove_partials(context_.archive_root, directory, lease().fence);
    archive::remove_lost_attempts(context_.archive_root, directory, lease().fence);
    return archive::publish(context_.archive_root, attempt_, directory, view_);
  });
  published_ = published.directory.string();
  base::test_point("after_publish");
  check();
  if (context_.options.share_bodies)
    co_await on_thread(context_.files, [&] { archive::share_bodies(context_.archive_root, published.directory); });
  sealing_.outcome = view_.outcome;
  if (sealing_.outcome == "failed") sealing_.reason = "no hook succeeded";
  // It may be that no hook could be blamed for it.
  if (sealing_.outcome == "partial" && !spoiled_.empty())
    sealing_.reason +=
        (sealing_.reason.empty() ? "" : "; ") +
        ("another hook changed the files of " + base::join({spoiled_.begin(), spoiled_.end()}, ", ") + " afterwards");
  sealing_.directory = published_;
  sealing_.manifest_sha256 = published.manifest_sha256;
  sealing_.bytes = published.bytes;
  sealing_.files = published.files;
  sealing_.title = view_.title;
  sealing_.tags = view_.tags;
  if (claim_.depth < claim_.max_depth) sealing_.discovered = discovered_;
  co_await seal();
  const auto about = log_about();
  spdlog::info("sealed {} ({}, {} files, {})", claim_.url, sealing_.outcome, published.files,
               base::format_size(published.bytes));
}

awaitable<void> SnapshotJob::seal() {
  seal_asked_ = true;
  try {
    const auto answer = co_await context_.writes->seals.write(lease().crawl_id, {lease(), sealing_});
    sealed_crawl_ = store::sealed_or_throw(lease(), answer).crawl_sealed;
  } catch (const pg::DatabaseError& error) {
    // Refused, or sealed as cancelled because of a limit: that is the database's answer, and what was published is
    // nobody's. No answer, and no trust left to ask again, is another Error: then it may have been sealed.
    if (error.error_class() == base::ErrorClass::lease_lost) seal_asked_ = false;
    throw;
  }
}

// The hooks are gone; their rows must not say that they run, or the snapshot could never be sealed.
awaitable<void> SnapshotJob::give_up_results(const std::string& reason) {
  const std::string text = to_text({{"error", "its result was lost: " + reason}});
  for (const auto& [plugin, hook] : unfinished_)
    co_await context_.database.repeat([&](pg::Connection& connection) {
      // The start may be what went wrong.
      store::result_start(connection, context_.node_id, lease(),
                          {plugin, hook, 0, 0, std::chrono::milliseconds(0), false});
      store::result_finish(connection, context_.node_id, lease(), plugin, hook, "failed", text);
    });
  unfinished_.clear();
}

awaitable<void> SnapshotJob::put_back(const std::string& ending, std::chrono::milliseconds delay,
                                      const std::string& reason, bool spend) {
  co_await context_.database.repeat([&](pg::Connection& connection) {
    store::snapshot_release(connection, context_.node_id, lease(), ending, delay, reason, spend);
  });
}

// Nothing of this snapshot runs afterwards.
awaitable<void> SnapshotJob::reap() {
  for (auto& hook : background_)
    hook.run->end(interrupted_.empty() ? std::chrono::milliseconds(0) : context_.options.kill_grace, true);
  for (auto& hook : background_)
    co_await hook.run->finish();
  background_.clear();
}

void SnapshotJob::remove_scratch() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(attempt_, ignored);
  std::filesystem::remove(attempt_.parent_path(), ignored); // only if no other attempt is there
}

} // namespace holdfast::worker
