#include "services/worker/crawl_session.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/persona.hpp"
#include "lib/store/json.hpp"
#include "lib/store/session.hpp"
#include "lib/store/view.hpp"
#include "services/worker/binary_resolver.hpp"
#include "services/worker/hook_network.hpp"
#include "services/worker/hook_sandbox.hpp"
#include "services/worker/hook_set.hpp"
#include "services/worker/on_thread.hpp"
#include "services/worker/prepare_hook.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kHeartbeat{5};
constexpr int kHeartbeatKills = 180;           // seconds without a heartbeat after which hooks take a session for dead
constexpr std::size_t kSessionLogTail = 16384; // of each log of a crawl hook that failed
constexpr std::int64_t kSeeds = 1000;          // told to crawl hooks

// What sweeps up behind others may fail without harm to the crawl.
bool may_fail(const hooks::Hook& hook) { return hook.name.name.find("kill_zombies") != std::string::npos; }

} // namespace

class CrawlSession : public std::enable_shared_from_this<CrawlSession> {
public:
  enum class State { opening, ready, leaving, over };

  CrawlSession(CrawlSessions& owner, JobContext& context, const store::Claim& claim)
      : owner_(owner), context_(context), crawl_id_(claim.lease.crawl_id), id_(base::new_uuid()),
        persona_(claim.persona.empty() ? "Default" : claim.persona), options_(context.options.hook_options),
        directory_(context.options.work_dir / "crawls" / id_), running_(context), changed_(context.executor, kForever),
        linger_(context.executor), pulse_(context.executor) {
    const auto persona = hooks::read_persona(context.options.data_dir / "personas", persona_);
    if (!persona)
      throw base::Error(base::ErrorClass::configuration, "there is no persona \"" + persona_ + "\" on this machine",
                        "holdfast persona set " + persona_ + ", on each machine that has a worker");
    // Stronger than the machine's options, weaker than the crawl's.
    const auto add_persona = [&](const hooks::Options& given) {
      for (const auto& [key, value] : given)
        if (!claim.options.contains(key)) options_[key] = set_options_[key] = value;
    };
    add_persona(persona->options);
    for (const auto& [key, value] : claim.options)
      options_[key] = value;
    const auto& catalog = *context_.options.catalog;
    const auto selected = hooks::selected_plugins(catalog, base::join(claim.plugins, ","), options_);
    context_.binary_resolver->also(selected, options_);
    hooks_ = catalog.hooks_for(hooks::Event::crawl_setup, selected);
    last_hooks_ = catalog.hooks_for(hooks::Event::crawl_end, selected);
    add_persona(hooks::persona_options(*persona, personas() / persona_));
  }

  const std::string& crawl_id() const { return crawl_id_; }
  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path personas() const {
    return hooks_.empty() ? context_.options.data_dir / "personas" : directory_ / ".persona";
  }
  // Hooks of a crawl keep things in the library for the hooks of its pages. In the sandbox the real one is read-only,
  // as its programs run in other crawls too: each session has one of its own, with links to what the real one has.
  std::filesystem::path library() const {
    return hooks_.empty() || !sandboxed() ? context_.options.data_dir / "lib" : directory_ / ".library";
  }
  bool sandboxed() const { return context_.sandbox.level != process::SandboxLevel::none; }
  std::filesystem::path temporary() const { return context_.options.work_dir / "tmp" / id_; }
  std::filesystem::path attempts() const { return context_.options.work_dir / "attempts" / crawl_id_; }
  const hooks::Options& set_options() const { return set_options_; }
  std::shared_ptr<HookNetwork> network() const { return network_; }
  bool has_hooks() const { return !hooks_.empty(); }
  bool idle() const { return state_ == State::ready && users_.empty(); }
  bool leaving() const { return state_ == State::leaving || state_ == State::over || !given_up_.empty(); }

  void start() { spawn(open()); }

  int enter(std::function<void(const std::string&)> broken) {
    linger_.cancel();
    users_[++last_user_] = std::move(broken);
    return last_user_;
  }
  void leave(int user) {
    users_.erase(user);
    rest();
  }

  awaitable<void> opened() {
    const auto self = shared_from_this();
    while (state_ == State::opening)
      co_await change();
    if (state_ != State::ready) throw SessionFailed(reason_);
  }
  awaitable<void> gone() {
    const auto self = shared_from_this();
    while (state_ != State::over)
      co_await change();
  }

