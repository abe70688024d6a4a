#include "services/worker/session/crawl_session.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/uuid.hpp"
#include "lib/process/sandbox.hpp"
#include "lib/store/call.hpp"
#include "services/worker/hook/binary_resolver.hpp"
#include "services/worker/hook/browser_watch.hpp"
#include "services/worker/hook/prepare_hook.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace holdfast::worker {

namespace {

constexpr std::size_t kSessionLogTail = 16384; // of each log of a crawl hook that failed
constexpr std::int64_t kSeeds = 1000;          // told to crawl hooks

// Hooks that clean up may fail without harm to the crawl.
bool may_fail(const hooks::Hook& hook) { return hook.name.name.find("kill_zombies") != std::string::npos; }

std::string title(const hooks::Hook& hook) { return "crawl hook " + hook.plugin->name + "/" + hook.name.name; }

// Thrown while it opens: it is being ended.
struct GivenUp {};

static_assert(may_become(SessionState::opening, SessionState::ready));
static_assert(!may_become(SessionState::draining, SessionState::ready));
static_assert(!may_become(SessionState::opening, SessionState::closed), "the database is told first");

} // namespace

CrawlSession::CrawlSession(SessionServices& context, const store::Claim& claim, std::unique_ptr<SessionPersona> persona,
                           Callbacks callbacks)
    : context_(context), callbacks_(std::move(callbacks)), crawl_id_(claim.lease.crawl_id), id_(base::new_uuid()),
      persona_(std::move(persona)), options_(context.options.hook_options),
      directory_(context, crawl_id_, id_, persona_ ? persona_->name() : ""), hook_context_(machine_context(context)),
      running_(context), changed_(context.executor, asio::steady_timer::time_point::max()), linger_(context.executor) {
  const auto& plugin_set = *context_.options.plugin_set;
  const auto of_crawl = hooks::crawl_options(plugin_set, claim.options);
  for (const auto& [key, value] : claim.options)
    if (!of_crawl.contains(key))
      spdlog::warn("crawl {} sets {}, which no plugin here lets a crawl set: hooks do not get it", crawl_id_, key);
  // Stronger than the machine's options, weaker than the crawl's.
  for (const auto& [key, value] : persona_ ? persona_->options() : hooks::Options())
    if (!of_crawl.contains(key)) options_[key] = set_options_[key] = value;
  for (const auto& [key, value] : of_crawl)
    options_[key] = value;
  const auto selected = hooks::selected_plugins(plugin_set, claim.plugins, options_);
  context_.binary_resolver.also(selected, options_);
  hooks_ = plugin_set.hooks_for(hooks::Event::crawl_setup, selected);
  last_hooks_ = plugin_set.hooks_for(hooks::Event::crawl_end, selected);
  directory_.set_hooks(has_hooks());
}

int CrawlSession::enter(std::function<void(const std::string&)> broken) {
  linger_.cancel();
  users_[++last_user_] = std::move(broken);
  return last_user_;
}

void CrawlSession::leave(int user) {
  users_.erase(user);
  rest();
}

awaitable<void> CrawlSession::opened() {
  const auto self = shared_from_this();
  while (state_ == SessionState::opening)
    co_await change();
  if (of_machine_) std::rethrow_exception(of_machine_);
  if (state_ != SessionState::ready) throw SessionFailed(reason_);
}

awaitable<void> CrawlSession::ended() {
  const auto self = shared_from_this();
  while (!gone_)
    co_await change();
}

void CrawlSession::finish_soon(const std::string& reason) {
  unneeded_ = reason;
  rest();
}

void CrawlSession::drain(const std::string& reason) {
  const bool was_ready = state_ == SessionState::ready;
  if (!become(SessionState::draining, reason)) return;
  if (was_ready) return spawn(wind_up(true));
  running_.interrupt_foreground(context_.options.kill_grace); // open() notices, and winds up
  running_.end_background(context_.options.kill_grace);
}

void CrawlSession::shut_down(ShutdownMode mode, const std::string& reason) {
  shutdown_ = std::max(shutdown_, mode);
  if (ending()) running_.end_background(context_.options.kill_grace);
  if (state_ == SessionState::opening || mode == ShutdownMode::immediate) drain(reason);
  if (mode == ShutdownMode::immediate) running_.kill();
}

// Changes the state; returns false if it is past that.
bool CrawlSession::become(SessionState state, const std::string& reason) {
  if (!may_become(state_, state)) return false;
  state_ = state;
  reason_ = reason;
  wake();
  return true;
}

void CrawlSession::require_opening() const {
  if (state_ != SessionState::opening) throw GivenUp{};
}

