#pragma once
// The crawl hooks of one crawl, run once for it on this worker and shared by its snapshots here. A session opens with
// its first snapshot, stays while it has any and a while longer, and ends its hooks: SIGTERM, then SIGKILL once the
// rest of their time is over. A crawl without crawl hooks has one as well, which costs nothing.
//
// Main thread only; shared by CrawlSessions, its users and its own coroutines.

#include "lib/base/async.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/store/lifecycle.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/hook/hook_services.hpp"
#include "services/worker/hook/hook_set.hpp"
#include "services/worker/session/session_directory.hpp"
#include "services/worker/session/session_persona.hpp"

#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json_fwd.hpp>

#include <array>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::worker {

class BinaryResolver;
class BrowserWatch;

// Services that sessions use besides hooks. Owned by Worker, which outlives its users; main thread only.
struct SessionServices : HookServices {
  BinaryResolver& binary_resolver;
  BrowserWatch& browser;
};

// The session could not be opened, or was ended before it was ready.
class SessionFailed : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

enum class SessionState { opening, ready, draining, closed, failed };

constexpr std::string_view to_string(SessionState state) {
  constexpr std::array<std::string_view, 5> kNames{"opening", "ready", "draining", "closed", "failed"};
  return kNames[static_cast<std::size_t>(state)];
}

// By the lifecycle of sessions; what only the database does, after a lapse, is left out.
constexpr bool may_become(SessionState from, SessionState to) {
  for (const auto& edge : store::kEdges)
    if (edge.lifecycle == "session" && edge.event != "lapse" && edge.from == to_string(from) &&
        edge.to == to_string(to))
      return true;
  return false;
}

// How its hooks end: in their own time; within kill_grace; at once and without another report to the database.
enum class ShutdownMode { smart, fast, immediate };

class CrawlSession : public std::enable_shared_from_this<CrawlSession> {
public:
  struct Callbacks {
    std::function<void()> changed;                  // its state
    std::function<void(const CrawlSession&)> ended; // nothing of it is left
  };

  // `persona`: of the claim; null: it has none.
  CrawlSession(SessionServices& context, const store::Claim& claim, std::unique_ptr<SessionPersona> persona,
               Callbacks callbacks);

  const std::string& crawl_id() const { return crawl_id_; }
  const SessionDirectory& directory() const { return directory_; }
  std::shared_ptr<HookNetwork> network() const { return network_; }          // of its hooks; null: the machine's
  std::shared_ptr<process::SignalScope> signals() const { return signals_; } // of its hooks; null: there is none
  // Returns the options that crawl hooks and the persona have set for the hooks of its snapshots.
  const hooks::Options& set_options() const { return set_options_; }
  SessionPersona* persona() const { return persona_.get(); } // null: it has none
  bool has_hooks() const { return !hooks_.empty() || !last_hooks_.empty(); }
  bool idle() const { return state_ == SessionState::ready && users_.empty(); }
  bool ending() const { return state_ != SessionState::opening && state_ != SessionState::ready; }

  void start() { spawn(open()); }
  // Completes when it is ready. Throws SessionFailed.
  awaitable<void> opened();
  // Completes when nothing of it is left.
  awaitable<void> ended();

  // `broken`: called if a hook of it dies meanwhile. Returns the user's number.
  int enter(std::function<void(const std::string&)> broken);
  void leave(int user);

  // Ends the session once its last user has left.
  void finish_soon(const std::string& reason);
  void drain(const std::string& reason);
  // From now on its hooks end so; `immediate` also ends it.
  void shut_down(ShutdownMode mode, const std::string& reason);

private:
  bool become(SessionState state, const std::string& reason);
  void require_opening() const;
  void rest();
  void spawn(awaitable<void> work);
  void wake();
  awaitable<void> change();
  awaitable<void> open();
  awaitable<void> run_first_hooks();
  awaitable<void> describe_crawl();
  void note(const hooks::Hook& hook, nlohmann::json columns);
  void note(const hooks::Hook& hook, const hooks::HookOutcome& outcome);
  awaitable<void> run_hook(const hooks::Hook& hook);
  awaitable<void> watch(std::shared_ptr<hooks::HookRun> run);
  awaitable<void> wind_up(bool was_ready);
  awaitable<void> run_last_hooks();
  awaitable<void> report(SessionState state);
  base::LogAbout log_about(const hooks::Hook* hook = nullptr) const;

  SessionServices& context_;
  const Callbacks callbacks_;
  const std::string crawl_id_, id_;
  const std::unique_ptr<SessionPersona> persona_;
  hooks::Options options_, set_options_;
  SessionDirectory directory_;
  hooks::HookContext hook_context_;
  std::shared_ptr<HookNetwork> network_;
  std::shared_ptr<process::SignalScope> signals_;
  std::unique_ptr<Route> route_; // null: hooks have the machine's network
  std::vector<const hooks::Hook*> hooks_, last_hooks_;
  SessionState state_{SessionState::opening};
  std::string reason_;            // of its state
  std::exception_ptr of_machine_; // why it could not open, if that is no fault of its pages
  std::string unneeded_;          // why nothing needs it after its users; empty: others may come
  ShutdownMode shutdown_{ShutdownMode::smart};
  bool gone_{false}; // its directory, too
  HookSet running_;  // the one in the foreground, and the background hooks until the end of the session
  std::map<std::string, std::string> notes_; // by plugin/hook; rows of session_hook as JSON
  std::map<int, std::function<void(const std::string&)>> users_;
  int last_user_{0};
  asio::steady_timer changed_, linger_;
};

} // namespace holdfast::worker
