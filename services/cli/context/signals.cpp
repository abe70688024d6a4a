#include "services/cli/context/signals.hpp"

#include "lib/base/log.hpp"

#include <boost/asio/co_spawn.hpp>

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <exception>

namespace holdfast::cli {

namespace {

volatile std::sig_atomic_t noted = 0;

void note(int flags) {
  struct sigaction action {};
  action.sa_handler = [](int number) { noted = number; };
  action.sa_flags = flags;
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    sigaction(number, &action, nullptr);
}

} // namespace

void note_signals() {
  note(SA_RESTART);
  struct sigaction nothing {}; // too early to debug, but no reason to die; ignored, it would be so in hooks as well
  nothing.sa_handler = [](int) {};
  nothing.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &nothing, nullptr);
}

bool interrupted() {
  static const bool noting = (note(0), true);
  return noting && noted != 0;
}

bool interrupted_within(std::chrono::milliseconds time) {
  if (!interrupted()) ::poll(nullptr, 0, static_cast<int>(time.count()));
  return interrupted();
}

Signals::Signals(asio::io_context& io, base::StopSignal& stop) : set_(io, SIGINT, SIGTERM, SIGHUP), stop_(stop) {
  set_.add(SIGUSR1);
  if (noted != 0) take(noted);
  wait();
}

void Signals::take(int number) {
  if (number == SIGUSR1) {
    base::toggle_debugging();
    return;
  }
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

void Signals::wait() {
  set_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    take(number);
    wait();
  });
}

void run_to_end(asio::io_context& io, awaitable<void> work) {
  std::exception_ptr failure;
  bool ended = false;
  asio::co_spawn(io, std::move(work), [&](std::exception_ptr error) {
    failure = error;
    ended = true;
    io.stop();
  });
  while (!ended)
    io.run();
  if (failure) std::rethrow_exception(failure);
}

} // namespace holdfast::cli
