#include "services/runner/gate.hpp"

#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/process/launcher.hpp"
#include "services/worker/machine.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

namespace holdfast::runner {

namespace {

// While a newcomer and a leaving runner pass each other in the gate, waiting for the doorbell alone would cost a poll.
constexpr std::chrono::milliseconds kLookAgain{100};
constexpr std::chrono::milliseconds kFarewell{3000};

pg::ConnectionOptions connection_options(const std::string& label) {
  pg::ConnectionOptions options;
  options.application_name = label;
  // A runner that cannot be sure for long has to find out soon.
  options.connect_timeout = std::chrono::milliseconds(3000);
  options.tcp_user_timeout = std::chrono::milliseconds(5000);
  return options;
}

// Not merely out of sight: where /proc hides other people's processes, a process may be there and not be seen.
bool found_dead(const store::RunnerInWay& other) {
  if (::kill(other.pid, 0) != 0 && errno == ESRCH) return true;
  return process::process_start_ticks(other.pid) != 0 && !process::process_alive(other.pid, other.start_ticks);
}

// TERM to exactly that process: a pid may be somebody else's by the time a signal is sent, a descriptor of it may not.
bool send_term(int pid, std::uint64_t start_ticks) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) return false;
  const bool same = process::process_alive(pid, start_ticks);
  const bool sent = same && ::syscall(SYS_pidfd_send_signal, descriptor, SIGTERM, nullptr, 0) == 0;
  ::close(descriptor);
  return sent;
}

} // namespace

Gate::Gate(asio::io_context& io, GateOptions options, base::StopSignal& stop)
    : io_(io), options_(std::move(options)), stop_(stop),
      process_(worker::describe_process("runner", "runner_waiting", options_.version, 0, options_.data_dir)),
      trust_(options_.lease, options_.lease / 5), timer_(io) {
  process_.label = "runner on " + process_.machine.hostname + " pid " + std::to_string(process_.pid) +
                   (options_.standby ? " (standby)" : "");
  base::set_log_process(process_.label);
  pg::Connection connection(options_.dsn, connection_options(process_.label));
  const auto sent = base::TrustWindow::Clock::now();
  collection_id_ = store::runner_join(connection, process_, options_.standby, options_.lease);
  trust_.extend(sent);
  pool_ = std::make_unique<pg::Pool>(options_.dsn, connection_options(process_.label), 1, std::chrono::seconds(1));
  start_heartbeat();
}

Gate::~Gate() {
  *alive_ = false;
  heartbeat_.reset();
}

void Gate::start_heartbeat() {
  pg::Heartbeat::Callbacks callbacks;
  callbacks.beat = [this, alive = alive_, id = process_.id,
                    lease = options_.lease](pg::Connection& connection, std::chrono::steady_clock::time_point) {
    const auto sent = base::TrustWindow::Clock::now();
    auto beat = store::runner_beat(connection, id, lease, "{}");
    asio::post(io_, [this, alive, sent, beat = std::move(beat)] {
      if (*alive) take_beat(sent, beat);
    });
  };
  callbacks.on_notify = [this, alive = alive_](const std::vector<std::string>& payloads) {
    if (!*alive) return;
    // Somebody came to the gate or left it: look at once whether we are asked to leave.
    for (const auto& payload : payloads)
      if (payload == "runner" || payload == "control") {
        heartbeat_->beat_now();
        break;
      }
    wake();
  };
  callbacks.on_lost = [](const std::string& reason) { spdlog::warn("runner: lost the database: {}", reason); };
  callbacks.on_restored = [this, alive = alive_] {
    spdlog::info("runner: the database is back");
    if (*alive) wake();
  };
  callbacks.on_fatal = [this, alive = alive_](std::exception_ptr failure) {
    if (!*alive) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      lose(error.what());
    }
  };
  heartbeat_ = std::make_unique<pg::Heartbeat>(options_.dsn, connection_options(process_.label + " beat"), "holdfast",
                                               options_.beat, io_.get_executor(), std::move(callbacks));
}

void Gate::take_beat(base::TrustWindow::Clock::time_point sent, const store::RunnerBeat& beat) {
  trust_.extend(sent);
  base::request_log_level(beat.log_level);
  if (beat.leads && beat.request == "leave" && !asked_) {
    asked_ = true;
    rival_ = beat.rival.empty() ? "another runner" : beat.rival;
    wake();
  } else if (beat.request == "drain" || beat.request == "stop") {
    stop_.raise(base::Strength::drain, "asked to " + beat.request);
    wake();
  }
}

void Gate::lose(const std::string& why) {
  if (!std::exchange(lost_, true)) spdlog::warn("{}: {}", process_.label, why);
  wake();
}

