#include "tests/support/temp_dir.hpp"
#include "tests/unit/config/support.hpp"

using namespace holdfast;
using config::Settings;

TEST_SUITE("settings from the environment") {
  TEST_CASE("a variable sets its key and is remembered as origin") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "worker:\n  snapshots: 2\n");
    const auto settings = Settings::load(file, {{"HOLDFAST_WORKER_SNAPSHOTS", "7"}, {"PATH", "/bin"}}, {});
    CHECK(settings.integer("worker.snapshots") == 7);
    CHECK(settings.value("worker.snapshots").origin == "environment HOLDFAST_WORKER_SNAPSHOTS");
  }

  TEST_CASE("an unknown variable is an error with the nearest name as hint") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "");
    const auto [message, hint] = test::complaint(file, {{"HOLDFAST_URL_ALLOW_PRIVATE", "true"}});
    CHECK(message == "environment: there is no setting \"HOLDFAST_URL_ALLOW_PRIVATE\"");
    CHECK(hint == "Did you mean \"HOLDFAST_URLS_ALLOW_PRIVATE\"?");
    CHECK(test::complaint(file, {{"HOLDFAST_", "x"}}).message == "environment: there is no setting \"HOLDFAST_\"");
    test::complaint(file, {{"HOLDFAST_hook_timeout", "1s"}});
    test::complaint(file, {{"HOLDFAST_COOKIES", "1s"}});
    test::complaint(file, {{"HOLDFAST_TEST", "1s"}});
  }

  TEST_CASE("variables that are no settings are left alone") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "");
    CHECK_NOTHROW(Settings::load(
        file, {{"HOLDFAST_COOKIE", "x"}, {"HOLDFAST_TEST_KEEP", "1"}, {"HOLDFASTER", "x"}, {"holdfast_x", "y"}}, {}));
  }

  TEST_CASE("a bad value names the variable") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "");
    CHECK(test::complaint(file, {{"HOLDFAST_LEASE", "soon"}}).message ==
          "environment HOLDFAST_LEASE: lease: \"soon\" is not a duration");
    CHECK(test::complaint(file, {{"HOLDFAST_WORKER_SNAPSHOTS", ""}}).message ==
          "environment HOLDFAST_WORKER_SNAPSHOTS: worker.snapshots: \"\" is not a whole number");
  }

  TEST_CASE("an empty variable empties a text") {
    const test::TempDir directory;
    const auto file = directory.write("a.yaml", "database:\n  url: postgresql://h/d\n");
    CHECK(Settings::load(file, {{"HOLDFAST_DATABASE_URL", ""}}, {}).text("database.url").empty());
  }
}
