// Ways to go: asked to drain, stopped, killed, lapsed, robbed of a snapshot.

#include "lib/base/uuid.hpp"
#include "lib/member/membership.hpp"
#include "lib/store/snapshot.hpp"
#include "tests/worker/stage.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kGated = "echo half >half.txt; gate \"${url##*/}\"; echo done >page.txt";
constexpr const char* kQueue = "select status, attempts, lapses, fence, owner_id is null from holdfast.v_snapshot";

void give_up(WorkerStage& stage, const std::string& worker) {
  // One transaction, so that no heartbeat comes in between. Again, if a claim of that worker was just under way: who
  // gives up does not wait, and the worker must not hear of it before.
  stage.until("it lapses", [&] {
    try {
      stage.connection.script("update holdfast.process set lease_until = clock_timestamp() - interval '1 second' where "
                              "id = '" +
                              worker + "'; select 1 / holdfast.lapse_process()");
      return true;
    } catch (const base::Error&) { // divided by zero: none has lapsed
      return false;
    }
  });
}

} // namespace

TEST_CASE("a draining worker finishes what runs and takes nothing more") {
  WorkerStage stage;
  stage.options.slots = 1;
  stage.hook("page", "on_Snapshot__10_page.sh", kGated);
  stage.add({WorkerStage::url("1"), WorkerStage::url("2"), WorkerStage::url("3")});
  auto& worker = stage.start();
  stage.until("one is in work", [&] {
    return !stage.hooks().empty() && (stage.arrived("1") || stage.arrived("2") || stage.arrived("3"));
  });
  worker.stop->raise(base::Strength::drain, "enough");
  for (const char* name : {"1", "2", "3"})
    stage.open(name);
  stage.until("the worker has left", [&] { return worker.ended(); });
  CHECK(worker.ending == worker::Worker::Ending::left);
  CHECK(stage.table("select status, count(*) from holdfast.v_snapshot group by 1 order by 1") == "queued|2\nsealed|1");
  CHECK(stage.number("select count(*) from holdfast.snapshot_queue where attempts = 0") == 2);
  CHECK(stage.table("select status, exit_code, exit_reason from holdfast.v_worker") == "exited|0|enough");
  stage.work();
  stage.check_disk_and_rows();
}

TEST_CASE("where all workers drain, a dead one lapses all the same, and people are told who does not take its work") {
  WorkerStage stage;
  stage.options.slots = 1;
  stage.hook("page", "on_Snapshot__10_page.sh", kGated);
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("1");
  const auto crawl = stage.add({WorkerStage::url("2")});
  const auto dead = member::describe_process("worker", "all", "test", 1, stage.options.data_dir);
  store::process_join(stage.connection, dead, 60s);
  const auto lease = store::crawl_claim(stage.connection, dead.id, 60s);
  if (lease) store::crawl_expand(stage.connection, dead.id, *lease, 10); // else the worker has done it already
  stage.until("the other has a snapshot",
              [&] { return !store::worker_turn(stage.connection, dead.id, {.claim = {.room = 1}}).claims.empty(); });

  worker.stop->raise(base::Strength::drain, "enough");
  stage.run("update holdfast.process set lease_until = clock_timestamp() where id = $1::uuid", pg::Params::of(dead.id));
  stage.until("it lapses", [&] {
    return stage.value("select status from holdfast.process where id = $1::uuid", pg::Params::of(dead.id)) == "exited";
  });
  const auto waits = "from holdfast.v_snapshot where crawl_id = $1::uuid";
  CHECK(stage.table("select status, lapses, reason like 'its worker lapsed%' " + std::string(waits),
                    pg::Params::of(crawl)) == "queued|1|t");
  stage.until("the worker says that it drains", [&] {
    return stage.number("select count(*) from holdfast.why((select id " + std::string(waits) +
                            ")) where reason like '%no worker can claim: 1 not claiming (%it is draining (enough))%'",
                        pg::Params::of(crawl)) == 1;
  });
  stage.pass("1 hour");
  CHECK(stage.value("select what from holdfast.v_stuck where crawl_id = $1::uuid and reason like '%draining%'",
                    pg::Params::of(crawl)) == "due, but no worker takes it");

  stage.open("1");
  stage.until("the worker has left", [&] { return worker.ended(); });
  CHECK(worker.ending == worker::Worker::Ending::left);
  stage.open("2");
  stage.work();
  stage.check_disk_and_rows();
}

TEST_CASE("a drain that takes too long becomes a stop") {
  WorkerStage stage;
  stage.options.drain_timeout = 100ms;
  stage.hook("page", "on_Snapshot__10_page.sh", kGated);
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("1");
  worker.stop->raise(base::Strength::drain, "enough");
  stage.until("the worker has left", [&] { return worker.ended(); });
  CHECK(stage.table(kQueue) == "queued|0|0|1|t");
}

