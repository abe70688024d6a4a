// Trouble that is not the page's fault: the database goes, the archive goes, the disk is full.

#include "lib/base/file.hpp"
#include "lib/store/worker.hpp"
#include "services/worker/machine/free_resources.hpp"
#include "tests/unit/archive/private_mounts.hpp"
#include "tests/worker/stage.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <fstream>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kTroubleGated = "echo half >half.txt; gate \"${url##*/}\"; echo done >page.txt";
constexpr const char* kTroublePage = "echo done >page.txt";

void cut_all_sessions(WorkerStage& stage) {
  stage.run("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> "
            "pg_backend_pid()");
}

} // namespace

TEST_CASE("an archive that is not mounted is refused") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", kTroublePage);
  stage.add({WorkerStage::url("1")});
  stage.work();
  REQUIRE(stage.value("select directory from holdfast.snapshot_sealed") != "");

  const auto refused = [&](const std::filesystem::path& root) {
    stage.options.archive_root = root;
    try {
      stage.start();
    } catch (const base::Error& error) {
      CHECK(error.error_class() == base::ErrorClass::unavailable);
      CHECK(std::string(error.hint()).find("mounted") != std::string::npos);
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  std::filesystem::create_directory(stage.dir / "empty");
  CHECK(refused(stage.dir / "empty").find("has no sentinel file") != std::string::npos);
  CHECK(std::filesystem::is_empty(stage.dir / "empty"));
  CHECK(refused(stage.dir / "missing/archive").find("is not a directory") != std::string::npos);
  CHECK(!std::filesystem::exists(stage.dir / "missing"));
  // The workers have said why, and hold nothing.
  CHECK(stage.number("select count(*) from holdfast.process where status = 'running'") == 0);
  CHECK(stage.number("select count(*) from holdfast.process "
                     "where exit_code = 69 and exit_reason like '%archive root%'") == 2);

  // Mounted again, work goes on. A collection without files may have its archive elsewhere.
  stage.options.archive_root = stage.archive();
  stage.add({WorkerStage::url("2")});
  stage.work();
  CHECK(stage.number("select count(*) from holdfast.v_snapshot where outcome = 'succeeded'") == 2);
  stage.run("select holdfast.crawl_remove(id, 'test') from holdfast.crawl");
  CHECK(stage.value("select holdfast.archive_begun()") == "f");
}

TEST_CASE("a worker leaves pages to those that have the plugins for them") {
  WorkerStage stage;
  stage.hook("fetch", "on_Snapshot__10_fetch.sh", kTroublePage);
  stage.hook("other", "on_Snapshot__10_other.sh", kTroublePage);
  stage.hook("needy", "on_Snapshot__10_needy.sh", kTroublePage);
  stage.config("needy", R"({"required_plugins": ["fetch"]})");
  std::filesystem::create_directories(stage.dir / "fewer");
  for (const char* name : {"other", "needy"}) // the latter without what it requires
    std::filesystem::copy(stage.dir / "plugins" / name, stage.dir / "fewer" / name);
  store::NewCrawl first, second, third;
  first["plugins"] = {"fetch"};
  second["plugins"] = {"needy"};
  third["plugins"] = {"other"};
  const auto fetch = stage.add({WorkerStage::url("1"), WorkerStage::url("2")}, first);
  const auto needy = stage.add({WorkerStage::url("3")}, second);
  const auto other = stage.add({WorkerStage::url("4")}, third);

  auto& lacks = stage.start("fewer");
  stage.until("what it can do is done",
              [&] { return stage.value("select status from holdfast.crawl where id = '" + other + "'") == "sealed"; });
  stage.until("the others are due", [&] {
    return stage.number("select count(*) from holdfast.crawl_queue where ready_at <= clock_timestamp()") == 2;
  });
  for (const auto& [crawl, plugin] : {std::pair{fetch, "fetch"}, std::pair{needy, "needy"}}) {
    const auto why = stage.value("select reason from holdfast.why('" + crawl + "')");
    CHECK_MESSAGE(why.find("no running worker can take pages of its crawl: worker on ") != std::string::npos, why);
    CHECK_MESSAGE(why.find(std::string("has no plugin \"") + plugin + "\"") != std::string::npos, why);
  }
  CHECK(stage.number("select count(*) from holdfast.v_stuck where what = 'no running worker can take it'") == 2);
  CHECK(stage.number("select sum(fence + attempts) from holdfast.snapshot_queue") == 0); // nothing of them was claimed

  auto& has = stage.start();
  stage.until_sealed();
  stage.leave(lacks);
  stage.leave(has);
  CHECK(stage.table("select outcome, attempts, count(*) from holdfast.v_snapshot group by 1, 2") == "succeeded|1|4");
  CHECK(stage.number("select count(*) from holdfast.attempt") == 0);
  CHECK(stage.number("select count(*) from holdfast.v_stuck where what = 'no running worker can take it'") == 0);
}

TEST_CASE("a worker whose browser does not start leaves what needs it to others") {
  WorkerStage stage;
  stage.hook("browser", "on_Snapshot__10_browser.sh", kTroublePage);
  stage.config("browser", R"({"properties": {"BROWSER_BINARY": {"type": "string", "default": "/bin/false"}}})");
  stage.hook("other", "on_Snapshot__10_other.sh", kTroublePage);
  auto& broken = stage.start();
  stage.until("it says so",
              [&] { return stage.value("select browser from holdfast.v_worker").starts_with("does not start: "); });
  store::NewCrawl named, without;
  named["plugins"] = {"browser"};
  without["plugins"] = {"other"};
  const auto all = stage.add({WorkerStage::url("1")}); // every plugin that is enabled
  const auto needs = stage.add({WorkerStage::url("2")}, named);
  const auto other = stage.add({WorkerStage::url("3")}, without);
  stage.until("what it can do is done",
              [&] { return stage.value("select status from holdfast.crawl where id = '" + other + "'") == "sealed"; });
  stage.until("the others are due", [&] {
    return stage.number("select count(*) from holdfast.crawl_queue where ready_at <= clock_timestamp()") == 2;
  });
  for (const auto& crawl : {all, needs}) {
    const auto why = stage.value("select reason from holdfast.why('" + crawl + "')");
    CHECK_MESSAGE(why.find("no running worker can take pages of its crawl: worker on ") != std::string::npos, why);
    CHECK_MESSAGE(why.find(": its browser does not start (") != std::string::npos, why);
  }
  CHECK(stage.number("select count(*) from holdfast.v_stuck where what = 'no running worker can take it'") == 2);
  CHECK(stage.number("select sum(fence + attempts) from holdfast.snapshot_queue") == 0);

  stage.options.hook_options["BROWSER_BINARY"] = "/none"; // not installed: its hooks would say so
  auto& good = stage.start();
  stage.until_sealed();
  stage.leave(broken);
  stage.leave(good);
  CHECK(stage.table("select outcome, attempts, count(*) from holdfast.v_snapshot group by 1, 2") == "succeeded|1|3");
}

TEST_CASE("a worker without any plugin for a page releases it unspent") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", kTroublePage);
  stage.options.hook_options["PAGE_ENABLED"] = "false";
  stage.add({WorkerStage::url("1")});
  auto& without = stage.start();
  stage.until("it is released", [&] { return stage.number("select count(*) from holdfast.attempt") == 1; });
  const auto why = stage.value("select w.reason from holdfast.snapshot s, holdfast.why(s.id) w");
  CHECK_MESSAGE(why.find("has no plugin with a hook for snapshots that is enabled") != std::string::npos, why);
  CHECK(stage.table("select attempts, lapses from holdfast.snapshot_queue") == "0|0");
  stage.leave(without);
  stage.options.hook_options.clear();
  auto& with = stage.start();
  stage.pass("1 day");
  stage.until_sealed();
  stage.leave(with);
  CHECK(stage.table("select outcome, attempts from holdfast.v_snapshot") == "succeeded|1");
}