bool Gate::leads() const { return epoch_ > 0 && !asked_ && !lost_ && trust_.trusted(base::TrustWindow::Clock::now()); }

void Gate::wake() {
  woken_ = true;
  timer_.cancel();
}

awaitable<void> Gate::sleep(std::chrono::milliseconds at_most) {
  if (!woken_) {
    timer_.expires_after(at_most);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  woken_ = false;
}

bool Gate::is_local(const store::RunnerInWay& other) const {
  return other.machine_id == process_.machine.id && other.boot_id == process_.boot_id &&
         !process_.pid_namespace.empty() && other.pid_namespace == process_.pid_namespace;
}

// The request is in its row already (runner_enter put it there). On this machine more can be done.
awaitable<void> Gate::ask_to_leave(store::RunnerInWay other) {
  if (!other.leads || !is_local(other)) co_return;
  if (found_dead(other)) {
    spdlog::info("{} is dead: not waiting for its lease", other.label);
    co_await pool_->run([&](pg::Connection& connection) { store::worker_gone(connection, other, "found dead"); });
    wake();
  } else if (!options_.standby && !other.standby && other.pid != process_.pid && told_.insert(other.id).second) {
    if (send_term(other.pid, other.start_ticks)) spdlog::info("told {} to leave", other.label);
  }
}

awaitable<Gate::Entered> Gate::enter() {
  const auto since = std::chrono::steady_clock::now();
  std::string waiting_for;
  for (;;) {
    if (stop_.strength() != base::Strength::none) co_return Entered::stopped;
    if (lost_) co_return Entered::lost;
    store::Entry entry;
    std::string problem;
    try {
      entry = co_await pool_->run(
          [this](pg::Connection& connection) { return store::runner_enter(connection, process_.id, options_.lease); });
      // By its own clock it can only be surer than it should be of a beat, which its next one mends.
      if (entry.answer == store::Entry::Answer::lead) {
        epoch_ = entry.epoch;
        spdlog::info("{} leads, epoch {}", process_.label, epoch_);
        heartbeat_->beat_now();
        co_return Entered::leads;
      }
      if (entry.answer == store::Entry::Answer::yield) {
        rival_ = entry.others.empty() ? "another runner" : entry.others.front().label;
        co_return Entered::superseded;
      }
      for (const auto& other : entry.others)
        co_await ask_to_leave(other);
    } catch (const base::Error& error) {
      if (error.error_class() == base::ErrorClass::lease_lost)
        lose(error.what());
      else if (error.error_class() != base::ErrorClass::temporary &&
               error.error_class() != base::ErrorClass::unavailable)
        throw;
      problem = error.what();
    }
    if (!problem.empty()) spdlog::debug("at the gate: {}", problem);
    if (!entry.others.empty() && entry.others.front().id != waiting_for) {
      waiting_for = entry.others.front().id;
      spdlog::info("{} {} {}", process_.label, options_.standby ? "stands by:" : "waits for",
                   entry.others.front().label);
    }
    // A leading runner that was asked goes at once or not at all: after graceful_timeout only its lease can end it.
    const bool soon = !options_.standby && std::chrono::steady_clock::now() - since < options_.graceful_timeout;
    co_await sleep(soon ? kLookAgain : std::min(options_.poll, options_.beat));
  }
}

awaitable<int> Gate::lapse_dead() {
  int lapsed = 0;
  const auto processes = co_await pool_->run([this](pg::Connection& connection) {
    return store::local_processes(connection, process_.machine.id, process_.boot_id, process_.pid_namespace);
  });
  for (const auto& one : processes) {
    if (one.id == process_.id || !found_dead(one)) continue;
    const bool gone = co_await pool_->run(
        [&](pg::Connection& connection) { return store::worker_gone(connection, one, "found dead"); });
    if (gone) ++lapsed;
    if (gone) spdlog::info("{} is dead: its work is given to others", one.label);
  }
  co_return lapsed;
}

awaitable<void> Gate::leave(int exit_code, std::string reason) {
  heartbeat_.reset();
  std::string problem;
  const auto until = std::chrono::steady_clock::now() + kFarewell;
  do {
    problem.clear();
    try {
      co_await pool_->run(
          [&](pg::Connection& connection) { store::runner_leave(connection, process_.id, exit_code, reason); });
    } catch (const base::Error& error) {
      problem = error.what();
    }
    if (!problem.empty()) {
      woken_ = false;
      co_await sleep(kLookAgain);
    }
  } while (!problem.empty() && std::chrono::steady_clock::now() < until);
  if (!problem.empty()) spdlog::warn("{} could not say good-bye to the database: {}", process_.label, problem);
  epoch_ = 0;
  spdlog::info("{} left: {}", process_.label, reason);
}

} // namespace holdfast::runner
