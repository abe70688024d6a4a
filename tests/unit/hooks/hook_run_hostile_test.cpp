#include "tests/unit/hooks/hook_stage.hpp"

#include <csignal>

using namespace holdfast::hooks;
using holdfast::test::HookStage;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_SUITE("hostile hooks") {
  TEST_CASE("a line of 50 MB is dropped, and the record after it is read") {
    HookStage stage;
    const auto outcome = stage.outcome_of(R"(
      head -c 50000000 /dev/zero | tr '\0' x; echo
      echo '{"type":"ArchiveResult","status":"succeeded","output_str":"after"}')");
    CHECK(outcome.status == Status::succeeded);
    CHECK(outcome.output == "after");
    CHECK(outcome.dropped_lines == 1);
  }

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

  TEST_CASE("too many bytes in its directory end the hook") {
    HookStage stage;
    stage.limits.output_bytes = 1u << 20;
    const auto outcome = stage.outcome_of("mkdir -p a/b; head -c 3000000 /dev/zero > a/b/big; sleep 600");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.error == "output files exceeded 1.0 MiB");
    CHECK_FALSE(outcome.timed_out);
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
    CHECK(failed.ignored_lines == 1);
    const auto result =
        HookStage().outcome_of(R"(printf '{"type":"ArchiveResult","status":"succeeded","output_str":"caf\351"}\n')");
    CHECK(result.status == Status::succeeded);
    CHECK(result.output == "caf\xEF\xBF\xBD");
  }

  TEST_CASE("records of wrong shapes are ignored and do not decide") {
    HookStage stage;
    const auto outcome = stage.outcome_of(R"(cat <<'END'
{"type":"ArchiveResult"}
{"type":"ArchiveResult","status":["succeeded"]}
{"type":["ArchiveResult"],"status":"succeeded"}
["ArchiveResult"]
{"type":"Snapshot","url":{}}
{"type":"Snapshot"}
{"type":"Machine","config":"x"}
{"type":"RateLimit","host":5}
{"type":"ArchiveResult","status":"succeeded"
{"type":"ArchiveResult","status":"succeeded"}}
null
END
exit 1)");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.ignored_lines == 11);
    CHECK(outcome.discovered.empty());
  }

  TEST_CASE("a hook that removes its logs and everything else still has its result") {
    HookStage stage;
    const auto outcome =
        stage.outcome_of(R"(rm -f *; echo '{"type":"ArchiveResult","status":"succeeded","output_str":"gone"}')");
    CHECK(outcome.status == Status::succeeded);
    CHECK(outcome.output == "gone");
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

  TEST_CASE("children that it leaves behind are gone when it is finished") {
    HookStage stage;
    const auto outcome = stage.outcome_of("setsid sleep 600 & echo $! > pid.txt; echo done");
    const pid_t left = static_cast<pid_t>(std::stol(HookStage::read(stage.directory() / "pid.txt")));
    CHECK(::kill(left, 0) != 0);
    CHECK(outcome.status == Status::succeeded);
    CHECK(outcome.exit.leftovers >= 1);
  }

  TEST_CASE("a very deep directory does not exhaust anything") {
    HookStage stage;
    stage.limits.output_bytes = 1u << 30;
    const auto outcome =
        stage.outcome_of("for i in $(seq 300); do mkdir d && cd d || exit 1; done; echo x > f; cd /; sleep 1.2");
    CHECK(outcome.exit.clean());
    CHECK(outcome.status == Status::noresults); // too deep to be looked for; a record would have said so
  }
}