TEST_CASE("work goes on when every database session is cut, again and again") {
  WorkerStage stage;
  stage.hook("one", "on_Snapshot__10_one.sh", kTroubleGated);
  stage.hook("two", "on_Snapshot__20_two.sh",
             "gate two; echo x >x.txt" + std::string("\n") + WorkerStage::discover({WorkerStage::url("child")}));
  store::NewCrawl crawl;
  crawl["max_depth"] = 1;
  stage.add({WorkerStage::url("1")}, crawl);
  auto& worker = stage.start();
  stage.until_arrived("1");
  cut_all_sessions(stage);
  stage.open("1");
  stage.until_arrived("two");
  cut_all_sessions(stage);
  stage.open("two");
  stage.open("child");
  for (int i = 0; i < 3; ++i) {
    stage.until("the worker is back", [&] {
      return stage.number("select count(*) from pg_stat_activity where datname = current_database()") > 1;
    });
    cut_all_sessions(stage);
  }
  stage.until_sealed();
  CHECK(!worker.ended());
  stage.leave(worker);
  CHECK(stage.table("select outcome, fence, attempts from holdfast.v_snapshot order by depth") ==
        "succeeded|1|1\nsucceeded|1|1");
  stage.check_disk_and_rows();
}

TEST_CASE("while the archive takes no pages, work is released with the reason; it goes on when it takes them again") {
  WorkerStage stage;
  std::filesystem::create_directories(stage.archive());
  if (!mount_small_disk(stage.archive(), 64 << 20)) {
    MESSAGE("skipped: no right to mount");
    return;
  }
  stage.hook("page", "on_Snapshot__10_page.sh", kTroubleGated);
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("1");
  const auto sentinel = stage.archive() / ".holdfast-archive";
  std::string says = "archive root";
  std::function<void()> undo = [sentinel, text = base::read_file(sentinel, 100)] { std::ofstream(sentinel) << text; };
  SUBCASE("its sentinel is gone, as after an unmount") { std::filesystem::remove(sentinel); }
  SUBCASE("it is another collection's") { std::ofstream(sentinel) << "00000000-0000-4000-8000-000000000000\n"; }
  // It is there, and refuses what a publication does: only a probe of the same finds out.
  SUBCASE("it is read-only") {
    says = "Read-only file system";
    make_read_only(stage.archive());
    undo = [&] { make_read_only(stage.archive(), false); };
  }
  SUBCASE("no directory can be made where pages of the day belong") {
    says = "the archive takes no pages: ";
    const auto year = stage.archive() / stage.value("select extract(year from now() at time zone 'utc')::text");
    std::ofstream(year) << "a file";
    undo = [year] { std::filesystem::remove(year); };
  }
  stage.open("1");
  stage.until("it is released", [&] { return stage.value("select status from holdfast.v_snapshot") == "queued"; });
  CHECK(stage.table("select attempts, retry_at > now() from holdfast.v_snapshot") == "0|t");
  CHECK(stage.value("select reason from holdfast.v_snapshot") != "");
  const auto claims_nothing = [&] {
    return stage.value("select stats ->> 'not_claiming' from holdfast.v_worker where status = 'running'").find(says) !=
           std::string::npos;
  };
  stage.until("the worker says that it does not claim", claims_nothing);
  stage.pass("1 day"); // though it is due, a worker that has no archive leaves it alone
  stage.add({WorkerStage::url("2")});
  stage.open("2");
  stage.until("a few heartbeats have passed", [&, from = stage.value("select now()")] {
    return stage.number("select count(*) from holdfast.process where heartbeat_at > $1::timestamptz + interval '2 s'",
                        pg::Params::of(from)) == 1;
  });
  CHECK(claims_nothing());
  CHECK(stage.number("select max(fence) from holdfast.snapshot_queue") == 1);
  CHECK(stage.value("select string_agg(reason, ' ') from holdfast.v_stuck").find(says) != std::string::npos);
  CHECK(!worker.ended());

  undo();
  stage.pass("1 day");
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.number("select count(*) from holdfast.v_snapshot where outcome = 'succeeded'") == 2);
  stage.check_disk_and_rows();
  unmount(stage.archive());
}

