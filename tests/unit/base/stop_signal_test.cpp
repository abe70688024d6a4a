#include "lib/base/stop_signal.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <doctest/doctest.h>

#include <vector>

using namespace holdfast;
using base::Strength;

namespace {

// Runs what is ready; nothing in these tests waits for a clock.
void run_ready(asio::io_context& context) {
  context.restart();
  context.poll();
}

awaitable<void> note_when(base::StopSignal& signal, Strength strength, std::vector<Strength>& seen) {
  co_await signal.reached(strength);
  seen.push_back(strength);
}

} // namespace

TEST_SUITE("stop signal") {
  TEST_CASE("it only gets stronger and keeps the first reason of each strength") {
    asio::io_context context;
    base::StopSignal signal(context.get_executor());
    CHECK(signal.strength() == Strength::none);
    CHECK(signal.reason().empty());

    signal.raise(Strength::stop, "SIGTERM twice");
    signal.raise(Strength::stop, "another");
    signal.raise(Strength::drain, "SIGTERM");
    signal.raise(Strength::none, "nothing");
    CHECK(signal.strength() == Strength::stop);
    CHECK(signal.reason() == "SIGTERM twice");

    signal.raise(Strength::kill, "lease lost");
    CHECK(signal.strength() == Strength::kill);
    CHECK(signal.reason() == "lease lost");
  }

  TEST_CASE("each waiter wakes at its own strength or at a stronger one") {
    asio::io_context context;
    base::StopSignal signal(context.get_executor());
    std::vector<Strength> seen;
    for (const Strength strength : {Strength::drain, Strength::stop, Strength::kill}) {
      asio::co_spawn(context, note_when(signal, strength, seen), asio::detached);
    }
    run_ready(context);
    CHECK(seen.empty());

    signal.raise(Strength::drain, "drain");
    run_ready(context);
    CHECK(seen == std::vector{Strength::drain});

    signal.raise(Strength::kill, "kill");
    run_ready(context);
    CHECK(seen.size() == 3);
  }

  TEST_CASE("a strength that is there already is reached at once") {
    asio::io_context context;
    base::StopSignal signal(context.get_executor());
    signal.raise(Strength::kill, "kill");
    std::vector<Strength> seen;
    asio::co_spawn(context, note_when(signal, Strength::drain, seen), asio::detached);
    run_ready(context);
    CHECK(seen.size() == 1);
  }

  TEST_CASE("a waiter that loses a race ends without a signal") {
    using namespace asio::experimental::awaitable_operators;
    asio::io_context context;
    base::StopSignal signal(context.get_executor());
    bool ended = false;
    const auto race = [&]() -> awaitable<void> {
      co_await (signal.reached(Strength::drain) || asio::post(asio::use_awaitable));
      ended = true;
    };
    asio::co_spawn(context, race(), asio::detached);
    run_ready(context);
    CHECK(ended);
    CHECK(signal.strength() == Strength::none);
  }
}