base::LogAbout CrawlSession::log_about(const hooks::Hook* hook) const {
  return base::LogAbout(
      {crawl_id_, "", 0, hook == nullptr ? "" : hook->plugin->name, hook == nullptr ? "" : hook->name.name});
}

// Runs work that keeps the session alive.
void CrawlSession::spawn(awaitable<void> work) {
  asio::co_spawn(context_.executor, std::move(work), [self = shared_from_this()](std::exception_ptr failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      const auto about = self->log_about();
      spdlog::error("the session of crawl {} failed: {}", self->crawl_id_, error.what());
    }
  });
}

void CrawlSession::wake() {
  changed_.cancel();
  callbacks_.changed();
}

awaitable<void> CrawlSession::change() { co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable)); }

// Called whenever the last user may have left.
void CrawlSession::rest() {
  if (!idle()) return;
  const auto linger = unneeded_.empty() ? context_.options.session_linger : std::chrono::milliseconds(0);
  if (linger.count() == 0) return drain(unneeded_.empty() ? "its last snapshot here is done" : unneeded_);
  linger_.expires_after(linger);
  linger_.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
    const auto session = self.lock();
    if (!error && session && session->idle()) session->drain("it had nothing to do for a while");
  });
}

awaitable<void> CrawlSession::open() {
  try {
    co_await directory_.make();
    if (persona_) co_await persona_->make(directory_);
    if (context_.sandbox.level != process::SandboxLevel::none) signals_ = process::SignalScope::make();
    network_ = context_.networks.enter();
    route_ = context_.networks.route(network_, {}, 0);
    if (has_hooks()) co_await run_first_hooks();
  } catch (const GivenUp&) {
  } catch (const std::exception& error) {
    const auto* own = dynamic_cast<const base::Error*>(&error);
    if (own != nullptr && own->error_class() == base::ErrorClass::cannot_create) of_machine_ = std::current_exception();
    if (become(SessionState::failed, error.what())) {
      const auto about = log_about();
      spdlog::warn("crawl {} could not be opened here: {}", crawl_id_, error.what());
      context_.browser.suspect();
    }
  }
  if (!become(SessionState::ready, "")) co_return co_await wind_up(false);
  for (const auto& one : running_.running())
    spawn(watch(one.run));
  rest();
}

awaitable<void> CrawlSession::run_first_hooks() {
  spawn(directory_.keep_heartbeat());
  co_await describe_crawl();
  co_await context_.retry.repeat("session_open", context_.worker_id, id_, crawl_id_, directory_.path().native());
  {
    const auto about = log_about();
    spdlog::info("opening crawl {} here: {} crawl hooks", crawl_id_, hooks_.size() + last_hooks_.size());
  }
  for (const hooks::Hook* hook : hooks_) {
    require_opening();
    co_await run_hook(*hook);
  }
  require_opening();
  co_await report(SessionState::ready);
}

awaitable<void> CrawlSession::describe_crawl() {
  const auto rows = co_await context_.retry.repeat("crawl_seeds", crawl_id_, kSeeds);
  const auto seeds = rows.map([](const pg::Row& row) { return row.value().as<std::string>(); });
  hook_context_.crawl_id = crawl_id_;
  hook_context_.url = seeds.empty() ? "" : seeds.front();
  hook_context_.source_url = base::join(seeds, "\n");
  directory_.describe(hook_context_);
}

void CrawlSession::note(const hooks::Hook& hook, nlohmann::json columns) {
  columns["plugin"] = hook.plugin->name;
  columns["hook_name"] = hook.name.name;
  columns["background"] = hook.name.background;
  for (const auto& one : running_.running())
    if (one.run->hook().path == hook.path)
      columns["started_with"] = nlohmann::json::parse(*one.run->started_with(*context_.options.plugin_set));
  notes_[hook.plugin->name + "/" + hook.name.name] = store::json_text(columns);
}

void CrawlSession::note(const hooks::Hook& hook, const hooks::HookOutcome& outcome) {
  count_hook(hook.plugin->name, outcome);
  auto columns = result_columns(outcome);
  columns["status"] = hooks::to_string(outcome.status);
  // Copied because its directory is deleted with the session.
  std::string log =
      base::tail_of(outcome.stdout_log, kSessionLogTail) + base::tail_of(outcome.stderr_log, kSessionLogTail);
  std::erase(log, '\0');
  if (!log.empty()) columns["log"] = std::move(log);
  note(hook, std::move(columns));
  for (const auto& record : outcome.machine_records)
    for (const auto& [key, value] : record.config)
      options_[key] = set_options_[key] = value;
}