TEST_CASE("a worker that finds no room for new work does not take any, and says so") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", kTroublePage);
  std::string setting;
  SUBCASE("on the disk") {
    setting = "disk.minimum_free";
    stage.options.minimum_free_bytes = 1ull << 60;
  }
  SUBCASE("in memory") {
    setting = "memory.minimum_free";
    stage.options.minimum_free_memory_bytes = 1ull << 60;
  }
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until("the worker says so", [&] {
    return stage.value("select stats ->> 'not_claiming' from holdfast.v_worker").find(setting) != std::string::npos;
  });
  CHECK(stage.table("select status, fence from holdfast.v_snapshot") == "");
  CHECK(stage.table("select status, owner_id from holdfast.crawl") == "queued|");
  CHECK(stage.number("select (stats ->> 'free_bytes')::bigint from holdfast.v_worker") > 0);
  stage.leave(worker);
  stage.options.minimum_free_bytes = stage.options.minimum_free_memory_bytes = 0;
  stage.work();
  CHECK(stage.value("select outcome from holdfast.v_snapshot") == "succeeded");
}

TEST_CASE("while work_dir takes no files, nothing is claimed and no page has failed; work goes on when it takes them") {
  WorkerStage stage;
  stage.options.work_dir = stage.dir / "small";
  std::filesystem::create_directories(stage.options.work_dir);
  if (!mount_small_disk(stage.options.work_dir, 16 << 20)) {
    MESSAGE("skipped: no right to mount");
    stage.options.work_dir = stage.dir / "data/work";
    return;
  }
  const auto work_dir = stage.options.work_dir;
  stage.hook("page", "on_Snapshot__10_page.sh", "gate \"${url##*/}\"; echo done >page.txt");
  auto& worker = stage.start();
  std::function<void()> undo;
  SUBCASE("it became read-only") {
    stage.until("it has joined", [&] { return stage.number("select count(*) from holdfast.v_worker") == 1; });
    make_read_only(work_dir);
    undo = [&] { make_read_only(work_dir, false); };
    stage.add({WorkerStage::url("1"), WorkerStage::url("2")});
  }
  SUBCASE("it has no inode left for what a hook writes") {
    stage.add({WorkerStage::url("1"), WorkerStage::url("2")});
    stage.until_arrived("1");
    limit_files(work_dir);
    undo = [&] { limit_files(work_dir, false); };
  }
  stage.open("1");
  stage.open("2");
  stage.until("the worker says so", [&] {
    return stage.value("select stats ->> 'not_claiming' from holdfast.v_worker").find("cannot create") !=
           std::string::npos;
  });
  stage.until("its pages are released", [&] {
    return stage.number("select count(*) from holdfast.snapshot_queue where owner_id is not null") == 0;
  });
  stage.pass("1 day"); // they are due now, and left alone
  stage.until("a few heartbeats have passed", [&, from = stage.value("select now()")] {
    return stage.number("select count(*) from holdfast.process where heartbeat_at > $1::timestamptz + interval '2 s'",
                        pg::Params::of(from)) == 1;
  });
  CHECK(stage.number("select count(*) from holdfast.snapshot_sealed") == 0);
  CHECK(stage.number("select coalesce(max(attempts), 0) from holdfast.v_snapshot") == 0);
  CHECK(stage.number("select coalesce(max(fence), 0) from holdfast.snapshot_queue") <= 1);
  CHECK(stage.value("select string_agg(reason, ' ') from holdfast.v_stuck").find("cannot create") != std::string::npos);
  undo();
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.number("select count(*) from holdfast.v_snapshot where outcome = 'succeeded'") == 2);
  stage.check_disk_and_rows();
  unmount(work_dir);
}

