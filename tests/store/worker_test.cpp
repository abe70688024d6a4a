// Joining, heartbeating, leaving and lapsing.
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

store::ProcessInfo process_info(const std::string& id) {
  store::ProcessInfo process;
  process.id = id;
  process.machine = {"machine", "host.test", "Debian", "x86_64", 4, 8'000'000'000};
  process.boot_id = "boot";
  process.pid = 4711;
  process.start_ticks = 123456789;
  process.process_type = "worker";
  process.worker_type = "snapshot";
  process.label = "worker on host.test";
  process.version = "1";
  process.slots = 3;
  return process;
}

} // namespace

TEST_CASE("a worker that joins is there with its lease, and is told which collection this is") {
  Stage stage;
  const auto process = process_info(base::new_uuid());
  CHECK(store::process_join(stage.connection, process, 30s) == stage.value("select id from holdfast.collection"));
  const auto row =
      stage.row("select *, lease_until - heartbeat_at = '30 seconds' as whole_lease from holdfast.v_worker "
                "where id = $1::uuid",
                pg::Params::of(process.id));
  CHECK(row.text("status") == "running");
  CHECK(row.text("label") == "worker on host.test");
  CHECK(row.text("hostname") == "host.test");
  CHECK(row.integer("slots") == 3);
  CHECK(row.integer("held") == 0);
  CHECK(row.boolean("whole_lease"));
  CHECK(stage.value("select start_ticks from holdfast.process") == "123456789");
}

TEST_CASE("joining again with the same id is a repeat while the process runs, and refused after it lapsed") {
  Stage stage;
  const auto process = process_info(base::new_uuid());
  store::process_join(stage.connection, process, 30s);
  store::process_join(stage.connection, process, 30s);
  CHECK(stage.value("select count(*) from holdfast.process") == "1");
  CHECK(stage.value("select count(*) from holdfast.machine") == "1");
  CHECK(stage.value(
            "select string_agg(event || ' ' || detail, ', ') from holdfast.v_event where lifecycle = 'process'") ==
        "join worker on host.test");
  stage.expire(process.id);
  CHECK(store::call_for<int>(stage.connection, "lapse_process") == 0);
  CHECK(refusal([&] { store::process_join(stage.connection, process, 30s); }) == pg::kLeaseLapsed);
}

TEST_CASE("a machine that comes back with another name is the same machine") {
  Stage stage;
  auto process = process_info(base::new_uuid());
  store::process_join(stage.connection, process, 30s);
  process.id = base::new_uuid();
  process.machine.hostname = "renamed.test";
  process.machine.cpu_count = 8;
  store::process_join(stage.connection, process, 30s);
  const auto row = stage.row("select * from holdfast.machine");
  CHECK(row.text("hostname") == "renamed.test");
  CHECK(row.integer("cpu_count") == 8);
}

TEST_CASE("a second running holder of the runner's gate is refused by the database") {
  Stage stage;
  auto process = process_info(base::new_uuid());
  process.process_type = "runner";
  process.worker_type = "worker_runner";
  store::process_join(stage.connection, process, 30s);
  const std::string first = process.id;
  process.id = base::new_uuid();
  CHECK(refusal([&] { store::process_join(stage.connection, process, 30s); }) == "23505");
  store::call(stage.connection, "process_leave", first, 0, "done");
  CHECK(refusal([&] { store::process_join(stage.connection, process, 30s); }) == "");
}

TEST_CASE(
    "a claimed snapshot and crawl are leased until the lease of their worker ends, and come back to their place") {
  Stage stage;
  const auto worker = stage.worker("n", 10s);
  stage.start(stage.seeds(1, 2));
  const auto next = "select string_agg(right(s.url, 1), '' order by q.retry_at) from holdfast.snapshot_queue q join "
                    "holdfast.snapshot s on s.id = q.snapshot_id where q.owner_id is null";
  CHECK(stage.value(next) == "12");
  const auto held = stage.claim(worker).lease;
  const auto of_worker = "select count(*) from holdfast.v_snapshot v join holdfast.process p on p.id = v.owner_id "
                         "where v.status = 'started' and v.retry_at = p.lease_until and v.owner = p.label";
  CHECK(stage.value(of_worker) == "1");
  const auto other = stage.add(stage.seeds(3, 4));
  REQUIRE(store::crawl_claim(stage.connection, worker, 10s, {}));
  store::worker_heartbeat(stage.connection, worker, 1h, {held}, "{}");
  CHECK(stage.value("select lease_until > now() + interval '59 minutes' from holdfast.process where id = $1::uuid",
                    pg::Params::of(worker)) == "t");
  CHECK(stage.value(of_worker) == "1");
  CHECK(stage.value("select c.retry_at = p.lease_until from holdfast.crawl c join holdfast.process p on p.id = "
                    "c.owner_id where c.id = $1::uuid",
                    pg::Params::of(other)) == "t");
  CHECK(stage.value("select count(*) from holdfast.check_invariants()") == "0");
  // Its lease ends: due again, and before what has waited behind it.
  stage.expire(worker);
  CHECK(store::call_for<int>(stage.connection, "lapse_process") == 1);
  CHECK(stage.value(next).substr(0, 2) == "12");
  CHECK(stage.value("select count(*) from holdfast.snapshot_queue where retry_at <= now() and due_at is null") == "2");
  CHECK(stage.value("select count(*) from holdfast.check_invariants()") == "0");
}

