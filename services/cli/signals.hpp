#pragma once
// How a long-running verb runs. Signals translates its signals for its stop signal, which only gets stronger. Owned by
// the verb; main thread. The destructor stops listening.

#include "lib/base/async.hpp"
#include "lib/base/stop_signal.hpp"

#include <boost/asio/signal_set.hpp>

#include <chrono>

namespace holdfast::cli {

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