TEST_CASE("a full disk below the hooks puts work back, or fails the hook, but never half of it is sealed as good") {
  WorkerStage stage;
  stage.options.work_dir = stage.dir / "small";
  std::filesystem::create_directories(stage.options.work_dir);
  if (!mount_small_disk(stage.options.work_dir, 1 << 20)) {
    MESSAGE("skipped: no right to mount");
    stage.options.work_dir = stage.dir / "data/work";
    return;
  }
  stage.hook("big", "on_Snapshot__10_big.sh", "head -c 8M /dev/zero >big.bin");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until("it has been tried", [&] { return stage.number("select count(*) from holdfast.v_attempt") > 0; });
  CHECK(stage.number("select count(*) from holdfast.v_snapshot where outcome = 'succeeded'") == 0);
  CHECK(stage.table("select status from holdfast.v_result where status = 'succeeded'") == "");
  CHECK(!worker.ended());
  stage.leave(worker);
  stage.check_disk_and_rows();
  unmount(stage.options.work_dir);
}

TEST_CASE("a page for which the archive has no room is given up when its attempts are used up") {
  WorkerStage stage;
  std::filesystem::create_directories(stage.archive());
  if (!mount_small_disk(stage.archive(), 4 << 20)) {
    MESSAGE("skipped: no right to mount");
    return;
  }
  stage.run("update holdfast.collection set max_attempts = 2, retry_base = '10 ms', retry_max = '20 ms'");
  stage.options.minimum_free_bytes = 1 << 20;
  stage.hook("big", "on_Snapshot__10_big.sh", "head -c 8M /dev/zero >big.bin; echo done >page.txt");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_sealed();
  CHECK(stage.table("select outcome, attempts, reason like '%room for%' from holdfast.v_snapshot") == "failed|2|t");
  stage.leave(worker);
  unmount(stage.archive());
}