TEST_CASE("a heartbeat says what the worker lost and what it holds without knowing") {
  Stage stage;
  stage.start(stage.seeds(1, 3));
  const auto worker = stage.worker();
  const auto held = stage.claim(worker).lease;
  const auto second = stage.claim(worker);
  const auto& unknown = second.lease;
  auto stale = held;
  stale.fence = 99;
  store::Lease never{base::new_uuid(), base::new_uuid(), 1};

  const auto quiet = store::worker_heartbeat(stage.connection, worker, 1h, {held, unknown}, "{}");
  CHECK(quiet.lost.empty());
  CHECK(quiet.extra.empty());

  const auto answer = store::worker_heartbeat(stage.connection, worker, 1h, {held, never}, "{}");
  REQUIRE(answer.lost.size() == 1);
  CHECK(answer.lost[0].snapshot_id == never.snapshot_id);
  CHECK(answer.lost[0].fence == never.fence);
  REQUIRE(answer.extra.size() == 1);
  CHECK(answer.extra[0].snapshot_id == unknown.snapshot_id);
  CHECK(answer.extra[0].crawl_id == unknown.crawl_id);
  CHECK(answer.extra[0].fence == 1);

  const auto old = store::worker_heartbeat(stage.connection, worker, 1h, {stale, unknown}, "{}");
  REQUIRE(old.lost.size() == 1);
  CHECK(old.lost[0].snapshot_id == held.snapshot_id);
  CHECK(old.lost[0].fence == stale.fence);

  // What is declined is neither.
  auto page = stage.released(second, 0ms, "the answer was lost");
  page.ending = "declined";
  page.spend = false;
  CHECK(stage.finish(worker, page).what == store::PageAnswer::What::released);
  const auto after = store::worker_heartbeat(stage.connection, worker, 1h, {held}, "{}");
  CHECK(after.lost.empty());
  CHECK(after.extra.empty());
}

TEST_CASE("a heartbeat carries what is asked of the worker") {
  Stage stage;
  const auto worker = stage.worker();
  stage.run("update holdfast.process set draining = true");
  CHECK(store::worker_heartbeat(stage.connection, worker, 1h, {}, "{}").request == "drain");
  stage.run("update holdfast.process set request = 'stop'");
  CHECK(store::worker_heartbeat(stage.connection, worker, 1h, {}, "{}").request == "stop");
}

TEST_CASE("a heartbeat after the worker lapsed is refused, however late the lease") {
  Stage stage;
  const auto worker = stage.worker();
  stage.expire(worker);
  // Late, but not lapsed yet: it counts.
  CHECK(refusal([&] { store::worker_heartbeat(stage.connection, worker, 1h, {}, "{}"); }) == "");
  stage.expire(worker);
  store::call(stage.connection, "lapse_process");
  CHECK(refusal([&] { store::worker_heartbeat(stage.connection, worker, 1h, {}, "{}"); }) == pg::kLeaseLapsed);
}

TEST_CASE("a worker that leaves releases its work and nothing is counted against it") {
  Stage stage;
  stage.start(stage.seeds(1, 3));
  const auto seeds = stage.add(stage.seeds(4, 5));
  const auto worker = stage.worker("leaver");
  const auto claim = stage.claim(worker);
  stage.claim(worker);
  store::worker_hooks(stage.connection, worker, {stage.running(claim, "wget", "on_Snapshot__1_wget")});
  REQUIRE(store::crawl_claim(stage.connection, worker, 1min));

  store::call(stage.connection, "process_leave", worker, 3, "stopped");
  store::call(stage.connection, "process_leave", worker, 4, "again");
  const auto row = stage.row("select * from holdfast.v_worker where label = 'leaver'");
  CHECK(row.text("status") == "exited");
  CHECK(row.integer("exit_code") == 3);
  CHECK(row.text("exit_reason") == "stopped");
  CHECK(row.is_null("lease_until"));
  CHECK(stage.status(claim.lease) == "queued");
  CHECK(stage.value("select sum(attempts) || ' ' || sum(lapses) || ' ' || count(owner_id) from "
                    "holdfast.snapshot_queue") == "0 0 0");
  CHECK(stage.value("select string_agg(ending || ': ' || reason, ', ') from holdfast.v_attempt") ==
        "interrupted: its worker left: stopped, interrupted: its worker left: stopped");
  CHECK(stage.value("select count(*) from holdfast.running_hook") == "0");
  CHECK(stage.value("select owner_id is null and retry_at <= clock_timestamp() from holdfast.crawl where id = $1::uuid",
                    pg::Params::of(seeds)) == "t");

  const auto next = stage.worker();
  CHECK(stage.claim_many(next, 9).size() == 3);
  CHECK(store::crawl_claim(stage.connection, next, 1min)->fence == 2);
}

