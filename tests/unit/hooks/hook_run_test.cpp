#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "tests/unit/hooks/hook_stage.hpp"

#include <sys/stat.h>

#include <csignal>
#include <regex>

using namespace holdfast::hooks;
using holdfast::awaitable;
using holdfast::test::HookStage;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_SUITE("foreground hooks") {
  TEST_CASE("what a hook leaves, prints and exits with becomes its status, its output and its error") {
    struct Row {
      const char *story, *script;
      Status status;
      const char *output, *error, *json = "";
    };
    const Row rows[] = {
        {"exit 0 with files names the page among them; prose is no record",
         "echo hello; echo data > data.bin; mkdir sub; echo '<p>' > sub/page.html", Status::succeeded,
         "sample/sub/page.html", ""},
        {"exit 0 without a file", "echo nothing here", Status::noresults, "", ""},
        {"exit 10, with stderr as the reason", "echo 'not an article' >&2; exit 10", Status::skipped, "not an article",
         ""},
        {"any other exit, explained by stderr",
         "printf 'warning\\n\\033[31mno such \\001page\\033[0m\\n\\n' >&2; exit 3", Status::failed, "",
         "no such page (exit 3)"},
        {"any other exit, not explained", "exit 4", Status::failed, "", "exit 4"},
        {"a record decides, with its texts",
         R"(echo '{"type":"ArchiveResult","status":"succeeded","output_str":"42 words","output_json":{"n":42}}'; exit 1)",
         Status::succeeded, "42 words", "", R"({"n":42})"},
        {"a record of failure",
         R"(echo x > file; echo noise >&2; echo '{"type":"ArchiveResult","status":"failed","error":"404"}')",
         Status::failed, "", "404"},
        {"a record without a line feed", R"(printf '{"type":"ArchiveResult","status":"skipped"}')", Status::skipped, "",
         ""},
        {"a record of no results, beside a file", R"(echo x > f; echo '{"type":"ArchiveResult","status":"noresult"}')",
         Status::noresults, "", ""},
        {"of several results the last one counts",
         R"(echo '{"type":"ArchiveResult","status":"succeeded","output_str":"first"}'
            echo '{"type":"ArchiveResult","status":"failed","output_str":"second"}')",
         Status::failed, "second", "second; 1 record that nothing reads (ArchiveResult before another)"},
        {"records that nothing reads are named, also beside a success",
         R"(echo x >x.txt; echo '{"type":"Fact","theme":"dark"}'; echo '{"type":"Snapshot"}'
            echo '{"type":"ArchiveResult","status":"succeeded","output_str":"done"}')",
         Status::succeeded, "done", "2 records that nothing reads (the first: Fact)"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.story);
      const auto outcome = HookStage().outcome_of(row.script);
      CHECK(to_string(outcome.status) == to_string(row.status));
      CHECK(outcome.output == row.output);
      CHECK(outcome.error == row.error);
      CHECK(outcome.output_json == row.json);
      CHECK_FALSE(outcome.interrupted);
    }
    for (const char* own : {"build.log", "server.pid", "cmd.sh", "stdout.log"})
      CHECK_MESSAGE(HookStage().outcome_of(std::string("echo x >") + own).status == Status::succeeded, own);
    for (const char* failing : {"kill -SEGV $$", R"(echo '{"type":"ArchiveResult","status":"fine"}')"})
      CHECK(HookStage().outcome_of(failing).status == Status::failed);
  }

  TEST_CASE("files of another hook of the plugin do not count, rewritten ones do") {
    HookStage stage;
    CHECK(stage.outcome_of("echo 1 > url.txt").status == Status::succeeded);
    CHECK(stage.outcome_of("cat url.txt").status == Status::noresults);
    CHECK(stage.outcome_of("echo 2 > url.txt; touch -d 2001-01-01 url.txt").status == Status::succeeded);
  }

  TEST_CASE("records of every kind arrive") {
    HookStage stage;
    const auto outcome = stage.outcome_of(R"(
      echo '{"type":"Tag","name":"news"}'
      echo '{"type":"Binary","name":"wget","abspath":"/usr/bin/wget"}'
      echo '{"type":"Machine","config":{"A_BINARY":"/a"}}'
      echo '{"type":"RateLimit","host":"e.org","status":429,"retry_after":30}'
      echo '{"type":"Snapshot","url":"https://e.org/"}')");
    CHECK(outcome.tags == std::vector<std::string>{"news"});
    REQUIRE(outcome.binaries.size() == 1);
    CHECK(outcome.binaries[0].path == "/usr/bin/wget");
    REQUIRE(outcome.machine_records.size() == 1);
    REQUIRE(outcome.rate_limits.size() == 1);
    CHECK(outcome.rate_limits[0].retry_after_seconds == 30.0);
    REQUIRE(outcome.discovered.size() == 1);
  }

  TEST_CASE("a hook that is no program is a failure that says so") {
    HookStage stage;
    auto run = stage.foreground("");
    std::ofstream(run->hook().path, std::ios::trunc) << "#!/does/not/exist\n";
    run->start();
    const auto outcome = stage.run(run->finish());
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.exit.start_errno != 0);
    CHECK(outcome.error.find("cannot execute") != std::string::npos);
  }

  TEST_CASE("it runs in its directory, which the runner makes") {
    HookStage stage;
    CHECK(stage.outcome_of("pwd > where; [ \"$1\" = \"--url=it's a test\" ] || exit 9").status == Status::succeeded);
    CHECK(HookStage::read(stage.directory() / "where") ==
          std::filesystem::canonical(stage.directory()).string() + "\n");
  }

  TEST_CASE("a directory that cannot be made is an error of ours, not of the hook") {
    HookStage stage;
    auto run = stage.foreground("true");
    std::filesystem::create_directories(stage.directory().parent_path().parent_path());
    std::filesystem::remove_all(stage.directory().parent_path());
    std::ofstream(stage.directory().parent_path()) << "in the way";
    CHECK_THROWS_AS(run->start(), holdfast::base::Error);
    std::filesystem::remove(stage.directory().parent_path());
  }

  TEST_CASE("what another hook has put in the place of the directory is taken away, not followed") {
    HookStage stage;
    std::filesystem::create_directories(stage.directory().parent_path());
    const auto elsewhere = stage.directory().parent_path() / "elsewhere";
    std::filesystem::create_directory(elsewhere);
    std::filesystem::create_directory_symlink(elsewhere, stage.directory());
    auto run = stage.foreground("echo mine >mine.txt");
    run->start();
    CHECK(stage.run(run->finish()).status == Status::succeeded);
    CHECK_FALSE(std::filesystem::is_symlink(stage.directory()));
    CHECK(std::filesystem::is_empty(elsewhere));
  }

  TEST_CASE("runner files have the contract's names, and only the script stays after a success") {
    HookStage stage;
    auto run = stage.foreground("echo out; until [ -e go ]; do :; done");
    run->start();
    stage.run_until([&] { return !stage.files(".pid").empty(); });
    const std::regex form(R"(on_Snapshot__50_sample\.[0-9a-f]{32}\.(stdout\.log|stderr\.log|pid|sh))");
    CHECK(stage.files().size() == 4);
    for (const std::string& name : stage.files()) {
      CAPTURE(name);
      CHECK(std::regex_match(name, form));
      CHECK(holdfast::base::is_runner_file(name));
    }
    const auto pid_file = stage.directory() / stage.files(".pid").at(0);
    CHECK(HookStage::read(pid_file) == std::to_string(run->pid()) + "\n");
    struct stat status {};
    REQUIRE(stat(pid_file.c_str(), &status) == 0);
    CHECK(std::abs(static_cast<double>(status.st_mtime - time(nullptr))) < 60.0);

    std::ofstream(stage.directory() / "go") << "";
    const auto outcome = stage.run(run->finish());
    CHECK(outcome.stdout_log.empty());
    CHECK(stage.files(".log").empty());
    CHECK(stage.files(".pid").empty());
    const auto scripts = stage.files(".sh");
    REQUIRE(scripts.size() == 1);
    const auto script = stage.directory() / scripts[0];
    REQUIRE(stat(script.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0755);
    const std::string text = HookStage::read(script);
    CHECK(text.find("'--url=it'\\''s a test'") != std::string::npos);
    CHECK(text.find("hunter2") == std::string::npos);
  }

  TEST_CASE("logs stay after a failure, and the outcome says where") {
    HookStage stage;
    const auto outcome = stage.outcome_of("echo out; echo err >&2; exit 1");
    CHECK(HookStage::read(outcome.stdout_log) == "out\n");
    CHECK(HookStage::read(outcome.stderr_log) == "err\n");
    CHECK(stage.files(".pid").empty());
  }

  TEST_CASE("a timeout ends the hook and says after how long") {
    HookStage stage;
    stage.limits.timeout = milliseconds(300);
    const auto outcome = stage.outcome_of("echo x > file; sleep 600");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.timed_out);
    CHECK(outcome.error == "timed out after 0.3s");
    CHECK(outcome.exit.signal == SIGTERM);
  }

  TEST_CASE("a hook that does nothing is ended before its timeout") {
    HookStage stage;
    stage.limits.stall = milliseconds(1500);
    const auto outcome =
        stage.outcome_of("echo x > file; echo '{\"type\":\"ArchiveResult\",\"status\":\"succeeded\"}'; sleep 600");
    CHECK(outcome.status == Status::failed);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.error == "made no progress for 1.5s");
    CHECK(outcome.exit.signal == SIGTERM);
  }

  TEST_CASE("a background hook may wait: that is what it is for") {
    HookStage stage;
    stage.limits.stall = milliseconds(100);
    auto run = stage.background("echo ready; trap 'exit 0' TERM; until [ -e go ]; do sleep 0.05; done");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    auto other = stage.foreground("sleep 600"); // is ended, several looks later
    other->start();
    CHECK(stage.run(other->finish()).error == "made no progress for 0.1s");
    run->end(milliseconds(30000), false);
    CHECK(stage.run(run->finish()).status != Status::failed);
  }

  TEST_CASE("a timeout ends a hook that ignores TERM, too") {
    HookStage stage;
    stage.limits.timeout = milliseconds(300);
    const auto outcome = stage.outcome_of("trap '' TERM; while :; do sleep 0.05; done");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.error == "timed out after 0.3s");
    CHECK(outcome.exit.signal == SIGKILL);
  }

  TEST_CASE("a claimed success does not survive a timeout") {
    HookStage stage;
    stage.limits.timeout = milliseconds(500);
    const auto outcome = stage.outcome_of(R"(echo '{"type":"ArchiveResult","status":"succeeded"}'; sleep 600)");
    CHECK(outcome.status == Status::failed);
    CHECK(outcome.error == "timed out after 0.5s");
  }

  TEST_CASE("a silent end while we are leaving is an interruption, not a failure") {
    for (const char* script :
         {"echo ready; sleep 600", "trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done",
          "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done",
          "trap '' TERM; echo ready; while :; do sleep 0.05; done"}) {
      CAPTURE(script);
      HookStage stage;
      auto run = stage.foreground(script);
      run->start();
      CHECK(stage.run(run->ready(seconds(30))));
      run->end(milliseconds(300), true);
      const auto outcome = stage.run(run->finish());
      CHECK(outcome.interrupted);
      CHECK(outcome.status == Status::failed);
      CHECK_FALSE(outcome.timed_out);
      CHECK(outcome.stdout_log.empty());
    }
  }

  TEST_CASE("a hook that has a reason or a record of its own is not interrupted") {
    HookStage stage;
    auto failing = stage.foreground("trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done");
    failing->start();
    CHECK(stage.run(failing->ready(seconds(30))));
    failing->end(seconds(5), true);
    CHECK_FALSE(stage.run(failing->finish()).interrupted);

    auto recorded = stage.foreground(R"(echo '{"type":"ArchiveResult","status":"succeeded"}'; sleep 600)");
    recorded->start();
    CHECK(stage.run(recorded->ready(seconds(30))));
    recorded->end(seconds(5), true);
    const auto outcome = stage.run(recorded->finish());
    CHECK_FALSE(outcome.interrupted);
    CHECK(outcome.status == Status::succeeded);
  }

  TEST_CASE("a foreground hook that is ended for another reason has failed") {
    HookStage stage;
    auto run = stage.foreground("echo x > file; echo ready; sleep 600");
    run->start();
    CHECK(stage.run(run->ready(seconds(30))));
    run->end(seconds(5), false);
    const auto outcome = stage.run(run->finish());
    CHECK(outcome.status == Status::failed);
    CHECK_FALSE(outcome.interrupted);
  }

  TEST_CASE("urls.jsonl and streamed URLs are merged") {
    HookStage stage;
    const auto outcome = stage.outcome_of(R"(
      echo '{"type":"Snapshot","url":"https://a/","title":"short","tags":"x"}'
      echo '{"type":"Snapshot","url":"https://b/"}'
      { echo '{"type":"Snapshot","url":"https://a/","title":"much longer","tags":["y"],"plugin":"parse"}'
        echo 'junk'
        echo '{"url":"https://c/"}'
        printf '{"type":"Snapshot","url":"https://a/"}'; } > urls.jsonl)");
    REQUIRE(outcome.discovered.size() == 3);
    CHECK(outcome.discovered[0].url == "https://a/");
    CHECK(outcome.discovered[0].title == "much longer");
    CHECK(outcome.discovered[0].tags == std::vector<std::string>{"x", "y"});
    CHECK(outcome.discovered[0].plugin == "parse");
    CHECK(outcome.discovered[1].url == "https://b/");
    CHECK(outcome.discovered[2].url == "https://c/");
    CHECK(outcome.error == "1 record that nothing reads (line of urls.jsonl)");
    CHECK(outcome.status == Status::succeeded);
  }

  TEST_CASE("a urls.jsonl of another hook, or one that is no file, is not read") {
    HookStage stage;
    CHECK(stage.outcome_of(R"(echo '{"url":"https://a/"}' > urls.jsonl)").discovered.size() == 1);
    CHECK(stage.outcome_of("true").discovered.empty());
    CHECK(HookStage().outcome_of("mkfifo urls.jsonl").discovered.empty());
    CHECK(HookStage().outcome_of("mkdir urls.jsonl").discovered.empty());
    CHECK(HookStage().outcome_of(R"(echo '{"url":"https://a/"}' > x; ln -s x urls.jsonl)").discovered.empty());
  }

  TEST_CASE("two hooks run at once without mixing their records") {
    HookStage stage;
    auto first =
        stage.foreground(R"(until [ -e second ]; do :; done; touch first; echo '{"type":"Tag","name":"first"}')");
    auto second = stage.hook("on_Snapshot__51_other.sh",
                             R"(touch second; until [ -e first ]; do :; done; echo '{"type":"Tag","name":"second"}')");
    first->start();
    second->start();
    CHECK(stage.run(first->finish()).tags == std::vector<std::string>{"first"});
    CHECK(stage.run(second->finish()).tags == std::vector<std::string>{"second"});
  }

  TEST_CASE("misuse is named") {
    HookStage stage;
    auto run = stage.foreground("true");
    CHECK(run->pid() == 0);
    CHECK_THROWS_AS(stage.run(run->finish()), holdfast::base::Error);
    run->start();
    CHECK_THROWS_AS(run->start(), holdfast::base::Error);
    stage.run(run->finish());
    run->end(seconds(1), true); // after the end: nothing to do
    run->kill();
    CHECK(stage.run(run->finish()).status == Status::noresults); // the outcome can be asked for again
  }
}