TEST_CASE("a page whose attempts always meet an archive that is away is given up in the end, and says why") {
  WorkerStage stage;
  stage.run("update holdfast.collection set max_worker_errors = 2");
  stage.hook("page", "on_Snapshot__10_page.sh", "echo half >half.txt; gate \"${SNAP_DIR##*/}\"; echo done >page.txt");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  for (int round = 1; round <= 2; ++round) {
    const auto attempt = "a" + std::to_string(round);
    stage.until_arrived(attempt);
    std::filesystem::rename(stage.archive(), stage.dir / "aside");
    stage.open(attempt);
    stage.until("it is submitted", [&] { return stage.value("select status from holdfast.v_snapshot") != "started"; });
    std::filesystem::rename(stage.dir / "aside", stage.archive());
    stage.pass("1 day");
  }
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.table("select outcome, attempts, reason like 'released 2 times because of worker errors; the last: "
                    "%archive root%' from holdfast.v_snapshot") == "failed|1|t");
  CHECK(stage.table("select ending from holdfast.attempt") == "worker_error");
  stage.check_disk_and_rows();
}

TEST_CASE("a page that the database refuses is submitted once more as a failure, and its files go") {
  WorkerStage stage;
  stage.run("alter table holdfast.snapshot_sealed add constraint no_files check (directory is null)");
  stage.hook("page", "on_Snapshot__10_page.sh", "echo \"$url\" >page.txt; gate \"${url##*/}\"");
  stage.add({WorkerStage::url("1"), WorkerStage::url("2")});
  auto& worker = stage.start();
  stage.until_arrived("1");
  stage.until_arrived("2");
  stage.run("update holdfast.collection set max_attempts = 1");
  stage.open("1");
  stage.open("2");
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.table("select outcome, attempts, reason like '%no_files%' from holdfast.v_snapshot") ==
        "failed|1|t\nfailed|1|t");
  CHECK(stage.attempts_on_disk().empty());
  stage.check_disk_and_rows();
}

TEST_CASE("a page whose files take long to read holds up neither others nor the end of its worker") {
  WorkerStage stage;
  stage.options.hook_limits.output_bytes = std::uint64_t{1} << 50;
  stage.hook("page", "on_Snapshot__10_page.sh",
             "case $url in */endless) truncate -s 1T large; gate endless ;; *) echo done >page.txt ;; esac");
  const auto endless = stage.add({WorkerStage::url("endless")});
  auto& worker = stage.start();
  stage.until_arrived("endless");
  stage.open("endless");
  stage.until("its hook is over", [&] { return stage.hooks().empty(); });
  const auto other = stage.add({WorkerStage::url("1"), WorkerStage::url("2")});
  stage.until("the others are sealed",
              [&] { return stage.value("select status from holdfast.crawl where id = '" + other + "'") == "sealed"; });
  CHECK(stage.value("select status from holdfast.crawl where id = '" + endless + "'") == "started");
  stage.leave(worker, base::Strength::stop);
  CHECK(stage.table("select owner_id is null, attempts from holdfast.snapshot_queue") == "t|0");
}

TEST_CASE("what is too large is not read: the hook has failed, or the page if it lies elsewhere") {
  WorkerStage stage;
  stage.options.hook_limits.output_bytes = 1u << 20;
  stage.hook("small", "on_Snapshot__10_small.sh", kTroublePage);
  stage.hook("sparse", "on_Snapshot__20_sparse.sh",
             "case $url in */own) truncate -s 1T large ;; */elsewhere) mkdir ../elsewhere; truncate -s 1T "
             "../elsewhere/large ;; esac; echo done >page.txt");
  stage.add({WorkerStage::url("own"), WorkerStage::url("elsewhere"), WorkerStage::url("fine")});
  stage.work();
  CHECK(stage.table("select url, outcome, coalesce(reason, '') from holdfast.v_snapshot order by url") ==
        "https://site.test/elsewhere|failed|its hooks left 1.0 TiB outside their directories, more than "
        "hook.output_limit (1.0 MiB)\nhttps://site.test/fine|succeeded|\nhttps://site.test/own|partial|");
  CHECK(stage.table("select r.plugin, r.status, r.output_bytes, coalesce(r.error, '') like '%sparse/ holds % more than "
                    "hook.output_limit (1.0 MiB); its files are not kept' from holdfast.archive_result r "
                    "join holdfast.snapshot s on s.id = r.snapshot_id where s.url like '%own' order by 1") ==
        "small|succeeded|5|f\nsparse|failed|0|t");
  stage.check_disk_and_rows();
}

