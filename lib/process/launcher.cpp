#include "lib/process/launcher.hpp"

#include "lib/base/error.hpp"
#include "lib/process/orphans.hpp"
#include "lib/process/shim/protocol.hpp"
#include "lib/process/spawn_launcher.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

namespace holdfast::process {

namespace {

using base::Error;
using base::ErrorClass;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A shim answers within its own limit for unkillable processes (10 s); one that does not is itself stuck, for instance
// stopped by its hook, and is killed.
constexpr milliseconds kShimTimeout{15000};
// Time to find and kill the remains of a killed shim's tree.
constexpr milliseconds kHunt{5000};

constexpr auto kResult = asio::as_tuple(asio::use_awaitable);

base::Fd open_output(int opened, const std::filesystem::path& path) {
  const char* name = path.empty() ? "/dev/null" : path.c_str();
  auto file = opened >= 0 ? base::Fd(::fcntl(opened, F_DUPFD_CLOEXEC, shim::kFirstFree))
                          : out_of_the_way(::open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file) return file;
  const int error = errno;
  if (error == EMFILE || error == ENFILE)
    throw Error(ErrorClass::system, std::string("cannot open ") + name + ": " + base::errno_text(error),
                "raise the limit of open files (LimitNOFILE, ulimit -n)");
  throw Error(ErrorClass::cannot_create, std::string("cannot create ") + name + ": " + base::errno_text(error));
}

std::string limits_text(const Command& command) {
  const Limits& limits = command.limits;
  std::string text;
  for (const auto& limit : {limits.file_bytes, limits.open_files, limits.tree_memory_bytes, limits.tree_processes}) {
    if (!text.empty()) text += ',';
    text += limit ? std::to_string(*limit) : "-";
  }
  return text + (command.watch_cpu.count() > 0 ? "," + std::to_string(command.watch_cpu.count()) : ",-");
}

bool has_zero_byte(const Command& command) {
  const auto zero = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  return std::ranges::any_of(command.argv, zero) || std::ranges::any_of(command.environment, zero) ||
         zero(command.cookie) || zero(command.directory.native());
}

// The hook's environment with the cookie, which replaces any entry of its name.
std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> environment = command.environment;
  const auto name = std::min(command.cookie.find('='), command.cookie.size());
  if (!command.cookie.empty())
    set_variable(environment, command.cookie.substr(0, name), command.cookie.substr(name + 1));
  return environment;
}

// Starts the shim with exactly four descriptors, five with `rules` (-1: none) or six with a network, and a session of
// its own, so that the terminal's signals do not reach it.
boost::process::v2::process start_shim(const asio::any_io_executor& executor, const std::string& shim_path,
                                       const Command& command, const std::string& leaves, int output, int errors,
                                       int control, int rules, boost::system::error_code& error) {
  std::vector<std::string> arguments{limits_text(command), leaves, command.sandbox.text(), command.directory.string()};
  arguments.insert(arguments.end(), command.argv.begin(), command.argv.end());
  const std::vector<std::string> environment = environment_of(command);
  std::vector<const char*> variables;
  for (const auto& variable : environment)
    variables.push_back(variable.c_str());
  variables.push_back(nullptr);

  SpawnLauncher launcher;
  launcher.env = variables.data();
  launcher.own_session();
  launcher.duplicate(command.stdin_file, STDIN_FILENO);
  launcher.duplicate(output, STDOUT_FILENO);
  launcher.duplicate(errors, STDERR_FILENO);
  launcher.duplicate(control, shim::kControlDescriptor);
  if (rules >= 0) launcher.duplicate(rules, shim::kRulesDescriptor);
  const auto& network = command.sandbox.network;
  if (network) launcher.duplicate(network->descriptor(), shim::kNetworkDescriptor);
  if (network && network->owner() >= 0) launcher.duplicate(network->owner(), shim::kOwnerDescriptor);
  const int last = rules >= 0             ? shim::kRulesDescriptor
                   : !network             ? shim::kControlDescriptor
                   : network->owner() < 0 ? shim::kNetworkDescriptor
                                          : shim::kOwnerDescriptor;
  launcher.close_from(last + 1);
  return launcher(executor, error, shim_path, arguments);
}

Usage usage_of(const shim::Consumption& tree) {
  return {std::chrono::microseconds(tree.user_us), std::chrono::microseconds(tree.system_us), tree.peak_kib * 1024,
          tree.read_blocks, tree.written_blocks};
}

Exit failed_start(int error, StartStep step) {
  Exit exit;
  exit.code = -1;
  exit.start_errno = error;
  exit.failed_step = step;
  return exit;
}

} // namespace