TEST_CASE("a dead worker's work goes to others, counts its death, and one call lapses one worker") {
  Stage stage;
  stage.start(stage.seeds(1, 4));
  const auto first = stage.worker("first"), second = stage.worker("second"), alive = stage.worker("alive");
  const auto a = stage.claim(first), b = stage.claim(first), c = stage.claim(second);
  stage.claim(alive);
  CHECK(store::call_for<int>(stage.connection, "lapse_process") == 0);
  stage.expire(first);
  stage.expire(second);
  const int one = store::call_for<int>(stage.connection, "lapse_process"),
            two = store::call_for<int>(stage.connection, "lapse_process");
  CHECK(one + two == 3);
  CHECK(one * two == 2);
  CHECK(store::call_for<int>(stage.connection, "lapse_process") == 0);
  for (const auto& claim : {a, b, c}) {
    const auto row =
        stage.row("select * from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(claim.lease.snapshot_id));
    CHECK(row.text("status") == "queued");
    CHECK(row.integer("lapses") == 1);
    CHECK(row.integer("attempts") == 1);
    CHECK(row.text("reason").find("its worker lapsed") == 0);
  }
  CHECK(stage.value("select count(*) from holdfast.process where exit_reason = 'lease lapsed'") == "2");
  CHECK(stage.value("select string_agg(distinct ending, ' ') from holdfast.v_attempt") == "lapsed");
  CHECK(stage.seal(first, a).what == store::PageAnswer::What::lost);
  CHECK(stage.value("select count(*) from holdfast.event where event = 'lapse'") == "3");
  CHECK(stage.value("select string_agg(name || ' ' || value, ', ' order by name) from holdfast.tally") ==
        "takeovers 3, workers_lapsed 2");
}

TEST_CASE("a snapshot whose owners die three times is quarantined, and ends its crawl") {
  Stage stage;
  const auto crawl = stage.start({stage.seed("poison")});
  store::Claim claim;
  for (int death = 1; death <= 3; ++death) {
    const auto worker = stage.worker("victim " + std::to_string(death));
    claim = stage.claim(worker);
    CHECK(claim.lapses == death - 1);
    CHECK(claim.lease.fence == death);
    store::worker_hooks(stage.connection, worker, {stage.running(claim, "wget", "on_Snapshot__1_wget")});
    stage.expire(worker);
    CHECK(store::call_for<int>(stage.connection, "lapse_process") == 1);
  }
  const auto row = stage.row("select * from holdfast.v_snapshot");
  CHECK(row.text("status") == "sealed");
  CHECK(row.text("outcome") == "quarantined");
  CHECK(row.integer("lapses") == 3);
  CHECK(row.text("reason").find("3 times over") != std::string::npos);
  CHECK(row.text("reason").find("victim 3") != std::string::npos);
  CHECK(stage.value("select event from holdfast.event where to_state = 'sealed' and lifecycle = 'snapshot'") ==
        "quarantine");
  const auto progress = store::crawl(stage.connection, crawl);
  CHECK(progress.status == "sealed");
  CHECK(progress.outcome == "failed");
  CHECK(progress.failed == 1);
  CHECK(stage.value("select count(*) from holdfast.v_attempt where ending = 'lapsed' and hooks = "
                    "'{wget/on_Snapshot__1_wget}'") == "3");
}

TEST_CASE("a lease is 100 ms to an hour long, and any other is refused") {
  Stage stage;
  const auto worker = stage.worker();
  const auto before = stage.value("select lease_until from holdfast.process");
  for (const auto lease : {std::chrono::milliseconds(0), std::chrono::milliseconds(-1), std::chrono::milliseconds(99),
                           std::chrono::milliseconds(1h) + 1ms}) {
    CAPTURE(lease.count());
    CHECK(refusal([&] { store::process_join(stage.connection, process_info(base::new_uuid()), lease); }) ==
          pg::kRefused);
    CHECK(refusal([&] { store::worker_heartbeat(stage.connection, worker, lease, {}, "{}"); }) == pg::kRefused);
  }
  CHECK(refusal([&] {
          stage.run("select * from holdfast.worker_heartbeat($1::uuid, null, '{}', '{}', '{}')",
                    pg::Params::of(worker));
        }) == pg::kRefused);
  CHECK(stage.value("select lease_until from holdfast.process") == before);
  store::process_join(stage.connection, process_info(base::new_uuid()), 100ms);
  store::worker_heartbeat(stage.connection, worker, 1h, {}, "{}");
}