TEST_CASE("files that cannot be kept are named") {
  WorkerStage stage;
  stage.hook("deep", "on_Snapshot__10_deep.sh", R"(echo done >page.txt
d=$(printf 'd/%.0s' $(seq 120)); mkdir -p "$d" "../elsewhere/$d")");
  stage.add({WorkerStage::url("page")});
  stage.work();
  const auto error = stage.value("select error from holdfast.archive_result");
  CHECK_MESSAGE(error.find("not kept, because their paths are too long or too deep (1): d/d/d/") == 0, error);
  const auto reason = stage.value("select reason from holdfast.v_snapshot");
  CHECK_MESSAGE(reason.find("not kept, because their paths are too long or too deep (1): elsewhere/d/d/") == 0, reason);
  CHECK(stage.value("select outcome from holdfast.v_snapshot") == "succeeded");
}

TEST_CASE("a page whose hook was ended by the machine is tried again, as long as it has attempts") {
  WorkerStage stage;
  stage.run("update holdfast.collection set max_attempts = 3, retry_base = '10 ms', retry_max = '20 ms'");
  // As the kernel does when memory is short. $PPID of the shell is the shim, where the sandbox lets the hook see it;
  // the test is the worker, and finds it in any case.
  stage.hook("page", "on_Snapshot__10_page.sh", "gate \"${SNAP_DIR##*/}\"; echo done >page.txt");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  const auto kill_shims = [] {
    int killed = 0;
    const auto child = "PPid:\t" + std::to_string(::getpid()) + "\n";
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "status");
      const std::string status(std::istreambuf_iterator<char>(file), {});
      if (status.starts_with("Name:\tholdfast-shim\n") && status.find(child) != std::string::npos)
        killed += ::kill(std::stoi(entry.path().filename().native()), SIGKILL) == 0 ? 1 : 0;
    }
    return killed;
  };
  int tries = 0;
  SUBCASE("once") { tries = 1; }
  SUBCASE("each time") { tries = 3; }
  for (int number = 1; number <= tries; ++number) {
    stage.until_arrived("a" + std::to_string(number));
    REQUIRE(kill_shims() >= 1);
    stage.until("the attempt is over", [&] {
      return stage.number("select count(*) from holdfast.v_attempt") == std::min(number, 2) ||
             stage.number("select count(*) from holdfast.snapshot_sealed") == 1;
    });
  }
  stage.open("a" + std::to_string(tries + 1));
  stage.until_sealed();
  stage.leave(worker);
  if (tries == 1)
    CHECK(stage.table("select outcome, attempts from holdfast.v_snapshot") == "succeeded|2");
  else
    CHECK(stage.table("select outcome, attempts, reason like '%its shim was killed by SIGKILL%' "
                      "from holdfast.v_snapshot") == "failed|3|t");
}

TEST_CASE("a worker whose clock is not the database's claims nothing, and says by how much") {
  struct Case {
    std::chrono::milliseconds ahead;
    const char* says;
  };
  for (const auto& [ahead, says] :
       {Case{0ms, ""}, Case{30s, ""}, Case{-30s, ""}, Case{2h, "is 2 h ahead of that of the database"},
        Case{-2h, "is 2 h behind that of the database"}, Case{24h * 400, "ahead of that of the database"}}) {
    CAPTURE(ahead.count());
    const auto text = worker::clock_difference_trouble(ahead);
    CHECK((*says == '\0' ? text.empty() : text.find(says) != std::string::npos));
  }
  // The machine of the test is also the database's.
  WorkerStage stage;
  auto& running = stage.start();
  CHECK(std::chrono::abs(store::worker_heartbeat(stage.connection, running.id, 60s, {}, "{}").clock_ahead) < 1s);
  stage.leave(running);
}

TEST_CASE("the default memory of a hook fits the machine divided by its slots") {
  constexpr std::uint64_t kGib = std::uint64_t{1} << 30;
  CHECK(worker::memory_of_hook(4 * kGib, 24 * kGib, 4) == 4 * kGib);
  CHECK(worker::memory_of_hook(4 * kGib, 8 * kGib, 4) == 2 * kGib);
  CHECK(worker::memory_of_hook(4 * kGib, 8 * kGib, 2) == 4 * kGib);
  CHECK(worker::memory_of_hook(4 * kGib, kGib, 8) == kGib);
  CHECK(worker::memory_of_hook(4 * kGib, std::nullopt, 4) == 4 * kGib);
  CHECK(worker::memory_of_hook(4 * kGib, 6 * kGib, 0) == 4 * kGib);
}
