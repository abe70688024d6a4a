// The sweep by cookie.

#include "lib/base/error.hpp"
#include "tests/process/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <stdlib.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kVariable = "HOLDFAST_COOKIE";

std::string value_of(const std::string& cookie) { return cookie.substr(cookie.find('=') + 1); }

} // namespace

TEST_CASE("the sweep ends every process with the cookie, by way of its shim") {
  Stage stage;
  const auto child = stage.start({"everything"});
  REQUIRE(stage.wait_ready());
  CHECK(process::sweep(kVariable, value_of(stage.cookie), std::chrono::seconds(5)) == 5);
  CHECK(stage.survivors().empty());
  const auto exit = stage.finish(*child); // the shim lived to report
  CHECK(exit.signal == SIGKILL);
  CHECK_FALSE(exit.shim_lost);
}

TEST_CASE("the sweep leaves processes of another cookie alone") {
  Stage spared, swept;
  const auto child = spared.start({"obey"});
  REQUIRE(spared.wait_ready());
  CHECK(process::sweep(kVariable, value_of(swept.cookie), std::chrono::seconds(5)) == 0);
  CHECK(process::sweep("OTHER_VARIABLE", value_of(spared.cookie), std::chrono::seconds(5)) == 0);
  CHECK(process::sweep("COOKIE", value_of(spared.cookie), std::chrono::seconds(5)) == 0);
  CHECK(process::sweep(kVariable, value_of(spared.cookie) + "0", std::chrono::seconds(5)) == 0);
  CHECK(spared.running(*child));
  child->terminate(std::chrono::seconds(600));
  CHECK(spared.finish(*child).code == 7);
}

TEST_CASE("the sweep spares its caller and the caller's ancestors") {
  Stage stage;
  const auto value = value_of(stage.cookie);
  // The guard and the sweeper carry the cookie; only the daemon started before is to go.
  const pid_t guard = spawn({program("holdfast-guard").string(), program("test_process").string(),
                             "--test-case=sweeping from below a marked parent", "--no-skip", "--minimal"},
                            {"PATH=/usr/bin:/bin", stage.cookie, "HOLDFAST_TEST_SWEEP=" + value}, stage.dir / "out");
  CHECK(reap(guard) == 0);
}

// Run by the case above as a process of its own.
TEST_CASE("sweeping from below a marked parent" * doctest::skip()) {
  const char* value = ::getenv("HOLDFAST_TEST_SWEEP");
  REQUIRE(value != nullptr);
  CHECK(process::sweep(kVariable, value, std::chrono::seconds(5)) == 0);
}

TEST_CASE("a sweep without a prefix is refused") {
  CHECK_THROWS_AS(process::sweep(kVariable, "", std::chrono::seconds(1)), base::Error);
  CHECK_THROWS_AS(process::sweep("", "x", std::chrono::seconds(1)), base::Error);
}
