// Joining, beating, leaving, and being given up.
#include "lib/base/uuid.hpp"
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

TEST_CASE("a node that joins is there with its lease, and is told which collection this is") {
  Stage stage;
  const auto process = process_info(base::new_uuid());
  CHECK(store::node_join(stage.connection, process, 30s) == stage.value("select id from holdfast.collection"));
  const auto row = stage.row("select *, lease_until - beat_at = '30 seconds' as whole_lease from holdfast.v_node "
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

TEST_CASE("joining again with the same id is a repeat while the process runs, and refused after it was given up") {
  Stage stage;
  const auto process = process_info(base::new_uuid());
  store::node_join(stage.connection, process, 30s);
  store::node_join(stage.connection, process, 30s);
  CHECK(stage.value("select count(*) from holdfast.process") == "1");
  CHECK(stage.value("select count(*) from holdfast.machine") == "1");
  stage.expire(process.id);
  CHECK(store::lapse_nodes(stage.connection) == 0);
  CHECK(refusal([&] { store::node_join(stage.connection, process, 30s); }) == "HF002");
}

TEST_CASE("a machine that comes back with another name is the same machine") {
  Stage stage;
  auto process = process_info(base::new_uuid());
  store::node_join(stage.connection, process, 30s);
  process.id = base::new_uuid();
  process.machine.hostname = "renamed.test";
  process.machine.cpu_count = 8;
  store::node_join(stage.connection, process, 30s);
  const auto row = stage.row("select * from holdfast.machine");
  CHECK(row.text("hostname") == "renamed.test");
  CHECK(row.integer("cpu_count") == 8);
}

TEST_CASE("a second running holder of the runner's gate is refused by the database") {
  Stage stage;
  auto process = process_info(base::new_uuid());
  process.process_type = "orchestrator";
  process.worker_type = "worker_runner";
  store::node_join(stage.connection, process, 30s);
  const std::string first = process.id;
  process.id = base::new_uuid();
  CHECK(refusal([&] { store::node_join(stage.connection, process, 30s); }) == "23505");
  store::node_leave(stage.connection, first, 0, "done");
  CHECK(refusal([&] { store::node_join(stage.connection, process, 30s); }) == "");
}

TEST_CASE("a beat renews the lease and keeps what the node says of itself") {
  Stage stage;
  const auto node = stage.node("n", 10s);
  const auto answer = store::node_beat(stage.connection, node, 1h, {}, R"({"held": 0})");
  CHECK(answer.lost.empty());
  CHECK(answer.extra.empty());
  CHECK(answer.request.empty());
  CHECK(stage.value("select lease_until - beat_at > interval '59 minutes' from holdfast.process") == "t");
  CHECK(stage.value("select stats ->> 'held' from holdfast.process") == "0");
}

TEST_CASE("a beat says what the node lost and what it holds without knowing") {
  Stage stage;
  stage.start(stage.seeds(1, 3));
  const auto node = stage.node();
  const auto held = stage.claim(node).lease;
  const auto unknown = stage.claim(node).lease;
  auto stale = held;
  stale.fence = 99;
  store::Lease never{base::new_uuid(), base::new_uuid(), 1};

  const auto quiet = store::node_beat(stage.connection, node, 1h, {held, unknown}, "{}");
  CHECK(quiet.lost.empty());
  CHECK(quiet.extra.empty());

  const auto answer = store::node_beat(stage.connection, node, 1h, {held, never}, "{}");
  REQUIRE(answer.lost.size() == 1);
  CHECK(answer.lost[0].snapshot_id == never.snapshot_id);
  CHECK(answer.lost[0].fence == never.fence);
  REQUIRE(answer.extra.size() == 1);
  CHECK(answer.extra[0].snapshot_id == unknown.snapshot_id);
  CHECK(answer.extra[0].crawl_id == unknown.crawl_id);
  CHECK(answer.extra[0].fence == 1);

  const auto old = store::node_beat(stage.connection, node, 1h, {stale, unknown}, "{}");
  REQUIRE(old.lost.size() == 1);
  CHECK(old.lost[0].snapshot_id == held.snapshot_id);
  CHECK(old.lost[0].fence == stale.fence);

  // What is handed back is neither.
  store::snapshot_release(stage.connection, node, unknown, "handed_back", 0ms, "the answer was lost", false);
  const auto after = store::node_beat(stage.connection, node, 1h, {held}, "{}");
  CHECK(after.lost.empty());
  CHECK(after.extra.empty());
}

TEST_CASE("a beat carries what somebody asks of the node") {
  Stage stage;
  const auto node = stage.node();
  stage.run("update holdfast.process set draining = true");
  CHECK(store::node_beat(stage.connection, node, 1h, {}, "{}").request == "drain");
  stage.run("update holdfast.process set request = 'stop'");
  CHECK(store::node_beat(stage.connection, node, 1h, {}, "{}").request == "stop");
}

TEST_CASE("a beat after the node was given up is refused, however late the lease") {
  Stage stage;
  const auto node = stage.node();
  stage.expire(node);
  // Late, but nobody has noticed: it counts.
  CHECK(refusal([&] { store::node_beat(stage.connection, node, 1h, {}, "{}"); }) == "");
  stage.expire(node);
  store::lapse_nodes(stage.connection);
  CHECK(refusal([&] { store::node_beat(stage.connection, node, 1h, {}, "{}"); }) == "HF002");
}

TEST_CASE("a node that leaves gives its work back and nothing is counted against it") {
  Stage stage;
  stage.start(stage.seeds(1, 3));
  const auto seeds = stage.add(stage.seeds(4, 5));
  const auto node = stage.node("leaver");
  const auto started = stage.claim_and_start(node);
  store::result_start(stage.connection, node, started.lease, {"wget", "on_Snapshot__1_wget", 1, 1, 1s, false});
  const auto claimed = stage.claim(node);
  REQUIRE(store::crawl_claim(stage.connection, node, 1min));

  store::node_leave(stage.connection, node, 3, "stopped");
  store::node_leave(stage.connection, node, 4, "again");
  const auto row = stage.row("select * from holdfast.v_node where label = 'leaver'");
  CHECK(row.text("status") == "exited");
  CHECK(row.integer("exit_code") == 3);
  CHECK(row.text("exit_reason") == "stopped");
  CHECK(row.is_null("lease_until"));
  CHECK(stage.status(started.lease) == "queued");
  CHECK(stage.value("select sum(attempts) || ' ' || sum(owners_lost) || ' ' || count(owner_id) from "
                    "holdfast.snapshot_queue") == "0 0 0");
  CHECK(stage.value("select string_agg(ending, ' ') from holdfast.v_attempt") == "interrupted interrupted");
  CHECK(stage.value("select status || ': ' || error from holdfast.archive_result") == "failed: its node left: stopped");
  CHECK(stage.value("select owner_id is null and retry_at <= clock_timestamp() from holdfast.crawl where id = $1::uuid",
                    pg::Params::of(seeds)) == "t");

  const auto next = stage.node();
  const auto again = store::snapshot_claim(stage.connection, next, 9, {});
  CHECK(again.size() == 3);
  CHECK(store::crawl_claim(stage.connection, next, 1min)->fence == 2);
}

TEST_CASE("a dead node's work goes to others, counts its death, and one call gives up one node") {
  Stage stage;
  stage.start(stage.seeds(1, 4));
  const auto first = stage.node("first"), second = stage.node("second"), alive = stage.node("alive");
  const auto a = stage.claim_and_start(first), b = stage.claim(first), c = stage.claim_and_start(second);
  stage.claim(alive);
  CHECK(store::lapse_nodes(stage.connection) == 0);
  stage.expire(first);
  stage.expire(second);
  const int one = store::lapse_nodes(stage.connection), two = store::lapse_nodes(stage.connection);
  CHECK(one + two == 3);
  CHECK(one * two == 2);
  CHECK(store::lapse_nodes(stage.connection) == 0);
  for (const auto& claim : {a, b, c}) {
    const auto row =
        stage.row("select * from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(claim.lease.snapshot_id));
    CHECK(row.text("status") == "queued");
    CHECK(row.integer("owners_lost") == 1);
    CHECK(row.integer("attempts") == 1);
    CHECK(row.text("reason").find("its node was lost") == 0);
  }
  CHECK(stage.value("select count(*) from holdfast.process where exit_reason = 'lease lapsed'") == "2");
  CHECK(stage.value("select string_agg(distinct ending, ' ') from holdfast.v_attempt") == "lost");
  CHECK(refusal([&] { stage.seal(first, a); }) == "HF003");
  CHECK(stage.value("select count(*) from holdfast.event where event = 'lapse'") == "2"); // b had not begun
}

TEST_CASE("a snapshot whose owners die three times is quarantined, and ends its crawl") {
  Stage stage;
  const auto crawl = stage.start({stage.seed("poison")});
  store::Claim claim;
  for (int death = 1; death <= 3; ++death) {
    const auto node = stage.node("victim " + std::to_string(death));
    claim = stage.claim_and_start(node);
    CHECK(claim.owners_lost == death - 1);
    CHECK(claim.lease.fence == death);
    store::result_start(stage.connection, node, claim.lease, {"wget", "on_Snapshot__1_wget", 1, 1, 1s, false});
    stage.expire(node);
    CHECK(store::lapse_nodes(stage.connection) == 1);
  }
  const auto row = stage.row("select * from holdfast.v_snapshot");
  CHECK(row.text("status") == "sealed");
  CHECK(row.text("outcome") == "quarantined");
  CHECK(row.integer("owners_lost") == 3);
  CHECK(row.text("reason").find("3 times over") != std::string::npos);
  CHECK(row.text("reason").find("victim 3") != std::string::npos);
  CHECK(stage.value("select event from holdfast.event where to_state = 'sealed' and lifecycle = 'snapshot'") ==
        "quarantine");
  const auto progress = store::crawl_progress(stage.connection, crawl);
  CHECK(progress.status == "sealed");
  CHECK(progress.outcome == "failed");
  CHECK(progress.failed == 1);
  CHECK(stage.value("select count(*) from holdfast.v_attempt where ending = 'lost'") == "3");
  CHECK(stage.value("select count(*) from holdfast.archive_result where status = 'failed'") == "3");
}

TEST_CASE("leaving in good order never leads to quarantine") {
  Stage stage;
  stage.start({stage.seed("patient")});
  for (int i = 0; i < 5; ++i) {
    const auto node = stage.node();
    stage.claim_and_start(node);
    store::node_leave(stage.connection, node, 0, "restart");
  }
  CHECK(stage.claim(stage.node()).owners_lost == 0);
}
