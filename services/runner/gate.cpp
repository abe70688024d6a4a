#include "services/runner/gate.hpp"

#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/call.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

namespace holdfast::runner {

namespace {

// While a newcomer and a leaving runner pass each other in the gate, waiting for the notification alone would cost a
// poll.
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

// Returns true only for a dead process: where /proc hides processes of other users, a live one may be invisible.
bool found_dead(const store::RunnerInWay& other) {
  if (::kill(other.pid, 0) != 0 && errno == ESRCH) return true;
  return process::process_start_ticks(other.pid) != 0 && !process::process_alive(other.pid, other.start_ticks);
}

store::ProcessInfo describe(const GateOptions& options) {
  auto process = member::describe_process("runner", "runner_waiting", options.version, 0, options.data_dir);
  process.standby = options.standby;
  process.capabilities_json = std::string("{") + (options.spawns ? R"("spawns": true)" : "") +
                              (options.spawns && !options.keep.empty() ? ", " : "") +
                              (options.keep.empty() ? "" : R"("keep": )" + options.keep) + "}";
  process.label = "runner on " + process.machine.hostname + " pid " + std::to_string(process.pid);
  return process;
}

} // namespace

Gate::Gate(asio::io_context& io, GateOptions options, base::StopSignal& stop)
    : options_(std::move(options)), stop_(stop),
      membership_(io.get_executor(), describe(options_), options_.lease, options_.lease / 5),
      sleeper_(io.get_executor()) {
  base::set_log_process(label());
  pg::Connection connection(options_.dsn, connection_options(label()));
  membership_.join(connection);
  pool_ = std::make_unique<pg::Pool>(options_.dsn, connection_options(label()), 1, std::chrono::seconds(1));
  start_heartbeat();
}

Gate::~Gate() { membership_.stop(); }

void Gate::start_heartbeat() {
  member::Membership::Callbacks callbacks;
  callbacks.heartbeat = [this](pg::Connection& connection) -> std::function<void()> {
    auto heartbeat = store::runner_heartbeat(connection, id(), options_.lease, "{}");
    return [this, heartbeat = std::move(heartbeat)] { take_heartbeat(heartbeat); };
  };
  callbacks.notified = [this](const std::vector<std::string>& notifications) {
    // A runner came to the gate or left it, or a command was given: check at once whether we are requested to leave.
    if (std::any_of(notifications.begin(), notifications.end(),
                    [](const auto& one) { return one == "runner" || one == "control"; }))
      membership_.heartbeat_now();
    wake();
  };
  callbacks.restored = [this] { wake(); };
  callbacks.ended = [this](const std::string& reason) { lose(reason); };
  membership_.start(options_.dsn, connection_options(label() + " heartbeat"), options_.heartbeat, std::move(callbacks));
}

void Gate::take_heartbeat(const store::RunnerHeartbeat& heartbeat) {
  base::request_log_level(heartbeat.log_level);
  if (heartbeat.leads && heartbeat.request == "leave" && rival_.empty()) {
    rival_ = heartbeat.rival.empty() ? "another runner" : heartbeat.rival;
    wake();
  } else if (heartbeat.request == "drain" || heartbeat.request == "stop") {
    stop_.raise(base::Strength::drain, "asked to " + heartbeat.request);
    wake();
  }
}

void Gate::lose(const std::string& why) {
  if (lost_.empty()) {
    lost_ = "lost its lease";
    spdlog::warn("{} {}: {}", label(), lost_, why);
  }
  wake();
}

bool Gate::leads() const { return epoch_ > 0 && rival_.empty() && lost_.empty() && membership_.trusted(); }

std::string Gate::ending() const {
  if (!rival_.empty()) return "stepped down for " + rival_;
  if (!lost_.empty()) return lost_;
  const auto& error = membership_.last_error();
  return error.empty() ? "lost its lease: no heartbeat was answered in time" : "lost the database: " + error;
}

bool Gate::is_local(const store::RunnerInWay& other) const {
  const auto& process = membership_.process();
  return other.machine_id == process.machine.id && other.boot_id == process.boot_id && !process.pid_namespace.empty() &&
         other.pid_namespace == process.pid_namespace;
}

// runner_enter has requested it to leave. On this machine it is visible whether it still runs.
awaitable<void> Gate::end_if_dead(store::RunnerInWay other) {
  if (!other.leads || !is_local(other) || !found_dead(other)) co_return;
  spdlog::info("{} is dead: ending its lease now", other.label);
  co_await pool_->run([&](pg::Connection& connection) { store::process_gone(connection, other, "found dead"); });
  wake();
}

awaitable<Gate::Entered> Gate::enter() {
  const auto since = std::chrono::steady_clock::now();
  std::string waiting_for;
  for (;;) {
    if (stop_.strength() != base::Strength::none) co_return Entered::stopped;
    if (!lost_.empty()) co_return Entered::lost;
    store::Entry entry;
    try {
      entry = co_await pool_->run([this](pg::Connection& connection) {
        return store::runner_enter(connection, id(), options_.lease, options_.graceful_timeout);
      });
      // By its own clock it can only be surer than it should be of a heartbeat, which its next one mends.
      if (entry.answer == store::Entry::Answer::lead) {
        epoch_ = entry.epoch;
        spdlog::info("{} leads, epoch {}", label(), epoch_);
        membership_.heartbeat_now();
        co_return Entered::leads;
      }
      if (entry.answer == store::Entry::Answer::yield) {
        rival_ = entry.others.empty() ? "another runner" : entry.others.front().label;
        co_return Entered::superseded;
      }
      for (const auto& other : entry.others)
        co_await end_if_dead(other);
    } catch (const base::Error& error) {
      if (error.error_class() == base::ErrorClass::lease_lost)
        lose(error.what());
      else if (error.error_class() != base::ErrorClass::temporary &&
               error.error_class() != base::ErrorClass::unavailable)
        throw;
      spdlog::debug("at the gate: {}", error.what());
    }
    if (!entry.others.empty() && entry.others.front().id != waiting_for) {
      waiting_for = entry.others.front().id;
      spdlog::info("{} {} {}", label(), options_.standby ? "stands by:" : "waits for", entry.others.front().label);
    }
    // A leading runner leaves within graceful_timeout after the request; after that only a running task keeps its lead.
    const bool soon = !options_.standby && std::chrono::steady_clock::now() - since < options_.graceful_timeout;
    co_await sleep(soon ? kLookAgain : std::min(options_.poll, options_.heartbeat));
  }
}

awaitable<int> Gate::lapse_dead() {
  int lapsed = 0;
  const auto& self = membership_.process();
  const auto processes = co_await pool_->run([&self](pg::Connection& connection) {
    return store::local_processes(connection, self.machine.id, self.boot_id, self.pid_namespace);
  });
  for (const auto& one : processes) {
    if (one.id == id() || !found_dead(one)) continue;
    const bool gone = co_await pool_->run(
        [&](pg::Connection& connection) { return store::process_gone(connection, one, "found dead"); });
    if (gone) ++lapsed;
    if (gone) spdlog::info("{} is dead: its work is released", one.label);
  }
  co_return lapsed;
}

awaitable<void> Gate::leave(std::string reason) {
  const member::Membership::Leave leave = [&](pg::Connection& connection) {
    store::call(connection, "runner_leave", id(), 0, reason);
  };
  co_await membership_.leave(*pool_, leave, kFarewell, reason);
  epoch_ = 0;
}

} // namespace holdfast::runner
