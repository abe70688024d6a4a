#include "tests/unit/hooks/hook_stage.hpp"

#include <csignal>

using namespace holdfast::hooks;
using holdfast::test::HookStage;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_SUITE("background hooks") {
  TEST_CASE("the first output makes it ready, and its timeout does not end it") {
    HookStage stage;
    stage.limits.timeout = milliseconds(1);
    auto run = stage.background("echo 'Chrome is up'; until [ -e go ]; do sleep 0.02; done; echo x > file");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    stage.run_until([&] { return run->pid() > 0; }); // the shim says so, and the hook may be quicker
    std::ofstream(stage.directory() / "go") << "";
    const auto outcome = stage.run(run->finish());
    CHECK(outcome.status == Status::succeeded);
    CHECK_FALSE(outcome.timed_out);
  }

  TEST_CASE("output without a newline is enough") {
    HookStage stage;
    auto run = stage.background("printf r; sleep 600");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    run->end(seconds(5), false);
    CHECK(stage.run(run->finish()).status == Status::noresults);
  }

  TEST_CASE("an exit before any output is ready only if it was exit 0") {
    HookStage stage;
    auto good = stage.background("exit 0");
    good->start();
    CHECK(stage.run(good->ready(seconds(30))));
    auto bad = stage.background("echo 'no display' >&2; exit 1");
    bad->start();
    CHECK_FALSE(stage.run(bad->ready(seconds(30))));
    CHECK(stage.run(bad->finish()).error == "no display (exit 1)");
  }

  TEST_CASE("readiness is waited for no longer than its limit") {
    HookStage stage;
    auto run = stage.background("exec >&-; sleep 600"); // closes stdout: it can never become ready
    run->start();
    CHECK_FALSE(stage.run(run->ready(milliseconds(200))));
    run->kill();
    const auto outcome = stage.run(run->finish());
    CHECK(outcome.status == Status::failed);
    CHECK_FALSE(outcome.interrupted);
  }

  TEST_CASE("its polite end counts as exit 0") {
    HookStage stage;
    auto silent = stage.background("echo ready; sleep 600");
    silent->start();
    CHECK(stage.run(silent->ready(seconds(30))));
    silent->end(seconds(5), false);
    const auto nothing = stage.run(silent->finish());
    CHECK(nothing.status == Status::noresults);
    CHECK(nothing.error.empty());
    CHECK(nothing.stdout_log.empty());

    auto writing =
        stage.background("trap 'echo x > late.txt; exit 143' TERM; echo ready; while :; do sleep 0.02; done");
    writing->start();
    CHECK(stage.run(writing->ready(seconds(30))));
    writing->end(seconds(5), false);
    const auto written = stage.run(writing->finish());
    CHECK(written.status == Status::succeeded);
    CHECK(written.output == "sample/late.txt");
  }

  TEST_CASE("a record that it prints when asked to end is its result") {
    HookStage stage;
    auto run = stage.background(R"(
      trap 'echo "{\"type\":\"ArchiveResult\",\"status\":\"succeeded\",\"output_str\":\"9 requests\"}"; exit 0' TERM
      echo ready; while :; do sleep 0.02; done)");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    run->end(seconds(5), false);
    const auto outcome = stage.run(run->finish());
    CHECK(outcome.status == Status::succeeded);
    CHECK(outcome.output == "9 requests");
  }

  TEST_CASE("one that has to be killed has failed") {
    HookStage stage;
    auto run = stage.background("trap '' TERM; echo x > file; echo ready; while :; do sleep 0.05; done");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    run->end(milliseconds(200), false);
    const auto outcome = stage.run(run->finish());
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.exit.signal == SIGKILL);
  }

  TEST_CASE("a downloader may finish within the grace") {
    HookStage stage;
    auto run = stage.background("trap '' TERM; echo ready; until [ -e go ]; do sleep 0.02; done; echo x > file");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    run->end(seconds(60), false);
    std::ofstream(stage.directory() / "go") << "";
    CHECK(stage.run(run->finish()).status == Status::succeeded);
  }

  TEST_CASE("leaving interrupts it as well") {
    HookStage stage;
    auto run = stage.background("echo ready; sleep 600");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    run->end(seconds(5), true);
    CHECK(stage.run(run->finish()).interrupted);
  }

  TEST_CASE("a run that is dropped kills its hook and clears its pid file") {
    HookStage stage;
    auto run = stage.background("echo ready; sleep 600");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    stage.run_until([&] { return !stage.files(".pid").empty(); });
    const pid_t pid = run->pid();
    run.reset();
    stage.run_until([&] { return ::kill(pid, 0) != 0; });
    stage.run_until([&] { return stage.files(".pid").empty(); });
  }
}
