#include "tests/support/temp_dir.hpp"
#include "tests/unit/config/support.hpp"

using namespace holdfast;

namespace {

config::Settings with(const test::TempDir& directory, const test::Overrides& overrides) {
  return config::Settings::load(directory.write("a.yaml", "margin: 20s\n"), {{"HOME", "/home/me"}}, overrides);
}

} // namespace

TEST_SUITE("lease rule") {
  TEST_CASE("the defaults keep the rule") {
    const test::TempDir directory;
    CHECK_NOTHROW(config::check_lease_rule(with(directory, {})));
  }

  TEST_CASE("two heartbeats must fit between lease and margin") {
    const test::TempDir directory;
    CHECK_NOTHROW(config::check_lease_rule(with(directory, {{"heartbeat", "20s"}})));
    try {
      config::check_lease_rule(with(directory, {{"heartbeat", "20001ms"}}));
      FAIL("accepted");
    } catch (const base::Error& error) {
      CHECK(error.error_class() == base::ErrorClass::configuration);
      CHECK(std::string(error.what()) ==
            "two heartbeats must fit into lease - margin: heartbeat is 20001ms (--heartbeat), lease is 60s "
            "(default), margin is 20s (" +
                (directory / "a.yaml").string() + ":1)");
      CHECK_FALSE(error.hint().empty());
    }
    CHECK_THROWS_AS(config::check_lease_rule(with(directory, {{"lease", "15s"}})), base::Error);
  }

  TEST_CASE("hooks must be dead before others may take their work") {
    const test::TempDir directory;
    CHECK_NOTHROW(config::check_lease_rule(with(directory, {{"kill_grace", "14999ms"}})));
    CHECK_THROWS_WITH_AS(config::check_lease_rule(with(directory, {{"kill_grace", "15s"}})),
                         doctest::Contains("kill_grace is 15s (--kill-grace), margin is 20s"), base::Error);
  }

  TEST_CASE("a short lease needs less time to notice") {
    const test::TempDir directory;
    const test::Overrides quick{{"lease", "3s"}, {"heartbeat", "500ms"}, {"margin", "1500ms"}};
    auto fits = quick, late = quick;
    fits.emplace_back("kill_grace", "1249ms");
    late.emplace_back("kill_grace", "1250ms");
    CHECK_NOTHROW(config::check_lease_rule(with(directory, fits)));
    CHECK_THROWS_WITH_AS(config::check_lease_rule(with(directory, late)),
                         doctest::Contains("kill_grace + 250 ms must be less than margin"), base::Error);
  }

  TEST_CASE("two heartbeats of the runner must fit into its lease") {
    const test::TempDir directory;
    CHECK_NOTHROW(config::check_lease_rule(with(directory, {{"runner.heartbeat", "7500ms"}})));
    CHECK_THROWS_WITH_AS(
        config::check_lease_rule(with(directory, {{"runner.heartbeat", "8s"}})),
        doctest::Contains("runner.heartbeat is 8s (--runner-heartbeat), runner.lease is 15s (default)"), base::Error);
  }
}
