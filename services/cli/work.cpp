#include "lib/base/error.hpp"
#include "lib/base/stop_signal.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/view.hpp"
#include "services/cli/serve_node.hpp"
#include "services/cli/verbs.hpp"
#include "services/worker/node.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <thread>

namespace holdfast::cli {

namespace {

volatile std::sig_atomic_t early_signal = 0;

// Translates signals for the stop signal: they only get stronger.
class Signals {
public:
  Signals(asio::io_context& io, base::StopSignal& stop) : set_(io, SIGINT, SIGTERM, SIGHUP), stop_(stop) {
    if (early_signal != 0) take(early_signal);
    wait();
  }
  bool received() const { return received_; }

private:
  void take(int number) {
    // A service manager that signals the whole group reaches us twice: directly and through the guard.
    const auto arrived = std::chrono::steady_clock::now();
    const bool echo = received_ && number == last_ && arrived - at_ < std::chrono::milliseconds(250);
    received_ = true;
    last_ = number;
    at_ = arrived;
    if (echo) return;
    const auto now = stop_.strength();
    const auto least = number == SIGINT ? base::Strength::stop : base::Strength::drain;
    const auto next =
        static_cast<base::Strength>(std::min(static_cast<int>(now) + 1, static_cast<int>(base::Strength::kill)));
    stop_.raise(std::max(least, next), number == SIGINT    ? "interrupted"
                                       : number == SIGTERM ? "asked to terminate"
                                                           : "hung up");
  }

  void wait() {
    set_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      take(number);
      wait();
    });
  }

  asio::signal_set set_;
  base::StopSignal& stop_;
  bool received_{false};
  int last_{0};
  std::chrono::steady_clock::time_point at_;
};

awaitable<void> incarnations(asio::io_context& io, Context& context, base::StopSignal& stop,
                             const std::function<bool(pg::Connection&)>& done) {
  auto pause = std::chrono::milliseconds(500);
  for (;;) {
    auto options = context.node_options();
    worker::collect_leftovers(options.work_dir);
    bool again = false;
    std::string problem;
    try {
      worker::Node node(io, std::move(options), stop, done);
      again = co_await node.run() == worker::Node::Ending::lost_trust;
      pause = std::chrono::milliseconds(500);
    } catch (const base::Error& error) {
      // Once started, a node waits for its database to come back; before that, the person who starts it wants to know.
      if (!again && pause == std::chrono::milliseconds(500)) throw;
      if (error.error_class() != base::ErrorClass::unavailable && error.error_class() != base::ErrorClass::temporary)
        throw;
      problem = error.what();
      again = true;
    }
    if (!again || stop.strength() != base::Strength::none) co_return;
    if (!problem.empty()) spdlog::warn("cannot join again yet: {}", problem);
    asio::steady_timer timer(io, pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(10000)) + std::chrono::milliseconds(1);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

} // namespace

void note_early_signals() {
  struct sigaction action {};
  action.sa_handler = [](int number) { early_signal = number; };
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    sigaction(number, &action, nullptr);
}

bool serve_node(Context& context, const std::function<bool(pg::Connection&)>& done) {
  process::become_subreaper();
  asio::io_context io;
  base::StopSignal stop(io.get_executor());
  Signals signals(io, stop);
  std::exception_ptr failure;
  bool ended = false;
  asio::co_spawn(io, incarnations(io, context, stop, done), [&](std::exception_ptr error) {
    failure = error;
    ended = true;
    io.stop();
  });
  while (!ended)
    io.run();
  if (failure) std::rethrow_exception(failure);
  return signals.received();
}

int work(Context& context, const WorkOptions& options) {
  context.connection(true);
  std::function<bool(pg::Connection&)> done;
  if (options.until_idle)
    done = [](pg::Connection& connection) { return store::status(connection).one().integer("crawls_to_do") == 0; };
  serve_node(context, done);
  return base::kExitSuccess;
}

} // namespace holdfast::cli
