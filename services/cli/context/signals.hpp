#pragma once
// Signals of long verbs. One handler notes all of them; interrupted() returns them, and Signals translates them for a
// stop signal, which only gets stronger. Owned by the verb; main thread. The destructor stops listening.

#include "lib/base/async.hpp"
#include "lib/base/stop_signal.hpp"

#include <boost/asio/signal_set.hpp>

#include <chrono>

namespace holdfast::cli {

// Notes SIGINT, SIGTERM and SIGHUP from now on, so that one that comes while the embedded database is being started
// still ends in good order. Called early by verbs that use Signals.
void note_signals();

// Returns true once SIGINT, SIGTERM or SIGHUP has come; calling it the first time begins to note them. System calls
// that wait are then interrupted.
bool interrupted();
// Waits so long, or until such a signal arrives, for verbs that poll. Returns interrupted().
bool interrupted_within(std::chrono::milliseconds time);

// SIGTERM and SIGHUP drain, SIGINT stops; each further one is one step stronger. SIGUSR1 switches debugging on and off.
class Signals {
public:
  Signals(asio::io_context& io, base::StopSignal& stop);
  bool received() const noexcept { return received_; }

private:
  void take(int number);
  void wait();

  asio::signal_set set_;
  base::StopSignal& stop_;
  bool received_{false};
  int last_{0};
  std::chrono::steady_clock::time_point at_;
};

// Runs the coroutine to its end on this thread; rethrows what it throws.
void run_to_end(asio::io_context& io, awaitable<void> work);

} // namespace holdfast::cli