  // It is not needed once its last user has left.
  void finish_soon(const std::string& reason) {
    unneeded_ = reason;
    rest();
  }
  void close(const std::string& reason) {
    if (state_ == State::ready)
      spawn(wind_up("closed", reason));
    else if (state_ == State::opening)
      give_up(reason);
  }
  void hurry(const std::string& reason) {
    hurried_ = true;
    if (state_ == State::opening) give_up(reason);
    if (state_ == State::leaving) running_.end_background(context_.options.kill_grace);
  }
  void kill(const std::string& reason) {
    killed_ = true;
    if (state_ == State::opening) give_up(reason);
    running_.kill();
    if (state_ == State::ready) spawn(wind_up("closed", reason));
  }

private:
  static constexpr auto kForever = std::chrono::steady_clock::time_point::max();
  struct GivenUp {};

  base::LogAbout log_about(const hooks::Hook* hook = nullptr) const {
    return base::LogAbout(
        {crawl_id_, "", 0, hook == nullptr ? "" : hook->plugin->name, hook == nullptr ? "" : hook->name.name});
  }
  // The session lives as long as its coroutines.
  void spawn(awaitable<void> work) {
    asio::co_spawn(context_.executor, std::move(work), [self = shared_from_this()](std::exception_ptr failure) {
      if (!failure) return;
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& error) {
        const auto about = self->log_about();
        spdlog::error("the session of crawl {} went wrong: {}", self->crawl_id_, error.what());
      }
    });
  }
  void wake() {
    changed_.cancel();
    owner_.changed_();
  }
  awaitable<void> change() { co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable)); }

  void give_up(const std::string& reason) {
    if (given_up_.empty()) given_up_ = reason;
    running_.interrupt_foreground(context_.options.kill_grace);
    running_.end_background(context_.options.kill_grace);
  }
  void check() const {
    if (!given_up_.empty()) throw GivenUp{};
  }

  // Called whenever the last user may have left.
  void rest() {
    if (!idle()) return;
    const auto linger = unneeded_.empty() ? context_.options.session_linger : std::chrono::milliseconds(0);
    if (linger.count() == 0) {
      spawn(wind_up("closed", unneeded_.empty() ? "its last snapshot here is done" : unneeded_));
      return;
    }
    linger_.expires_after(linger);
    linger_.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
      const auto session = self.lock();
      if (error || !session || !session->idle()) return;
      session->spawn(session->wind_up("closed", "it had nothing to do for a while"));
    });
  }

  awaitable<void> open() {
    std::string problem;
    bool given_up = false;
    try {
      co_await make_directories();
      network_ = context_.networks.enter();
      route_ = context_.networks.route(network_, "", 0);
      if (has_hooks()) {
        spawn(keep_heartbeat());
        co_await describe_crawl();
        co_await context_.retry.repeat([&](pg::Connection& connection) {
          store::session_open(connection, context_.worker_id, id_, crawl_id_, directory_.string());
        });
        known_ = true;
        {
          const auto about = log_about();
          spdlog::info("opening crawl {} here: {} crawl hooks", crawl_id_, hooks_.size());
        }
        for (const hooks::Hook* hook : hooks_) {
          check();
          co_await run_hook(*hook);
        }
        check();
        co_await report("ready", "");
      }
      check();
    } catch (const GivenUp&) {
      given_up = true;
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (given_up || !problem.empty()) {
      if (!given_up) {
        const auto about = log_about();
        spdlog::warn("crawl {} could not be opened here: {}", crawl_id_, problem);
      }
      co_await wind_up(given_up ? "closed" : "failed", given_up ? given_up_ : problem);
      co_return;
    }
    state_ = State::ready;
    for (const auto& one : running_.running())
      spawn(watch(one.run));
    wake();
    rest();
  }

  awaitable<void> make_directories() {
    co_await on_thread(context_.files, [this] {
      std::error_code error;
      std::filesystem::create_directories(directory_, error);
      if (error)
        throw base::Error(base::ErrorClass::cannot_create,
                          "cannot create " + directory_.string() + ": " + error.message(),
                          "check owner, permissions and free space of work_dir");
      // The crawl's browser saves what it downloads into the directories of its pages.
      for (const auto& needed : {attempts(), sandboxed() ? temporary() : directory_})
        std::filesystem::create_directories(needed, error);
      give_to_hooks(context_.sandbox, temporary());
      give_to_hooks(context_.sandbox, directory_);
      if (!has_hooks()) return;
      std::filesystem::create_directories(library(), error);
      if (sandboxed())
        for (const auto& entry : std::filesystem::directory_iterator(context_.options.data_dir / "lib", error))
          std::filesystem::create_symlink(entry.path(), library() / entry.path().filename(), error);
      // A browser locks its profile: each session works on a copy of the persona's.
      const auto persona = personas() / persona_;
      std::filesystem::create_directories(persona, error);
      std::filesystem::copy(context_.options.data_dir / "personas" / persona_, persona,
                            std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks,
                            error);
      give_to_hooks(context_.sandbox, directory_);
    });
  }

  awaitable<void> describe_crawl() {
    const auto seeds = co_await context_.retry.repeat(
        [this](pg::Connection& connection) { return store::crawl_seeds(connection, crawl_id_, kSeeds); });
    hook_context_.crawl_id = crawl_id_;
    hook_context_.url = seeds.empty() ? "" : seeds.front();
    hook_context_.source_url = base::join(seeds, "\n");
    hook_context_.data_dir = context_.options.data_dir;
    hook_context_.crawl_dir = directory_;
    hook_context_.temporary_dir = sandboxed() ? "/tmp" : context_.options.temporary_dir;
    hook_context_.library_dir = library();
    hook_context_.personas_dir = personas();
    hook_context_.persona = persona_;
    hook_context_.last_on_path = context_.options.last_on_path();
  }

  // Hooks that sweep up take a crawl directory without a fresh heartbeat for abandoned.
  awaitable<void> keep_heartbeat() {
    const auto file = directory_ / ".heartbeat.json";
    while (!ended_) {
      const nlohmann::json text = {{"runtime", "holdfast"},
                                   {"crawl_id", crawl_id_},
                                   {"owner_pid", getpid()},
                                   {"last_alive_at", base::utc_timestamp()},
                                   {"kill_after_seconds", kHeartbeatKills}};
      const auto partial = directory_ / ".heartbeat.json.new";
      std::error_code ignored;
      if (std::ofstream(partial) << store::json_text(text) << '\n') std::filesystem::rename(partial, file, ignored);
      pulse_.expires_after(kHeartbeat);
      co_await pulse_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }

  void note(const hooks::Hook& hook, nlohmann::json columns) {
    columns["plugin"] = hook.plugin->name;
    columns["hook_name"] = hook.name.name;
    columns["background"] = hook.name.background;
    notes_[hook.plugin->name + "/" + hook.name.name] = std::move(columns);
  }
  void note(const hooks::Hook& hook, const hooks::HookOutcome& outcome) {
    count_hook(hook.plugin->name, outcome);
    auto columns = result_columns(outcome);
    columns["status"] = hooks::to_string(outcome.status);
    // Its directory goes with the session.
    std::string log =
        base::tail_of(outcome.stdout_log, kSessionLogTail) + base::tail_of(outcome.stderr_log, kSessionLogTail);
    std::erase(log, '\0');
    if (!log.empty()) columns["log"] = std::move(log);
    note(hook, std::move(columns));
    for (const auto& record : outcome.machine_records)
      for (const auto& [key, value] : record.config)
        options_[key] = set_options_[key] = value;
  }

  awaitable<void> run_hook(const hooks::Hook& hook) {
    auto prepared = prepare_hook(context_, hook, options_, hook_context_);
    if (!prepared.missing.empty()) {
      note(hook, {{"status", "skipped"}, {"error", prepared.missing}});
      co_return;
    }
    prepared.command.sandbox = context_.sandbox;
    prepared.command.sandbox.writable = {directory_, attempts()};
    prepared.command.sandbox.temporary = temporary();
    if (route_) route_->apply(prepared.command);
    const auto limit = prepared.limits.timeout + kReadiness;
    const auto run = running_.start(hook, std::move(prepared), directory_);
    if (hook.name.background) {
      note(hook, {{"status", "started"}, {"pid", run->pid()}});
      if (co_await run->ready(limit)) co_return;
      check();
      run->end(context_.options.kill_grace, false);
    }
    const auto outcome = co_await run->finish();
    if (!hook.name.background) running_.forget(*run);
    note(hook, outcome);
    check();
    if (!outcome.binaries.empty()) {
      co_await context_.binary_resolver->provide(outcome.binaries, hook.plugin->name);
      check();
    }
    if (hook.name.background && outcome.status != hooks::Status::failed)
      throw SessionFailed(title(hook) + " was not ready after " + base::format_duration(limit));
    if (outcome.status == hooks::Status::failed && !may_fail(hook))
      throw SessionFailed(title(hook) + " failed: " + outcome.error);
  }

  // A daemon that dies takes the session with it: the snapshots that use it are released, the next one opens it again.
  awaitable<void> watch(std::shared_ptr<hooks::HookRun> run) {
    const auto outcome = co_await run->finish();
    note(run->hook(), outcome);
    if (state_ != State::ready || outcome.status != hooks::Status::failed) co_return;
    co_await wind_up("failed", title(run->hook()) + " has ended: " + outcome.error);
  }

  awaitable<void> wind_up(std::string status, std::string reason) {
    if (state_ == State::leaving || state_ == State::over) co_return;
    const bool was_ready = state_ == State::ready;
    state_ = State::leaving;
    reason_ = reason;
    linger_.cancel();
    wake();
    if (status == "failed" && was_ready) {
      {
        const auto about = log_about();
        spdlog::warn("the session of crawl {} is broken: {}", crawl_id_, reason);
      }
      const auto users = users_;
      for (const auto& [number, broken] : users)
        if (users_.contains(number)) broken(reason);
    }
    if (status == "closed") co_await report("draining", reason);
    if (status == "closed" && was_ready && !hurried_ && !killed_) co_await run_last_hooks();
    running_.end_background(hurried_ || killed_ || status == "failed" ? context_.options.kill_grace
                                                                      : std::chrono::milliseconds::max());
    if (killed_) running_.kill();
    const auto running = running_.running();
    for (const auto& one : running)
      co_await collect(*one.run);
    co_await report(status, reason);
    if (has_hooks() && was_ready) {
      const auto about = log_about();
      spdlog::info("closed crawl {} here: {}", crawl_id_, reason);
    }
    ended_ = true;
    pulse_.cancel();
    route_.reset();
    network_.reset();
    co_await on_thread(context_.files, [this] {
      std::error_code ignored;
      std::filesystem::remove_all(directory_, ignored);
      std::filesystem::remove(attempts(), ignored); // only if no attempt is there
      try {
        if (sandboxed()) archive::remove_directory(temporary());
      } catch (const base::Error& error) {
        spdlog::warn("left behind: {}", error.what());
      }
    });
    // Only now: who waits for the end looks for the session again at once, and must not find it.
    state_ = State::over;
    owner_.remove(*this);
    wake();
  }

  awaitable<void> collect(hooks::HookRun& run) {
    try {
      note(run.hook(), co_await run.finish());
    } catch (const std::exception& error) {
      note(run.hook(), {{"status", "failed"}, {"error", error.what()}});
    }
  }

  awaitable<void> run_last_hooks() {
    for (const hooks::Hook* hook : last_hooks_) {
      std::string problem;
      try {
        co_await run_hook(*hook);
      } catch (const GivenUp&) {
        co_return;
      } catch (const std::exception& error) {
        problem = error.what();
      }
      if (!problem.empty()) {
        const auto about = log_about(hook);
        spdlog::warn("crawl {}: {}", crawl_id_, problem);
      }
    }
  }

  // Tells the database. What it cannot hear is closed there when this worker lapses.
  awaitable<void> report(std::string status, std::string reason) {
    if (!known_ || killed_) co_return;
    nlohmann::json hooks = nlohmann::json::array();
    for (const auto& [name, columns] : notes_)
      hooks.push_back(columns);
    const std::string text = store::json_text(hooks);
    std::string problem;
    try {
      co_await context_.retry.repeat(
          [&](pg::Connection& connection) { store::session_set(connection, id_, status, reason, text); });
    } catch (const base::Error& error) {
      problem = error.what();
    }
    const auto about = log_about();
    if (!problem.empty()) spdlog::debug("session {} is not recorded as {}: {}", id_, status, problem);
  }

  static std::string title(const hooks::Hook& hook) { return "crawl hook " + hook.plugin->name + "/" + hook.name.name; }

  CrawlSessions& owner_;
  JobContext& context_;
  const std::string crawl_id_, id_, persona_;
  hooks::Options options_, set_options_;
  const std::filesystem::path directory_;
  hooks::HookContext hook_context_;
  std::vector<const hooks::Hook*> hooks_, last_hooks_;
  State state_{State::opening};
  std::shared_ptr<HookNetwork> network_;
  std::unique_ptr<Route> route_;
  std::string given_up_, unneeded_, reason_; // reasons; empty: not
  bool known_{false};                        // the database has a row
  bool hurried_{false}, killed_{false};
  bool ended_{false}; // no hook is left; its directory goes next
  HookSet running_;   // the one in the foreground, and the background hooks until the end of the session
  std::map<std::string, nlohmann::json> notes_; // by plugin/hook
  std::map<int, std::function<void(const std::string&)>> users_;
  int last_user_{0};
  asio::steady_timer changed_, linger_, pulse_;
};

CrawlSessions::Share::Share(std::shared_ptr<CrawlSession> session, int number)
    : session_(std::move(session)), number_(number) {}
CrawlSessions::Share::~Share() {
  if (session_) session_->leave(number_);
}
CrawlSessions::Share::Share(Share&& other) noexcept : session_(std::move(other.session_)), number_(other.number_) {}
CrawlSessions::Share& CrawlSessions::Share::operator=(Share&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(number_, other.number_);
  return *this;
}
std::filesystem::path CrawlSessions::Share::directory() const { return session_->directory(); }
std::filesystem::path CrawlSessions::Share::library() const { return session_->library(); }
std::filesystem::path CrawlSessions::Share::personas() const { return session_->personas(); }
std::shared_ptr<HookNetwork> CrawlSessions::Share::network() const { return session_->network(); }
const hooks::Options& CrawlSessions::Share::options() const { return session_->set_options(); }

CrawlSessions::CrawlSessions(JobContext& context, std::function<void()> changed)
    : context_(context), changed_(std::move(changed)) {}
CrawlSessions::~CrawlSessions() = default;

awaitable<CrawlSessions::Share> CrawlSessions::join(const store::Claim& claim,
                                                    std::function<void(const std::string&)> broken) {
  for (;;) {
    if (!killed_.empty() || !hurry_.empty()) throw SessionFailed(killed_.empty() ? hurry_ : killed_);
    auto& slot = sessions_[claim.lease.crawl_id];
    if (!slot) {
      std::shared_ptr<CrawlSession> opening, other;
      try {
        opening = std::make_shared<CrawlSession>(*this, context_, claim);
      } catch (...) {
        sessions_.erase(claim.lease.crawl_id);
        throw;
      }
      if (opening->has_hooks() && with_hooks() >= context_.options.session_max) {
        sessions_.erase(claim.lease.crawl_id);
        other = idle();
        if (!other) throw SessionsFull{};
        other->close("another crawl needs its place");
        co_await other->gone();
        continue;
      }
      slot = opening;
      slot->start();
    }
    const auto session = slot;
    if (session->leaving()) {
      co_await session->gone();
      continue;
    }
    Share share(session, session->enter(broken));
    co_await session->opened();
    co_return share;
  }
}

std::size_t CrawlSessions::with_hooks() const {
  return static_cast<std::size_t>(std::count_if(
      sessions_.begin(), sessions_.end(), [](const auto& entry) { return entry.second && entry.second->has_hooks(); }));
}

std::shared_ptr<CrawlSession> CrawlSessions::idle() const {
  for (const auto& [crawl, session] : sessions_)
    if (session && session->has_hooks() && session->idle()) return session;
  return nullptr;
}

std::vector<std::string> CrawlSessions::open() const {
  std::vector<std::string> crawls;
  for (const auto& [crawl, session] : sessions_)
    if (session && session->has_hooks() && !session->leaving()) crawls.push_back(crawl);
  return crawls;
}

bool CrawlSessions::full() const { return with_hooks() >= context_.options.session_max && !idle(); }

void CrawlSessions::crawl_over(const std::string& crawl_id, const std::string& reason) {
  const auto found = sessions_.find(crawl_id);
  if (found == sessions_.end()) return;
  const auto session = found->second;
  session->finish_soon(reason);
}

void CrawlSessions::hurry(const std::string& reason) {
  if (hurry_.empty()) hurry_ = reason;
  const auto sessions = sessions_;
  for (const auto& [crawl, session] : sessions)
    session->hurry(reason);
}

void CrawlSessions::kill(const std::string& reason) {
  if (killed_.empty()) killed_ = reason;
  const auto sessions = sessions_;
  for (const auto& [crawl, session] : sessions)
    session->kill(reason);
}

awaitable<void> CrawlSessions::close(const std::string& reason) {
  while (!sessions_.empty()) {
    const auto session = sessions_.begin()->second;
    const auto sessions = sessions_;
    for (const auto& [crawl, other] : sessions)
      other->close(reason);
    co_await session->gone();
  }
}

void CrawlSessions::remove(const CrawlSession& session) {
  const auto found = sessions_.find(session.crawl_id());
  if (found != sessions_.end() && found->second.get() == &session) sessions_.erase(found);
}

} // namespace holdfast::worker
