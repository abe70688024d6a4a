#include "lib/process/subprocess.hpp"

#include "lib/base/error.hpp"
#include "lib/process/spawn_launcher.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <span>

namespace holdfast::process {

namespace {

constexpr auto kOutcome = asio::as_tuple(asio::use_awaitable);

Exit exit_of(int status) {
  Exit exit;
  exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return exit;
}

} // namespace

// Shared by the object and by the coroutine that waits, which reaps the program even without a waiter.
struct Subprocess::State {
  State(const asio::any_io_executor& executor) : process(executor), ended(executor) {
    ended.expires_at(std::chrono::steady_clock::time_point::max());
  }

  void finish(Exit outcome) {
    exit = outcome;
    ended.cancel();
  }

  static awaitable<void> watch(std::shared_ptr<State> state) {
    const auto [error, code] = co_await state->process.async_wait(kOutcome);
    if (state->exit) co_return; // the destructor was faster
    state->finish(exit_of(error ? SIGKILL : state->process.native_exit_code()));
  }

  static awaitable<Exit> wait(std::shared_ptr<State> state) {
    while (!state->exit)
      co_await state->ended.async_wait(kOutcome);
    co_return *state->exit;
  }

  boost::process::v2::process process;
  pid_t pid{0};
  asio::steady_timer ended; // never expires; cancel() wakes those who wait
  std::optional<Exit> exit;
};

Subprocess::Subprocess(asio::any_io_executor executor, const std::vector<std::string>& argv, int output)
    : state_(std::make_shared<State>(executor)) {
  SpawnLauncher launcher;
  launcher.own_group();
  launcher.duplicate(STDIN_FILENO, STDIN_FILENO); // also if it is marked to be closed by exec
  launcher.duplicate(output, STDOUT_FILENO);
  launcher.duplicate(STDERR_FILENO, STDERR_FILENO);
  launcher.close_from(STDERR_FILENO + 1);
  boost::system::error_code error;
  state_->process = launcher(executor, error, argv.front(), std::span(argv).subspan(1));
  if (error)
    throw base::Error(base::ErrorClass::system,
                      "cannot start " + argv.front() + ": " + base::errno_text(error.value()));
  state_->pid = state_->process.id();
  asio::co_spawn(executor, State::watch(state_), asio::detached);
}

Subprocess::~Subprocess() {
  if (state_->exit) return;
  {
    const auto running = std::move(state_->process); // whose destructor kills and reaps; a guard ends its tree first
  }
  state_->finish(exit_of(SIGKILL));
}

pid_t Subprocess::pid() const noexcept { return state_->pid; }

const std::optional<Exit>& Subprocess::exit() const noexcept { return state_->exit; }

awaitable<Exit> Subprocess::wait() { return State::wait(state_); }

void Subprocess::signal(int number) {
  if (!state_->exit) ::kill(state_->pid, number); // not reaped yet, so the pid is still its own
}

std::optional<int> run_to_end(const Program& program, std::chrono::milliseconds limit) {
  SpawnLauncher launcher;
  launcher.own_session();
  launcher.duplicate(program.input, STDIN_FILENO);
  launcher.duplicate(program.output, STDOUT_FILENO);
  launcher.duplicate(program.output, STDERR_FILENO);
  launcher.close_from(STDERR_FILENO + 1);
  std::vector<const char*> environment;
  for (const auto& setting : program.environment)
    environment.push_back(setting.c_str());
  environment.push_back(nullptr);
  launcher.env = environment.data();

  asio::io_context context;
  const asio::any_io_executor executor = context.get_executor();
  boost::system::error_code error;
  std::optional<int> status;
  auto process = launcher(executor, error, program.argv.front(), std::span(program.argv).subspan(1));
  if (error)
    throw base::Error(base::ErrorClass::unavailable,
                      "cannot run " + program.argv.front() + ": " + base::errno_text(error.value()));
  process.async_wait([&](boost::system::error_code failure, int) {
    const int raw = process.native_exit_code();
    if (failure)
      status = 127; // SIGCHLD is ignored, so the kernel kept no status
    else
      status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  });
  context.run_for(limit);
  if (!status) process.terminate(error); // by SIGKILL, and waits
  return status;
}

} // namespace holdfast::process