awaitable<void> CrawlSession::run_hook(const hooks::Hook& hook) {
  const auto check = [this, opening = state_ == SessionState::opening] {
    if (opening) require_opening();
  };
  auto prepared = prepare_hook(context_, hook, options_, hook_context_);
  if (!prepared.missing.empty()) {
    note(hook, {{"status", "skipped"}, {"error", prepared.missing}});
    co_return;
  }
  confine(context_, directory_.sandbox(), prepared.command, {directory_.path(), directory_.attempts()},
          directory_.temporary());
  prepared.command.sandbox.signals = signals_;
  if (route_) route_->apply(prepared.command);
  const auto limit = prepared.limits.timeout + kReadiness;
  const auto run = running_.start(hook, std::move(prepared), directory_.path());
  if (hook.name.background) {
    note(hook, {{"status", "started"}, {"pid", run->pid()}});
    if (co_await run->ready(limit)) co_return;
    check();
    run->end(context_.options.kill_grace, false);
  }
  const auto outcome = co_await run->finish();
  note(hook, outcome);
  if (!hook.name.background) running_.forget(*run);
  check();
  if (!outcome.binaries.empty()) {
    co_await context_.binary_resolver.provide(outcome.binaries, hook.plugin->name);
    check();
  }
  if (hook.name.background && outcome.status != hooks::Status::failed)
    throw SessionFailed(title(hook) + " was not ready after " + base::format_duration(limit));
  if (outcome.status == hooks::Status::failed && !may_fail(hook))
    throw SessionFailed(title(hook) + " failed: " + outcome.error);
}

// A daemon that dies takes the session with it: the snapshots that use it are released, the next one opens it again.
awaitable<void> CrawlSession::watch(std::shared_ptr<hooks::HookRun> run) {
  const auto outcome = co_await run->finish();
  note(run->hook(), outcome);
  const auto reason = title(run->hook()) + " has ended: " + outcome.error;
  if (outcome.status != hooks::Status::failed || !become(SessionState::failed, reason)) co_return;
  {
    const auto about = log_about();
    spdlog::warn("the session of crawl {} is broken: {}", crawl_id_, reason);
  }
  const auto users = users_;
  for (const auto& [number, broken] : users)
    if (users_.contains(number)) broken(reason);
  co_await wind_up(true);
}

// Ends its hooks, reports that, and removes the directories.
awaitable<void> CrawlSession::wind_up(bool was_ready) {
  linger_.cancel();
  if (state_ == SessionState::draining) {
    co_await report(state_);
    if (was_ready && shutdown_ == ShutdownMode::smart) co_await run_last_hooks();
  }
  const bool hurried = shutdown_ != ShutdownMode::smart || state_ == SessionState::failed;
  running_.end_background(hurried ? context_.options.kill_grace : std::chrono::milliseconds::max());
  if (shutdown_ == ShutdownMode::immediate) running_.kill();
  const auto running = running_.running();
  for (const auto& one : running) {
    try {
      note(one.run->hook(), co_await one.run->finish());
    } catch (const std::exception& error) {
      note(one.run->hook(), {{"status", "failed"}, {"error", error.what()}});
    }
  }
  become(SessionState::closed, reason_); // unless it has failed
  co_await report(state_);
  if (has_hooks() && was_ready) {
    const auto about = log_about();
    spdlog::info("closed crawl {} here: {}", crawl_id_, reason_);
  }
  route_.reset();
  network_.reset();
  co_await directory_.remove();
  // Set last: a caller that waits for the end looks for the session again at once, and must not find it.
  gone_ = true;
  callbacks_.ended(*this);
  wake();
}

awaitable<void> CrawlSession::run_last_hooks() {
  for (const hooks::Hook* hook : last_hooks_) {
    try {
      co_await run_hook(*hook);
    } catch (const GivenUp&) {
      co_return;
    } catch (const std::exception& error) {
      const auto about = log_about(hook);
      spdlog::warn("crawl {}: {}", crawl_id_, error.what());
    }
  }
}

// Reports the state to the database. If that fails, the database closes the session when this worker lapses.
awaitable<void> CrawlSession::report(SessionState state) {
  if (!has_hooks() || shutdown_ == ShutdownMode::immediate) co_return;
  std::vector<std::string> hooks;
  for (const auto& [name, columns] : notes_)
    hooks.push_back(columns);
  const std::string status(to_string(state)), text = "[" + base::join(hooks, ",") + "]";
  const auto reason = reason_.empty() ? std::nullopt : std::optional(reason_);
  try {
    co_await context_.retry.repeat("session_set", id_, status, reason, text);
  } catch (const base::Error& error) {
    const auto about = log_about();
    spdlog::debug("session {} is not recorded as {}: {}", id_, status, error.what());
  }
}

} // namespace holdfast::worker
