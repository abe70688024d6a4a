// Crawl sessions: crawl hooks run once a worker and crawl, are shared, and end with their last user.

#include "tests/worker/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// A daemon that says where its socket would be, and lives until it is told to go.
constexpr const char* kDaemon = "echo $$ >daemon.txt\n"
                                "trap 'exit 0' TERM\n"
                                "echo ready\n"
                                "while :; do sleep 0.05; done\n";
// Copies what the daemon left in the crawl's directory.
constexpr const char* kUse = "cp \"$CRAWL_DIR/browser/daemon.txt\" daemon.txt\n";

constexpr const char* kSessions = "select status, count(*) from holdfast.v_session group by 1 order by 1";

} // namespace

TEST_CASE("crawl hooks run once and are shared by the snapshots of the crawl") {
  WorkerStage stage;
  stage.hook("browser", "on_CrawlSetup__10_prepare.sh", "test -s \"$CRAWL_DIR/.heartbeat.json\" || exit 3\n");
  stage.hook("browser", "on_CrawlSetup__90_launch.daemon.bg.sh", kDaemon);
  stage.hook("page", "on_Snapshot__10_page.sh", kUse);
  stage.add({WorkerStage::url("1"), WorkerStage::url("2"), WorkerStage::url("3"), WorkerStage::url("4")});
  stage.work();
  CHECK(stage.table("select outcome, count(*) from holdfast.snapshot_sealed group by 1") == "succeeded|4");
  CHECK(stage.table(kSessions) == "closed|1");
  CHECK(stage.table("select hook_name, status, ended_at is not null from holdfast.session_hook order by 1") ==
        "on_CrawlSetup__10_prepare|noresults|t\non_CrawlSetup__90_launch.daemon.bg|succeeded|t");
  CHECK(stage.value("select string_agg(to_state, ' ' order by id) from holdfast.event where lifecycle = "
                    "'session'") == "ready draining closed");
  // The same daemon served them all.
  std::set<std::string> daemons;
  for (const auto& attempt : stage.attempts_on_disk())
    daemons.insert(read_file(stage.archive() / attempt / "page/daemon.txt"));
  CHECK(daemons.size() == 1);
}

TEST_CASE("where a crawl is open is a query, and a sealed crawl is open nowhere") {
  WorkerStage stage;
  stage.hook("browser", "on_Crawl__90_launch.bg.sh", kDaemon);
  stage.hook("page", "on_Snapshot__10_page.sh", "gate held\necho x >x.txt\n");
  const std::string crawl = stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("held");
  CHECK(stage.table("select status, process_id, running like 'browser/on_Crawl__90_launch.bg pid %' from "
                    "holdfast.v_session where crawl_id = $1::uuid and ended_at is null",
                    pg::Params::of(crawl)) == "ready|" + worker.id + "|t");
  stage.open("held");
  stage.until_sealed();
  stage.until("the session is closed",
              [&] { return stage.number("select count(*) from holdfast.v_session where ended_at is null") == 0; });
  CHECK(stage.hooks().empty());
  CHECK(stage.value("select reason from holdfast.v_session") == "its crawl is sealed");
  stage.leave(worker);
}

TEST_CASE("a crawl hook that fails puts the snapshot back, spent; a later try opens the session again") {
  WorkerStage stage;
  stage.hook("browser", "on_CrawlSetup__90_launch.sh",
             "test -e \"$gates/mended\" || { echo 'no display' >&2; exit 1; }\n");
  stage.hook("page", "on_Snapshot__10_page.sh", "echo x >x.txt\n");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until("the snapshot is released", [&] {
    return stage.number("select count(*) from holdfast.snapshot_queue where owner_id is null and attempts = 1 and "
                        "retry_at > clock_timestamp() and reason like '%no display%'") == 1;
  });
  stage.until("its session has said why", [&] { // by a call of its own
    return stage.value("select status || ': ' || reason from holdfast.v_session") ==
           "failed: crawl hook browser/on_CrawlSetup__90_launch failed: no display (exit 1)";
  });
  stage.open("mended");
  stage.pass("1 day");
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.table(kSessions) == "closed|1\nfailed|1");
  CHECK(stage.value("select outcome from holdfast.snapshot_sealed") == "succeeded");
}

TEST_CASE("a crawl whose only crawl hooks are the last ones is open, too") {
  WorkerStage stage;
  stage.hook("report", "on_CrawlEnd__10_report.sh", "test -s \"$CRAWL_DIR/.heartbeat.json\" || exit 3\n");
  stage.hook("fetch", "on_Snapshot__10_fetch.sh", "echo page > page.html\n");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select hook_name, status from holdfast.session_hook") == "on_CrawlEnd__10_report|noresults");
  stage.check_disk_and_rows();
}

TEST_CASE("a daemon that dies takes its snapshots along; the session is opened again") {
  WorkerStage stage;
  stage.hook("browser", "on_CrawlSetup__90_launch.daemon.bg.sh",
             "echo $$ >\"$gates/daemon\"\necho ready\nwhile :; do sleep 0.05; done\n");
  stage.hook("page", "on_Snapshot__10_page.sh", "test -e \"$gates/died\" || gate using\necho x >x.txt\n");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("using");
  stage.dir.write("gates/died", "");
  ::kill(static_cast<pid_t>(std::stol(read_file(stage.dir / "gates/daemon"))), SIGKILL);
  stage.until("the session has failed",
              [&] { return stage.value("select status from holdfast.v_session") == "failed"; });
  stage.until("the snapshot is released", [&] {
    return stage.number("select count(*) from holdfast.snapshot_queue where owner_id is null and attempts = 1") == 1;
  });
  stage.pass("1 day");
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.table(kSessions) == "closed|1\nfailed|1");
  CHECK(stage.value("select outcome || ' ' || fence from holdfast.snapshot_sealed") == "succeeded 2");
}

TEST_CASE("no more crawls are open than sessions.max, and all of them get their turn") {
  WorkerStage stage;
  stage.options.session_max = 1;
  stage.hook("browser", "on_CrawlSetup__90_launch.daemon.bg.sh",
             "mkdir \"$gates/open\" || exit 1\n"
             "trap 'rmdir \"$gates/open\"; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n");
  stage.hook("page", "on_Snapshot__10_page.sh", "echo x >x.txt\n");
  stage.dir.write("gates/.keep", "");
  for (const char* name : {"1", "2", "3"})
    stage.add({WorkerStage::url(name)});
  stage.work();
  CHECK(stage.table("select outcome, count(*) from holdfast.snapshot_sealed group by 1") == "succeeded|3");
  CHECK(stage.table(kSessions) == "closed|3");
}

TEST_CASE("a session ends with its worker") {
  WorkerStage stage;
  stage.hook("browser", "on_CrawlSetup__90_launch.daemon.bg.sh", kDaemon);
  stage.hook("page", "on_Snapshot__10_page.sh", "gate held\n");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("held");
  stage.leave(worker, base::Strength::stop);
  CHECK(stage.hooks_of(worker.id).empty());
  CHECK(stage.table(kSessions) == "closed|1");
  CHECK(stage.value("select status from holdfast.snapshot_queue") == "queued");
}