TEST_CASE("a stopped worker puts its work back without a mark on it") {
  WorkerStage stage;
  stage.hook("zero", "on_Snapshot__01_zero.sh", "echo x >x.txt");
  stage.hook("back", "on_Snapshot__05_back.daemon.bg.sh", "echo ready; trap '' TERM; for ((;;)); do sleep 0.05; done");
  stage.hook("page", "on_Snapshot__10_page.sh", kGated);
  stage.options.kill_grace = 300ms; // the background hook will not go by itself
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("1");
  CHECK(stage.hooks().size() >= 4);
  stage.leave(worker, base::Strength::stop);
  CHECK(worker.ending == worker::Worker::Ending::left);
  CHECK(stage.hooks().empty());
  CHECK(stage.table(kQueue) == "queued|0|0|1|t");
  CHECK(stage.table("select ending, reason from holdfast.v_attempt") ==
        "interrupted|its worker was stopped: the test says so");
  // What its hooks did is kept with the attempt.
  CHECK(stage.table("select fence, plugin, status, error from holdfast.archive_result order by plugin") ==
        "1|back|failed|ended with its page: its worker was stopped: the test says so\n"
        "1|page|failed|ended with its page: its worker was stopped: the test says so\n"
        "1|zero|succeeded|");
  CHECK(stage.number("select min(pid) from holdfast.archive_result") > 0);
  CHECK(stage.attempts_on_disk().empty());

  stage.open("1");
  stage.hook("back", "on_Snapshot__05_back.daemon.bg.sh", "echo ready");
  stage.work();
  CHECK(stage.table("select outcome, attempts, fence from holdfast.v_snapshot") == "succeeded|1|2");
  CHECK(stage.table("select fence, ending from holdfast.v_attempt order by 1") == "1|interrupted\n2|sealed");
  CHECK(stage.attempts_on_disk().size() == 1);
  stage.check_disk_and_rows();
}

TEST_CASE("a worker that is killed by its own signal leaves no hook and writes nothing") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", std::string("trap '' TERM\n") + kGated);
  stage.options.kill_grace = 30s; // the test does not wait for that
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("1");
  stage.leave(worker, base::Strength::kill);
  CHECK(stage.hooks().empty());
  CHECK(stage.table(kQueue) == "queued|0|0|1|t"); // given back as it left
  CHECK(stage.attempts_on_disk().empty());
}

TEST_CASE("a worker does as the database asks") {
  for (const std::string request : {"drain", "stop", "leave"}) {
    CAPTURE(request);
    WorkerStage stage;
    stage.hook("page", "on_Snapshot__10_page.sh", kGated);
    stage.add({WorkerStage::url("1")});
    auto& worker = stage.start();
    stage.until_arrived("1");
    stage.run("update holdfast.process set request = $1 where id = $2::uuid", pg::Params::of(request, worker.id));
    if (request == "drain") {
      stage.until("it drains", [&] { return worker.stop->strength() == base::Strength::drain; });
      stage.open("1");
    }
    stage.until("the worker has left", [&] { return worker.ended(); });
    CHECK(worker.ending == worker::Worker::Ending::left);
    CHECK(stage.value("select status from holdfast.v_snapshot") == (request == "drain" ? "sealed" : "queued"));
    CHECK(stage.value("select exit_reason from holdfast.v_worker") == "asked to " + request);
  }
}

TEST_CASE("a worker that lapsed kills its hooks and writes nothing; another one does the work") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", std::string("trap '' TERM\n") + kGated);
  stage.add({WorkerStage::url("1")});
  auto& lost = stage.start();
  stage.until_arrived("1");
  const auto old_hooks = stage.hooks();
  CHECK(!old_hooks.empty());
  give_up(stage, lost.id);
  CHECK(stage.table("select status, lapses, reason like 'its worker lapsed%' from holdfast.v_snapshot") ==
        "queued|1|t");
  auto& other = stage.start();
  stage.until("the lost worker has ended", [&] { return lost.ended(); });
  CHECK(lost.ending == worker::Worker::Ending::lost_trust);
  CHECK(stage.hooks_of(lost.id).empty());
  CHECK(stage.attempts_on_disk().empty());
  stage.open("1");
  stage.until_sealed();
  stage.leave(other);
  CHECK(stage.table("select outcome, fence, attempts, lapses, owner_id::text = '" + other.id +
                    "' from holdfast.v_snapshot") == "succeeded|2|2|1|t");
  CHECK(stage.table("select fence, ending from holdfast.v_attempt order by 1") == "1|lapsed\n2|sealed");
  CHECK(stage.attempts_on_disk().size() == 1);
  stage.check_disk_and_rows();
}

