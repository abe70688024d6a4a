#include "services/runner/duties.hpp"

#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <map>

namespace holdfast::runner {

namespace {

constexpr std::chrono::milliseconds kLapseEvery{2000};
constexpr std::chrono::milliseconds kRejoin{500};

} // namespace

awaitable<void> do_duties(Gate& gate, Purge& purge, std::chrono::milliseconds poll, base::StopSignal& stop) {
  std::map<std::string, std::string> failing; // told once, not each time
  auto lapsed = std::chrono::steady_clock::time_point{};
  while (gate.leads() && stop.strength() == base::Strength::none) {
    bool done = false;
    try {
      const auto run = co_await gate.pool().run(
          [&gate](pg::Connection& connection) { return store::runner_duty(connection, gate.id(), gate.epoch()); });
      done = run.has_value();
      if (run) {
        if (!run->error.empty() && failing[run->duty] != run->error)
          spdlog::error("duty {} failed: {}", run->duty, run->error);
        failing[run->duty] = run->error;
        if (run->count > 0)
          spdlog::debug("duty {}: {} in {}", run->duty, run->count,
                        base::format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(run->duration)));
      } else if (std::chrono::steady_clock::now() - lapsed > kLapseEvery) {
        co_await gate.lapse_dead();
        done = co_await purge.step() > 0;
        if (!done) lapsed = std::chrono::steady_clock::now();
      }
    } catch (const base::Error& error) {
      if (error.error_class() == base::ErrorClass::lease_lost)
        gate.lose(error.what());
      else if (error.error_class() != base::ErrorClass::temporary &&
               error.error_class() != base::ErrorClass::unavailable)
        throw;
      spdlog::debug("no duty: {}", error.what());
    }
    if (!done) co_await gate.sleep(poll);
  }
}

awaitable<Ending> run(asio::io_context& io, GateOptions options, base::StopSignal& stop) {
  bool joined = false;
  for (;;) {
    std::unique_ptr<Gate> gate;
    std::string problem;
    try {
      gate = std::make_unique<Gate>(io, options, stop);
      joined = true;
      if (options.joined) options.joined(gate->id());
    } catch (const base::Error& error) {
      // At the start a user wants to know; later the runner waits for its database.
      if (!joined ||
          (error.error_class() != base::ErrorClass::temporary && error.error_class() != base::ErrorClass::unavailable))
        throw;
      problem = error.what();
    }
    if (gate) {
      if (co_await gate->enter() == Gate::Entered::leads) {
        Purge purge(gate->pool(), options.archive_root, gate->collection_id());
        co_await do_duties(*gate, purge, options.poll, stop);
      }
      const bool stopped = stop.strength() != base::Strength::none;
      const std::string reason = stopped ? stop.reason() : gate->ending();
      co_await gate->leave(0, reason);
      if (stopped) co_return Ending::stopped;
      if (gate->made_way() && !options.standby && !options.spawns) co_return Ending::superseded;
      options.standby = true;
    } else {
      spdlog::debug("cannot join again yet: {}", problem);
    }
    gate.reset();
    asio::steady_timer timer(io, kRejoin);
    co_await timer.async_wait(asio::use_awaitable);
    if (stop.strength() != base::Strength::none) co_return Ending::stopped;
  }
}

} // namespace holdfast::runner
