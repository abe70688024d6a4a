#include "lib/base/trust_window.hpp"

#include <doctest/doctest.h>

using namespace holdfast::base;
using namespace std::chrono_literals;

TEST_SUITE("trust window") {
  TEST_CASE("nothing is trusted before the first heartbeat") {
    const TrustWindow window(60s, 20s);
    CHECK_FALSE(window.trusted(TrustWindow::Clock::now()));
  }

  TEST_CASE("trust ends a margin before the lease counted from when the heartbeat was sent") {
    TrustWindow window(60s, 20s);
    const TrustWindow::Clock::time_point sent(1000s);
    window.extend(sent);
    CHECK(window.trusted(sent));
    CHECK(window.trusted(sent + 40s - 1ns));
    CHECK_FALSE(window.trusted(sent + 40s));
  }

  TEST_CASE("an older heartbeat that arrives late changes nothing") {
    TrustWindow window(60s, 20s);
    const TrustWindow::Clock::time_point sent(1000s);
    window.extend(sent);
    window.extend(sent - 10s);
    CHECK(window.trusted_until() == sent + 40s);
    window.extend(sent + 10s);
    CHECK(window.trusted_until() == sent + 50s);
  }
}