TEST_CASE("a worker that cannot heartbeat fences itself before its lease ends") {
  WorkerStage stage;
  stage.options.lease = 4s;
  stage.options.margin = 2500ms;
  stage.hook("page", "on_Snapshot__10_page.sh", kGated);
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("1");
  {
    // A transaction holds the worker's row: no heartbeat gets through.
    pg::Connection blocker(stage.options.dsn);
    blocker.transaction([&](pg::Transaction& transaction) {
      transaction.call("select 1 from holdfast.process where id = $1::uuid for update", pg::Params::of(worker.id));
      stage.until("the hooks are gone", [&] { return stage.hooks_of(worker.id).empty(); });
      CHECK(stage.value("select status from holdfast.v_snapshot") == "started"); // it could not even say so
    });
  }
  stage.until("the worker has ended", [&] { return worker.ended(); });
  CHECK(worker.ending == worker::Worker::Ending::lost_trust);
  stage.open("1");
  stage.work();
  CHECK(stage.table("select outcome, fence from holdfast.v_snapshot") == "succeeded|2");
  stage.check_disk_and_rows();
}

TEST_CASE("a snapshot that is taken away and comes back is run again, and the first run does not disturb it") {
  WorkerStage stage;
  stage.options.heartbeat = 1h; // only the notification tells the worker, so its old run lives on for a while
  stage.options.lease = 1h;
  stage.options.margin = 1min;
  stage.hook("page", "on_Snapshot__10_page.sh",
             "name=$(basename \"$(dirname \"$PWD\")\"); gate \"$name\"; echo done >page.txt");
  stage.add({WorkerStage::url("1")});
  auto& worker = stage.start();
  stage.until_arrived("a1");
  const auto rows = stage.connection.call("select id, crawl_id, fence from holdfast.v_snapshot");
  const auto row = rows.one();
  store::Page page;
  page.lease = {row.text("id"), row.text("crawl_id"), row.integer("fence")};
  page.ending = "declined";
  page.reason = "for the test";
  const auto answer = store::worker_turn(stage.connection, worker.id, {.pages = {page}});
  CHECK(answer.pages[0].what == store::PageAnswer::What::released);
  stage.ring();
  stage.until_arrived("a2");
  stage.open("a1");
  stage.until("the first run is over", [&] { return worker.worker->running() == 1; });
  stage.open("a2");
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.table("select outcome, fence from holdfast.v_snapshot") == "succeeded|2");
  CHECK(stage.table("select fence, ending from holdfast.v_attempt order by 1") == "1|declined\n2|sealed");
  CHECK(stage.attempts_on_disk().size() == 1);
  stage.check_disk_and_rows();
}

TEST_CASE("what a dead incarnation left on this machine is cleared away") {
  WorkerStage stage;
  const auto workers = stage.options.work_dir / "workers";
  const std::string dead = "00000000-0000-7000-8000-000000000001";
  stage.dir.write("data/work/workers/" + dead + "/owner",
                  process::namespace_id("pid") + " " + process::boot_id() + " " + std::to_string(getpid()) + " 1\n");
  stage.dir.write("data/work/workers/" + dead + "/attempts/x", "");
  const pid_t left = spawn({"/bin/sleep", "600"}, {"HOLDFAST_COOKIE=" + dead + ".1"}, stage.dir / "out");
  CHECK(worker::collect_leftovers(stage.options, "machine").size() == 1);
  CHECK(!std::filesystem::exists(workers / dead));
  waitpid(left, nullptr, WNOHANG); // unless an earlier worker of this process has reaped it
  CHECK(carriers("HOLDFAST_COOKIE=" + dead).empty());
  CHECK(worker::collect_leftovers(stage.options, "machine").empty());
}

TEST_CASE("short names in /tmp go with the directories they lead to, also after a kill") {
  WorkerStage stage;
  const auto link = [&](const std::string& tail, const std::string& worker) {
    const std::filesystem::path name = "/tmp/holdfast-" + tail;
    std::filesystem::create_directory_symlink(stage.dir / "elsewhere/workers" / worker / "tmp", name);
    return name;
  };
  std::string gone = base::new_uuid(), there = base::new_uuid();
  const auto space = process::namespace_id("mnt") + "-";
  const auto dangling = link(space + gone.substr(24), gone);
  const auto living = link(space + there.substr(24), there);
  const auto foreign = link("another-" + gone.substr(24), gone);
  const auto elsewhere = link("1-" + gone.substr(24), gone); // of a container, where it leads somewhere
  std::filesystem::create_directories(stage.dir / "elsewhere/workers" / there);
  worker::collect_leftovers(stage.options, "machine");
  CHECK(!std::filesystem::is_symlink(dangling));
  CHECK(std::filesystem::is_symlink(living));
  CHECK(std::filesystem::is_symlink(foreign));
  CHECK(std::filesystem::is_symlink(elsewhere));
  for (const auto& name : {living, foreign, elsewhere})
    std::filesystem::remove(name);
}