// State of one started command. Shared by the Child and by the coroutine that watches the shim, because the shim has to
// be reaped even without a waiter. Main thread only.
//
// The shim is kept as the handle that v2::process::detach() gives: async_wait reaps it, and the destructor, unlike that
// of v2::process, does not kill it, which would lose its tree.
struct Supervision {
  explicit Supervision(const asio::any_io_executor& executor) : control(executor), ended(executor), backstop(executor) {
    ended.expires_at(Clock::time_point::max());
  }

  void send(shim::CommandKind kind, milliseconds grace) {
    const auto limited = std::clamp<std::int64_t>(grace.count(), 0, std::numeric_limits<std::uint32_t>::max());
    const shim::Command order{kind, static_cast<std::uint32_t>(limited)};
    // A shim that has ended has nothing left to end; a stopped one must wake up to read this.
    (void)::send(control.native_handle(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
    ::kill(shim_pid, SIGCONT);
  }

  void finish(Exit outcome) {
    exit = outcome;
    backstop.cancel();
    boost::system::error_code ignored;
    control.close(ignored);
    shim.reset();
    ended.cancel();
  }

  asio::posix::stream_descriptor control;
  std::optional<boost::process::v2::process_handle> shim;
  asio::steady_timer ended;    // never expires; cancel() wakes those who wait
  asio::steady_timer backstop; // a shim that does not answer
  pid_t shim_pid{0};
  pid_t hook_pid{0};
  base::LogSubject subject;
  std::uint64_t start_ticks{0};
  std::chrono::microseconds cpu_time{0};
  std::string cookie, leaves;
  Clock::time_point started{Clock::now()};
  std::optional<Clock::time_point> kill_at; // the termination has begun
  std::optional<Exit> exit;
};

namespace {

// Reads reports until the last one (returned) or until the shim has ended (nullopt).
awaitable<std::optional<shim::Report>> read_reports(std::shared_ptr<Supervision> state) {
  for (;;) {
    shim::Report report;
    const ssize_t got = ::recv(state->control.native_handle(), &report, sizeof report, MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof report)) {
      state->hook_pid = report.pid;
      state->start_ticks = report.start_ticks;
      if (report.kind == shim::ReportKind::ended) co_return report;
      if (report.kind == shim::ReportKind::used)
        state->cpu_time = std::chrono::microseconds(report.tree.user_us + report.tree.system_us);
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      const auto [error] = co_await state->control.async_wait(asio::posix::stream_descriptor::wait_read, kResult);
      if (error) co_return std::nullopt;
    } else {
      co_return std::nullopt;
    }
  }
}

Exit exit_from(const shim::Report& report) {
  if (report.start_errno != 0) return failed_start(report.start_errno, static_cast<StartStep>(report.failed_step));
  Exit exit;
  exit.code = WIFEXITED(report.wait_status) ? WEXITSTATUS(report.wait_status) : -1;
  exit.signal = WIFSIGNALED(report.wait_status) ? WTERMSIG(report.wait_status) : 0;
  if (report.unkillable > 0 && report.wall_us == 0) { // the hook's first process itself is stuck: it never ended
    exit.code = -1;
    exit.signal = SIGKILL;
  }
  exit.terminated = report.terminated != 0;
  exit.killed = report.killed != 0;
  exit.exceeded = static_cast<TreeLimit>(report.excess);
  exit.leftovers = static_cast<int>(report.leftovers);
  exit.unkillable = static_cast<int>(report.unkillable);
  exit.wall_time = std::chrono::duration_cast<milliseconds>(std::chrono::microseconds(report.wall_us));
  exit.usage = usage_of(report.tree);
  return exit;
}

// The shim was killed. Its hook died with it (parent-death signal); descendants were orphaned to this process, to the
// guard or to init, and are found by the cookie, by the hook's session, or because this process has adopted them: its
// own children are shims, or have its session.
awaitable<int> end_orphans(std::shared_ptr<Supervision> state) {
  const auto of_this_tree = [&, session = ::getsid(0)](const ProcessEntry& entry) {
    if (entry.shim() || entry.start_ticks < state->start_ticks) return false;
    if (state->hook_pid > 0 && entry.session == state->hook_pid) return true;
    if (entry.parent == ::getpid() && entry.session != session) return true;
    return !state->cookie.empty() &&
           environment_has(entry.pid, [&](std::string_view variable) { return variable == state->cookie; });
  };
  // A zombie in another session than ours was adopted: hooks and what they start are, our own helpers are not.
  const auto adopted = [&, session = ::getsid(0)](const ProcessEntry& entry) {
    return !entry.shim() && entry.session != session && entry.start_ticks >= state->start_ticks;
  };
  Orphans orphans(of_this_tree, adopted);
  const auto deadline = Clock::now() + kHunt;
  asio::steady_timer pause(state->control.get_executor());
  while (!orphans.kill_round() && Clock::now() < deadline) {
    pause.expires_after(milliseconds(5));
    co_await pause.async_wait(kResult);
  }
  co_return static_cast<int>(orphans.killed_processes().size());
}

awaitable<void> supervise(std::shared_ptr<Supervision> state) {
  const auto report = co_await read_reports(state);
  const auto [error, status] = co_await state->shim->async_wait(kResult);
  if (report) {
    state->finish(exit_from(*report));
    co_return;
  }
  Exit exit;
  exit.code = -1;
  exit.shim_lost = true;
  exit.signal = !error && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit.terminated = exit.killed = state->kill_at.has_value();
  exit.leftovers = co_await end_orphans(state);
  exit.leftovers += Cgroups::end(state->leaves); // who had dropped the cookie
  exit.wall_time = std::chrono::duration_cast<milliseconds>(Clock::now() - state->started);
  const base::LogAbout about(state->subject);
  spdlog::warn("hook process {}: {}; {} of its descendants had to be killed", state->hook_pid, exit.describe(),
               exit.leftovers);
  state->finish(exit);
}

// Takes the state by value: it must live until the last waiter is served.
awaitable<Exit> wait_for(std::shared_ptr<Supervision> state) {
  while (!state->exit)
    co_await state->ended.async_wait(kResult);
  co_return *state->exit;
}

[[noreturn]] void throw_system(const std::string& what) {
  const int error = errno;
  throw Error(ErrorClass::system, what + ": " + base::errno_text(error),
              error == EMFILE   ? "raise the limit of open files (LimitNOFILE, ulimit -n)"
              : error == EAGAIN ? "raise the limit of processes (TasksMax, ulimit -u)"
                                : "");
}

} // namespace

Child::~Child() { kill(); }

pid_t Child::shim_pid() const { return state_->shim_pid; }
pid_t Child::pid() const { return state_->hook_pid; }
std::uint64_t Child::start_ticks() const { return state_->start_ticks; }
std::chrono::microseconds Child::cpu_time() const { return state_->cpu_time; }

awaitable<Exit> Child::wait() { return wait_for(state_); }

void Child::terminate(milliseconds grace) {
  begin_termination(true, std::clamp(grace, milliseconds(0), milliseconds(std::chrono::hours(24 * 7))));
}

void Child::kill() { begin_termination(false, milliseconds(0)); }

void Child::begin_termination(bool politely, milliseconds grace) {
  if (state_->exit) return;
  const auto deadline = Clock::now() + grace;
  if (state_->kill_at && *state_->kill_at <= deadline) return;
  state_->kill_at = deadline;
  state_->send(politely ? shim::CommandKind::terminate : shim::CommandKind::kill, grace);
  state_->backstop.expires_at(deadline + kShimTimeout);
  state_->backstop.async_wait([weak = std::weak_ptr(state_)](boost::system::error_code error) {
    const auto state = weak.lock();
    if (!error && state && !state->exit && state->shim) ::kill(state->shim_pid, SIGKILL);
  });
}

Launcher::Launcher(asio::any_io_executor executor, const std::filesystem::path& shim_path, Cgroups cgroups)
    : executor_(std::move(executor)), shim_path_(shim_path.string()), cgroups_(std::move(cgroups)) {
  struct stat status {};
  if (::stat(shim_path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || ::access(shim_path.c_str(), X_OK) != 0)
    throw Error(
        ErrorClass::unavailable, "cannot execute the shim " + shim_path_,
        "holdfast-shim is installed in the directory of the holdfast program; install all three programs together");
}

std::unique_ptr<Child> Launcher::start(const Command& command) {
  if (command.argv.empty()) throw Error(ErrorClass::bug, "cannot start a command without a program");
  auto state = std::make_shared<Supervision>(executor_);
  state->cookie = command.cookie;
  state->subject = command.subject;
  const auto not_started = [&](int error, StartStep step) {
    state->finish(failed_start(error, step));
    return std::make_unique<Child>(state);
  };
  if (has_zero_byte(command)) // cannot be passed on, and must not be cut short
    return not_started(EINVAL, StartStep::execute);
  int rules = -1, refused = 0;
  if (command.sandbox.level == SandboxLevel::user) rules = rules_.of(command.sandbox, refused);
  if (refused != 0) return not_started(refused, StartStep::sandbox);

  const auto output = open_output(command.stdout_file, command.stdout_path);
  const auto errors = open_output(command.stderr_file, command.stderr_path);
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) throw_system("cannot open a control socket");
  auto ours = out_of_the_way(pair[0]), theirs = out_of_the_way(pair[1]);
  if (!ours || !theirs) throw_system("cannot open a control socket");
  state->control.assign(ours.release());

  state->leaves = cgroups_.next_leaves(command.limits.tree_memory_bytes.has_value());
  boost::system::error_code error;
  std::optional<boost::process::v2::process> started;
  const auto start = [&] {
    started.emplace(start_shim(executor_, shim_path_, command, state->leaves, output.get(), errors.get(), theirs.get(),
                               rules, error));
  };
  if (const auto& signals = command.sandbox.signals)
    signals->run(start);
  else
    start();
  if (error.value() == E2BIG) return not_started(E2BIG, StartStep::execute); // this command's fault, not the machine's
  if (error) {
    errno = error.value();
    throw_system("cannot start " + shim_path_);
  }
  state->shim_pid = started->id();
  state->shim.emplace(started->detach());
  asio::co_spawn(executor_, supervise(state), asio::detached);
  return std::make_unique<Child>(std::move(state));
}

Exit run_to_end(const std::filesystem::path& shim_path, const Command& command, std::chrono::milliseconds limit) {
  asio::io_context io;
  const std::shared_ptr<Child> child = Launcher(io.get_executor(), shim_path).start(command);
  asio::steady_timer timer(io, limit);
  timer.async_wait([child](const boost::system::error_code& error) {
    if (!error) child->kill();
  });
  Exit result;
  std::exception_ptr failure;
  asio::co_spawn(io, child->wait(), [&](std::exception_ptr thrown, Exit exit) {
    failure = thrown;
    result = exit;
    timer.cancel();
  });
  io.run();
  if (failure) std::rethrow_exception(failure);
  return result;
}

} // namespace holdfast::process
