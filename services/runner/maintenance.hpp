#pragma once
// A runner's life: through the gate, maintenance tasks for as long as it leads, out again, and what comes after that.
// Stateless functions; main thread.

#include "lib/base/async.hpp"
#include "lib/base/stop_signal.hpp"
#include "services/runner/gate.hpp"

namespace holdfast::runner {

enum class Ending {
  stopped,    // by a signal
  superseded, // a newer runner leads or is about to
};

// Stands at the gate until it is stopped. A runner that is requested to leave ends, unless it stands by or has workers:
// then it waits for its turn again. One that lost its lead because its heartbeats failed waits in any case: it must not
// replace its successor. Throws as the first joining does.
awaitable<Ending> run(asio::io_context& io, GateOptions options, base::StopSignal& stop);

} // namespace holdfast::runner
