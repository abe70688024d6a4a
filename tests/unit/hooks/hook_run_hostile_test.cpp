#include "tests/unit/hooks/hook_stage.hpp"

using namespace holdfast::hooks;
using holdfast::test::HookStage;
using std::chrono::seconds;

TEST_SUITE("hostile hooks") {
  TEST_CASE("endless output ends the hook, and what is kept of it is bounded") {
    HookStage stage;
    stage.limits.stdout_bytes = 1u << 20;
    const auto outcome =
        stage.outcome_of(R"(echo '{"type":"ArchiveResult","status":"succeeded"}'; trap '' TERM; exec yes)");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.error == "standard output exceeded 1.0 MiB");
    CHECK(std::filesystem::file_size(outcome.stdout_log) == 1u << 20);
  }

  TEST_CASE("too much output is noticed even if the hook was quick") {
    HookStage stage;
    stage.limits.stdout_bytes = 1000;
    const auto outcome = stage.outcome_of("head -c 5000 /dev/zero");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.error.starts_with("standard output exceeded"));
  }

  TEST_CASE("endless messages on stderr end the hook") {
    HookStage stage;
    stage.limits.stderr_bytes = 1u << 20;
    const auto outcome = stage.outcome_of("exec yes >&2");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.error == "standard error exceeded 1.0 MiB");
    CHECK(std::filesystem::file_size(outcome.stderr_log) <= 1u << 20);
  }

  TEST_CASE("what a link in place of its directory leads to is not read") {
    HookStage stage;
    const auto outcome = stage.outcome_of(R"(
      mkdir ../outside
      echo '{"type":"Snapshot","url":"https://secret.test/"}' >../outside/urls.jsonl
      echo secret >../outside/page.html
      mv ../sample ../aside
      ln -s outside ../sample)");
    CHECK(outcome.discovered.empty());
    CHECK(outcome.output.empty());
  }

  TEST_CASE("too many bytes in its temporary directory end the hook") {
    HookStage stage;
    stage.limits.output_bytes = 1u << 20;
    stage.temporary = stage.directory().parent_path() / "temporary";
    std::filesystem::create_directories(stage.temporary);
    const auto outcome =
        stage.outcome_of("head -c 3000000 /dev/zero >'" + stage.temporary.string() + "/big'; sleep 600");
    CHECK(outcome.error == "temporary files exceeded 1.0 MiB");
  }

  TEST_CASE("what it prints does not count as what it writes into files") {
    HookStage stage;
    stage.limits.output_bytes = 1u << 20;
    const auto outcome = stage.outcome_of("head -c 3000000 /dev/zero; echo x >file; sleep 1.3");
    CHECK(outcome.exit.clean());
    CHECK(outcome.status == Status::succeeded);
  }

  TEST_CASE("bytes that are not UTF-8 reach neither texts nor errors") {
    const auto failed = HookStage().outcome_of("printf 'caf\\351 \\000\\377\\n' >&2; printf '\\377\\376\\n'; exit 1");
    CHECK(failed.error == "caf\xEF\xBF\xBD \xEF\xBF\xBD (exit 1)");
    const auto result =
        HookStage().outcome_of(R"(printf '{"type":"ArchiveResult","status":"succeeded","output_str":"caf\351"}\n')");
    CHECK(result.status == Status::succeeded);
    CHECK(result.output == "caf\xEF\xBF\xBD");
  }

  TEST_CASE("a log replaced by a link does not lead elsewhere") {
    HookStage stage;
    const auto outcome =
        stage.outcome_of("echo precious > victim; for log in *.log; do ln -sf victim $log; done; exit 1");
    CHECK(outcome.status == Status::failed);
    CHECK(HookStage::read(stage.directory() / "victim") == "precious\n");
  }

  TEST_CASE("a hook that empties its own log is read on") {
    HookStage stage;
    auto run = stage.foreground(R"(
      echo 'some long line of prose to begin with'
      until [ -e go ]; do sleep 0.02; done
      for log in *.stdout.log; do : > $log; done
      echo '{"type":"Tag","name":"t"}')");
    run->start();
    CHECK(stage.run(run->ready(seconds(30)))); // the first line has been read by now
    std::ofstream(stage.directory() / "go") << "";
    CHECK(stage.run(run->finish()).tags == std::vector<std::string>{"t"});
  }
}
