// Every reason that holdfast.why() can give, each from a collection that is really in that state.
#include "lib/base/uuid.hpp"
#include "lib/store/host.hpp"
#include "lib/store/why.hpp"
#include "migrations/migrations.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// Every reason that was given in this run, for the last test case.
std::string& all_reasons() {
  static std::string all;
  return all;
}

struct Questions : Stage {
  // Exactly one row, with that kind, whose reason has all the words; ends in a full stop, is one line.
  nlohmann::json ask(const std::string& name, const std::string& kind, const std::vector<std::string>& words) {
    const auto why = store::why(connection, name);
    CHECK(why.kind == kind);
    all_reasons() += why.reason + '\n';
    for (const auto& word : words)
      CHECK_MESSAGE(why.reason.find(word) != std::string::npos, why.reason << "\n  lacks: " << word);
    CHECK_MESSAGE(why.reason.ends_with("."), why.reason);
    CHECK_MESSAGE(why.reason.find('\n') == std::string::npos, why.reason);
    CHECK_MESSAGE(why.reason.find("..") == std::string::npos, why.reason);
    return nlohmann::json::parse(why.facts);
  }
  std::string only_snapshot() { return value("select snapshot_id::text from holdfast.snapshot_queue"); }
  void leave_all() {
    run("select holdfast.node_leave(id, 0, 'told to') from holdfast.process where status = 'running'");
  }
  void stats(const std::string& node, const std::string& json) {
    run("update holdfast.process set stats = $2::jsonb where id = $1::uuid", pg::Params::of(node, json));
  }
};

} // namespace

TEST_CASE("what has no name, or too many") {
  Questions stage;
  stage.ask("5a5a", "nothing", {"Nothing is called \"5a5a\""});
  stage.ask("not an id", "nothing", {"Nothing is called"});
  stage.ask("5a5", "nothing", {"too short for an id"});
  stage.ask(base::new_uuid(), "nothing", {"Nothing"});
  store::NewCrawl first, second;
  first.id = "aaaabbbb-0000-7000-8000-000000000001";
  second.id = "aaaabbbb-0000-7000-8000-000000000002";
  stage.add({Stage::seed("1")}, first);
  stage.add({Stage::seed("2")}, second);
  const auto facts = stage.ask("aaaabbbb", "nothing", {"short for 2 ids"});
  CHECK(facts["matches"].size() == 2);
  CHECK(stage.value("select count(*) from holdfast.why(gen_random_uuid())") == "1");
  CHECK(stage.value("select kind from holdfast.why(gen_random_uuid())") == "nothing");
  all_reasons() += stage.value("select reason from holdfast.why(gen_random_uuid())") + '\n';
  CHECK(stage.value("select reason from holdfast.why($1::uuid)", pg::Params::of(first.id)) ==
        store::why(stage.connection, first.id).reason);
}

TEST_CASE("a snapshot that is due, and what nodes say to that") {
  Questions stage;
  const auto crawl = stage.add({Stage::seed("1")});
  stage.ask(crawl, "crawl", {"1 seed waits to be expanded", "no node runs and none ever has"});
  const auto expander = stage.node("expander");
  const auto lease = store::crawl_claim(stage.connection, expander, 1min);
  stage.ask(crawl, "crawl", {"being expanded by expander", "1 left"});
  store::crawl_expand(stage.connection, expander, *lease, 10);
  stage.leave_all();
  const auto id = stage.only_snapshot();
  auto facts = stage.ask(id, "snapshot", {"due since", "no node runs", "the last, expander, ended", "told to"});
  CHECK(facts["url"] == "https://site.test/1");
  CHECK(facts["nodes"] == 0);
  stage.ask(id.substr(id.size() - 12), "snapshot", {"no node runs"});
  stage.ask(crawl, "crawl", {"None of its 1 open snapshot is in work", "of the next one: it is due", "no node runs"});

  const auto one = stage.node("one");
  stage.ask(id, "snapshot", {"due since", "a node with room will claim it in a moment"});
  stage.stats(one, R"({"not_claiming": "only 3 MB free in work_dir"})");
  facts = stage.ask(id, "snapshot", {"the only node does not claim", "one says: only 3 MB free"});
  CHECK(facts["says"] == "only 3 MB free in work_dir");
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(one));
  stage.ask(id, "snapshot", {"the only node is draining"});
  stage.run("update holdfast.process set draining = false, paused_at = now(), paused_by = 'ann' where id = $1::uuid",
            pg::Params::of(one));
  stage.ask(id, "snapshot", {"the only node is paused"});
  stage.run(
      "update holdfast.process set paused_at = null, paused_by = null, slots = 0, stats = '{}' where id = $1::uuid",
      pg::Params::of(one));
  facts = stage.ask(id, "snapshot", {"all 0 slots of 1 node are taken"});
  CHECK(facts["full"] == 1);
  const auto two = stage.node("two");
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(two));
  const auto three = stage.node("three");
  stage.stats(three, R"({"not_claiming": "the disk is full"})");
  stage.ask(id, "snapshot",
            {"none of the 3 nodes can claim", "1 full", "1 draining", "1 not claiming: the disk is full"});
  stage.expire(one);
  stage.expire(two);
  stage.expire(three);
  stage.ask(id, "snapshot", {"no node runs"});
  stage.leave_all();
}

TEST_CASE("nodes that are all alike") {
  Questions stage;
  stage.start({Stage::seed("1")});
  const auto id = stage.only_snapshot();
  stage.leave_all();
  const auto one = stage.node("one"), two = stage.node("two");
  for (const auto& node : {one, two})
    stage.stats(node, R"({"not_claiming": "archive.root is not mounted"})");
  stage.ask(id, "snapshot", {"none of the 2 nodes claims, for one says: archive.root is not mounted"});
  stage.run("update holdfast.process set stats = '{}', paused_at = now()");
  stage.ask(id, "snapshot", {"all 2 nodes are paused"});
  stage.run("update holdfast.process set paused_at = null, draining = true");
  stage.ask(id, "snapshot", {"all 2 nodes are draining and claim nothing more"});
  stage.run("update holdfast.process set draining = false, slots = 0");
  stage.ask(id, "snapshot", {"all 0 slots of 2 nodes are taken"});
  stage.leave_all();
}

TEST_CASE("what was cancelled, has failed, or could not run everything") {
  Questions stage;
  const auto crawl = stage.start(Stage::seeds(1, 3));
  const auto node = stage.node("node");
  const auto bad = stage.claim_and_start(node);
  store::result_start(stage.connection, node, bad.lease, {"chrome", "on_Snapshot__51_screenshot", 1, 1, 1s, false});
  store::result_finish(stage.connection, node, bad.lease, "chrome", "on_Snapshot__51_screenshot", "skipped",
                       R"({"error": "there is no chromium on this machine"})");
  store::result_start(stage.connection, node, bad.lease, {"wget", "on_Snapshot__35_wget", 1, 1, 1s, false});
  store::result_finish(stage.connection, node, bad.lease, "wget", "on_Snapshot__35_wget", "failed",
                       R"({"error": "no route to host"})");
  store::Sealing failed;
  failed.outcome = "failed";
  stage.seal(node, bad, failed);
  const auto facts = stage.ask(
      bad.lease.snapshot_id, "snapshot",
      {"outcome failed", "wget: no route to host", "skipped there: chrome: there is no chromium on this machine"});
  CHECK(facts["hooks"].size() == 2);
  const auto other = stage.value("select snapshot_id::text from holdfast.snapshot_queue limit 1");
  stage.run("select holdfast.crawl_cancel($1::uuid, 'ann', 'no need')", pg::Params::of(crawl));
  stage.ask(other, "snapshot", {"outcome cancelled"});
  stage.ask(crawl, "crawl", {"done: sealed with outcome", "because it was cancelled"});
}

TEST_CASE("webhooks") {
  Questions stage;
  stage.run("select holdfast.webhook_set('ops', 'https://hooks.test/secret', '{node.lost}', 'ann')");
  auto facts = stage.ask("ops", "webhook", {"Nothing waits for it"});
  CHECK(facts["origin"] == "https://hooks.test");
  const auto test = [&] { stage.run("select holdfast.webhook_test('ops', 'ann')"); };
  const auto claim = [&] {
    return stage.value("select id || ' ' || fence from holdfast.webhook_claim('node one', null, '1 minute', 1)");
  };
  const auto report = [&](const std::string& claimed, const std::string& outcome) {
    const auto space = claimed.find(' ');
    stage.run("select holdfast.webhook_report(" + claimed.substr(0, space) + ", " + claimed.substr(space) + ", " +
              outcome + ")");
  };
  test();
  stage.ask("ops", "webhook",
            {"1 delivery waits, but no node and no runner that has its secret", "has asked for work"});
  auto claimed = claim();
  stage.ask("ops", "webhook", {"1 delivery waits, and node one is sending now"});
  report(claimed, "503, 'it answered HTTP 503', false");
  stage.ask("ops", "webhook",
            {"1 delivery waits: its receiver failed 1 time in a row (it answered HTTP 503), it is tried again at"});
  stage.run("update holdfast.webhook set last_error = null");
  stage.ask("ops", "webhook", {"failed 1 time in a row (no reason given)"});
  stage.run("select holdfast.webhook_retry('ops', 'ann')");
  stage.ask("ops", "webhook", {"1 delivery waits and will be sent in a moment"});
  test();
  stage.run("update holdfast.webhook set asked_at = now() - interval '1 hour'");
  stage.ask("ops", "webhook", {"2 deliveries wait, but no node and no runner", "since"});
  stage.run("update holdfast.webhook set asked_at = now()");
  for (int i = 0; i < 2; ++i)
    report(claim(), "204, null, false");
  stage.ask("ops", "webhook", {"Nothing waits for it; the last delivery succeeded at"});
  stage.run(
      "insert into holdfast.delivery (webhook, event, payload) select 'ops', 'test', '{}' from generate_series(1, "
      "1200)");
  stage.ask("ops", "webhook", {"1000 deliveries or more wait"});
  stage.run("select holdfast.webhook_enable('ops', false, 'ann')");
  stage.ask("ops", "webhook", {"It is not enabled (paused by ann) and 1000 deliveries or more wait"});
  stage.run("update holdfast.webhook set note = null");
  stage.ask("ops", "webhook", {"nobody said why"});
  stage.run("select holdfast.webhook_enable('ops', true, 'ann')");
  report(claim(), "410, 'it answered HTTP 410', true");
  facts = stage.ask("ops", "webhook", {"It is not enabled (its receiver said that it is gone (410))"});
  CHECK(facts["given_up"] == 1);
  stage.run("delete from holdfast.delivery where status = 'waiting'");
  stage.ask("ops", "webhook", {"It is not enabled", "and nothing waits"});
}

TEST_CASE("a snapshot that a node has") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1"), Stage::seed("2")});
  const auto node = stage.node("worker one");
  const auto claim = stage.claim(node);
  const auto id = claim.lease.snapshot_id;
  stage.ask(id, "snapshot", {"claimed by worker one since", "getting ready"});

  const auto session = base::new_uuid();
  stage.run("select holdfast.crawl_session_open($1::uuid, $2::uuid, $3::uuid, '/tmp/x')",
            pg::Params::of(node, session, crawl));
  stage.run(
      R"(select holdfast.crawl_session_set($1::uuid, 'opening', null, '[{"plugin":"chrome","hook_name":"launch","status":"started"}]'))",
      pg::Params::of(session));
  stage.ask(id, "snapshot", {"waits for its crawl's hooks there, which are starting", "(chrome)"});
  stage.force("update holdfast.snapshot_queue set status = 'started', started_at = now() where owner_id is not null");
  stage.ask(id, "snapshot", {"waits for its crawl's hooks there, which are starting"}); // a claim starts what it takes
  stage.force("update holdfast.snapshot_queue set status = 'queued', started_at = null where owner_id is not null");
  stage.run("select holdfast.crawl_session_set($1::uuid, 'failed', 'chrome would not start', "
            "'[{\"plugin\":\"chrome\",\"hook_name\":\"launch\",\"status\":\"failed\"}]')",
            pg::Params::of(session));
  stage.ask(id, "snapshot", {"hooks have failed: chrome would not start"});
  stage.force("update holdfast.crawl_session set status = 'draining', ended_at = null, reason = 'its node leaves'");
  stage.ask(id, "snapshot", {"hooks are being ended: its node leaves"});
  stage.force("update holdfast.crawl_session set status = 'failed', ended_at = now()");

  store::snapshot_start(stage.connection, node, claim.lease);
  stage.ask(id, "snapshot", {"runs on worker one since", "between two hooks"});
  store::result_start(stage.connection, node, claim.lease, {"chrome", "on_Snapshot__10_tab.bg", 1, 1, 60s, true});
  store::result_start(stage.connection, node, claim.lease, {"wget", "on_Snapshot__35_wget", 7, 1, 60s, false});
  const auto facts =
      stage.ask(id, "snapshot", {"runs on worker one", "in hook wget/on_Snapshot__35_wget", "of at most 60 s"});
  CHECK(facts["hooks"].size() == 2);
  CHECK(facts["node_id"] == node);
  CHECK_FALSE(facts.contains("no_progress_since"));
  const auto says = [](const std::string& snapshot, const std::string& hook) {
    return R"({"no_progress": {")" + snapshot + R"(": {"plugin": "wget", "hook": ")" + hook +
           R"(", "seconds": 90.5, "limit": 600}}})";
  };
  const std::string still = "select coalesce((p.beat_at - r.no_progress_since)::text, 'moves') from holdfast.v_running "
                            "r, holdfast.process p where p.label = r.node and r.plugin = 'wget'";
  stage.stats(node, says(id, "on_Snapshot__35_wget"));
  CHECK(stage.value(still) == "00:01:30.5");
  CHECK(stage.value("select count(no_progress_since) from holdfast.v_running") == "1");
  CHECK(stage.ask(id, "snapshot", {"printed, written nor computed since", "may do so for 10 min"})
            .contains("no_progress_since"));
  for (const auto& other : {says(id, "on_Snapshot__30_other"), says(base::new_uuid(), "on_Snapshot__35_wget")}) {
    stage.stats(node, other);
    CHECK(stage.value(still) == "moves");
  }
  stage.stats(node, "{}");
  stage.ask(crawl, "crawl", {"1 snapshot of it is in work on worker one", "1 more wait"});
  stage.ask(node, "process", {"works on 1 snapshot (8 slots)"});

  stage.expire(node);
  stage.ask(id, "snapshot", {"worker one has not been heard of since", "lease has run out"});
  stage.ask(node, "process", {"not been heard of", "1 snapshot it holds will be given to others"});
  stage.node("two");
  CHECK(store::lapse_nodes(stage.connection) == 1);
  stage.ask(node, "process", {"has ended at", "its lease lapsed"});
}

TEST_CASE("a snapshot that waits") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1")});
  const auto node = stage.node("node");
  const auto claim = stage.claim_and_start(node);
  const auto id = claim.lease.snapshot_id;
  store::snapshot_release(stage.connection, node, claim.lease, "released", 1h, "the site said 503", true);
  const auto facts = stage.ask(id, "snapshot", {"put off until", "the site said 503", "after 1 attempt"});
  CHECK(facts["attempts"] == 1);
  stage.run("update holdfast.snapshot_queue set retry_at = now() - interval '1 second', reason = null");
  stage.run("update holdfast.crawl_queue set ready_at = now()");

  store::host_pause(stage.connection, "site.test", {"ann", "they asked us to stop"});
  stage.ask(id, "snapshot", {"due, but its host site.test is paused by ann: they asked us to stop"});
  stage.ask("site.test", "host", {"It is paused by ann: they asked us to stop"});
  stage.run("update holdfast.host set paused = false, reason = '429 Too Many Requests', backoff_level = 2, "
            "backoff_until = now() + interval '1 hour'");
  stage.ask(id, "snapshot", {"its host site.test is left in peace until", "429 Too Many Requests"});
  stage.run("update holdfast.host set backoff_until = null, reason = null, min_delay = '30 seconds', next_at = now() + "
            "interval '20 seconds'");
  stage.ask(id, "snapshot", {"its host site.test is visited at most every 30 s, next at"});
  stage.run("update holdfast.host set next_at = null, min_delay = '0', max_parallel = 1");
  const auto other = stage.start({Stage::seed("other")});
  stage.run("update holdfast.snapshot_queue set owner_id = $1::uuid, claimed_at = now() where crawl_id = $2::uuid",
            pg::Params::of(node, other));
  stage.ask(id, "snapshot", {"its host site.test has as many snapshots in work as it may (1)"});
  stage.run("update holdfast.host set max_parallel = null");
  stage.ask("site.test", "host", {"Nothing holds it back now"});
  stage.run("update holdfast.snapshot_queue set owner_id = null, claimed_at = null where crawl_id = $1::uuid",
            pg::Params::of(other));
  stage.run("update holdfast.crawl_queue set ready_at = now()");

  stage.run("update holdfast.snapshot_queue set status = 'paused', retry_at = holdfast.retry_at_max(), reason = 'by "
            "ann' where snapshot_id = $1::uuid",
            pg::Params::of(id));
  stage.ask(id, "snapshot", {"paused itself (by ann), while its crawl goes on"});
  stage.run("update holdfast.snapshot_queue set excluded = true where snapshot_id = $1::uuid", pg::Params::of(id));
  stage.ask(id, "snapshot", {"outside the scope of its crawl"});
  stage.run("update holdfast.snapshot_queue set excluded = false, status = 'queued', retry_at = now(), reason = null "
            "where snapshot_id = $1::uuid",
            pg::Params::of(id));

  stage.run("select holdfast.collection_pause('bob', 'moving house')");
  stage.ask(id, "snapshot", {"the whole collection is paused since", "UTC by bob: moving house."});
  stage.ask(crawl, "crawl", {"the whole collection is paused since"});
  stage.run("update holdfast.collection set paused_at = null, paused_by = null");
  stage.run(
      "update holdfast.crawl set max_time = '1 hour', deadline_at = now() - interval '1 minute' where id = $1::uuid",
      pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"the time of its crawl was over at", "max_time 60 min"});
  stage.ask(crawl, "crawl", {"Its time was over at"});
  stage.run("update holdfast.crawl set max_time = '0', deadline_at = null where id = $1::uuid", pg::Params::of(crawl));
  stage.run("update holdfast.crawl set stopping_at = now(), changed_by = 'ann' where id = $1::uuid",
            pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"its crawl is being stopped since", "ann"});
  stage.ask(crawl, "crawl", {"It is being stopped since"});
  stage.run("update holdfast.crawl set stopping_at = null where id = $1::uuid", pg::Params::of(crawl));
  stage.run("update holdfast.crawl set status = 'paused', retry_at = holdfast.retry_at_max(), paused_at = now(), "
            "changed_by = 'ann', reason = 'paused by ann: too many' where id = $1::uuid",
            pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"its crawl is paused since", "UTC by ann: too many."});
  stage.ask(crawl, "crawl", {"It is paused since", "UTC by ann: too many."});
  stage.run("update holdfast.crawl set status = 'queued', retry_at = now() + interval '1 hour', paused_at = null, "
            "reason = 'later' where id = $1::uuid",
            pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"waits for its crawl to be started", "a node with room"});
  stage.ask(crawl, "crawl", {"put off until", "later"});
  stage.run("update holdfast.crawl set retry_at = now() where id = $1::uuid", pg::Params::of(crawl));
  stage.ask(crawl, "crawl", {"It waits to be started, and a node with room"});
  // A crawl may have only so many at once.
  stage.broken_on_purpose = true;
}

TEST_CASE("a crawl's own cap on snapshots at once") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1"), Stage::seed("2")});
  const auto node = stage.node("node");
  const auto claim = stage.claim(node);
  stage.run("update holdfast.crawl set max_parallel = 1 where id = $1::uuid", pg::Params::of(crawl));
  const auto other = stage.value("select snapshot_id::text from holdfast.snapshot_queue where owner_id is null");
  stage.ask(other, "snapshot", {"its crawl has as many snapshots in work as it may (1)"});
  stage.ask(crawl, "crawl", {"1 snapshot of it is in work"});
}

TEST_CASE("how snapshots and crawls ended") {
  Questions stage;
  store::NewCrawl capped;
  capped.max_urls = 4;
  const auto crawl = stage.start(Stage::seeds(1, 9), capped);
  stage.ask(crawl, "crawl", {"None of its 4 open snapshots is in work", "limit max_urls is reached"});
  const auto node = stage.node("node");
  const auto good = stage.claim_and_start(node);
  stage.seal(node, good);
  stage.ask(good.lease.snapshot_id, "snapshot", {"done: sealed with outcome succeeded at", "by node"});

  const auto half = stage.claim_and_start(node);
  store::result_start(stage.connection, node, half.lease, {"wget", "hook", 1, 1, 1s, false});
  store::result_finish(stage.connection, node, half.lease, "wget", "hook", "failed",
                       R"({"error": "no route to host\nand more"})");
  auto partial = Stage::succeeded();
  partial.outcome = "partial";
  stage.seal(node, half, partial);
  const auto facts = stage.ask(half.lease.snapshot_id, "snapshot", {"outcome partial", "wget: no route to host"});
  CHECK(facts["hooks"][0]["plugin"] == "wget");

  const auto bad = stage.claim_and_start(node);
  store::Sealing refused;
  refused.outcome = "refused";
  refused.reason = "it is a private address";
  stage.seal(node, bad, refused);
  stage.ask(bad.lease.snapshot_id, "snapshot", {"outcome refused", "it is a private address"});
  store::node_leave(stage.connection, node, 0, "done");
  stage.ask(node, "process", {"has ended at", "done (exit code 0)"});

  std::string poison;
  for (int i = 0; i < 3; ++i) {
    const auto doomed = stage.node("doomed");
    poison = stage.claim_and_start(doomed).lease.snapshot_id;
    stage.expire(doomed);
    store::lapse_nodes(stage.connection);
  }
  const auto story =
      stage.ask(poison, "snapshot", {"outcome quarantined", "because the node that held it died, 3 times over"});
  CHECK(story["owners_lost"] == 3);
  stage.ask(crawl, "crawl",
            {"done: sealed with outcome partial", "4 snapshots", "2 failed and 1 partial",
             "Of the last that failed: it is done: sealed with outcome", "cut short by its limit max_urls"});

  const auto empty = stage.add({});
  const auto last = stage.node("last");
  const auto lease = store::crawl_claim(stage.connection, last, 1min);
  store::crawl_expand(stage.connection, last, *lease, 10);
  stage.ask(empty, "crawl", {"outcome empty", "0 snapshots"});
}

TEST_CASE("a crawl that the runner is about to seal") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1")});
  stage.force("delete from holdfast.snapshot_queue");
  stage.ask(crawl, "crawl", {"It has nothing open and will be sealed by the runner's next look"});
  stage.broken_on_purpose = true;
}

TEST_CASE("a crawl whose seeds a lost node was expanding") {
  Questions stage;
  const auto crawl = stage.add(Stage::seeds(1, 3));
  const auto node = stage.node("gone");
  store::crawl_claim(stage.connection, node, 1min);
  stage.expire(node);
  stage.ask(crawl, "crawl", {"gone has not been heard of", "lease has run out"});
  store::lapse_nodes(stage.connection);
}

TEST_CASE("processes") {
  Questions stage;
  const auto node = stage.node("node");
  stage.ask(node, "process", {"idle: all 8 slots are free", "left"});
  const auto silent = stage.node("silent");
  stage.expire(silent);
  stage.ask(silent, "process", {"not been heard of", "it holds nothing"});
  stage.run("update holdfast.process set status = 'exited', ended_at = now(), exit_reason = null where id = $1::uuid",
            pg::Params::of(silent));
  stage.ask(silent, "process", {"It has ended at", "it did not say why"});
  stage.stats(node, R"({"not_claiming": "only 3 MB free"})");
  stage.ask(node, "process", {"claims nothing, because only 3 MB free"});
  stage.run("select holdfast.node_pause($1::uuid, 'ann', 'a new disk')", pg::Params::of(node));
  stage.ask(node, "process", {"paused since", "UTC by ann: a new disk", "holds 0 snapshots"});
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(node));
  stage.ask(node, "process", {"draining: it finishes the 0 snapshots it has"});
  stage.run("update holdfast.process set request = 'stop' where id = $1::uuid", pg::Params::of(node));
  stage.ask(node, "process", {"asked to stop and puts its 0 snapshots back"});

  const auto runner = [&](const std::string& label, bool standby) {
    const auto id = base::new_uuid();
    stage.run(
        R"(select holdfast.runner_join($1::uuid, '{"id":"m","hostname":"h"}', 'boot', 1, 1, 'ns', $2, 'v', $3, interval '1 hour'))",
        pg::Params::of(id, label, standby));
    return id;
  };
  const auto leader = runner("runner one", false);
  stage.ask(leader, "process", {"waits at the gate and nobody leads yet"});
  stage.run("select holdfast.runner_enter($1::uuid, interval '1 hour')", pg::Params::of(leader));
  stage.ask(leader, "process", {"leads as the runner with epoch 1", "left"});
  const auto patient = runner("runner two", true);
  stage.ask(patient, "process", {"stands by while runner one leads"});
  const auto rival = runner("runner three", false);
  stage.run("select holdfast.runner_enter($1::uuid, interval '1 hour')", pg::Params::of(rival));
  stage.ask(rival, "process", {"waits at the gate while runner one leads"});
  stage.ask(leader, "process", {"a newer runner has asked it to leave"});
}

TEST_CASE("what is stuck is found, also at a web site with limits, and what waits on purpose is not") {
  Questions stage;
  const auto stuck = [&] {
    return stage.value("select string_agg(kind || ': ' || what, ', ' order by what) from holdfast.v_stuck");
  };
  stage.start({Stage::seed("1")});
  stage.leave_all();
  CHECK(stuck().empty());
  stage.run("update holdfast.snapshot_queue set retry_at = now() - interval '3 minutes'");
  stage.run("update holdfast.crawl_queue set ready_at = now() - interval '3 minutes'");
  CHECK(stuck() == "snapshot: due, but nobody takes it");
  CHECK(stage.value("select reason from holdfast.v_stuck").find("no node runs") != std::string::npos);
  // Nodes without a runner are told of, but not the node that an add has for a moment.
  {
    const auto lonely = stage.node("lonely");
    CHECK(stage.value("select runners from holdfast.v_status") == "0");
    stage.run("update holdfast.process set started_at = now() - interval '20 minutes' where id = $1::uuid",
              pg::Params::of(lonely));
    CHECK(stuck() == "snapshot: due, but nobody takes it, runner: nobody leads");
    stage.leave_all();
  }

  // As nearly every snapshot is: its host has a cap.
  stage.run("insert into holdfast.host (name, max_parallel) values ('site.test', 4)");
  stage.run("update holdfast.snapshot_queue set lane = true");
  stage.run("insert into holdfast.crawl_lane (crawl_id, host, next_at) select crawl_id, host, now() - interval '3 "
            "minutes' from "
            "holdfast.snapshot_queue");
  CHECK(stuck() == "snapshot: due, but nobody takes it");
  CHECK(stage.value(
            "select count(*) from holdfast.metrics() where name = 'holdfast_queue_age_seconds' and labels ->> 'kind' "
            "= 'snapshot' and value > 170") == "1");
  // Claims have looked, and the host has to wait.
  stage.run("update holdfast.crawl_lane set next_at = now() + interval '1 minute'");
  CHECK(stuck().empty());
  stage.run("update holdfast.crawl_lane set next_at = 'infinity'");
  CHECK(stuck().empty());
  stage.run("update holdfast.crawl_lane set next_at = now()");

  const auto node = stage.node("node");
  const auto claim = stage.claim_and_start(node);
  store::result_start(stage.connection, node, claim.lease, {"wget", "on_Snapshot__35_wget", 7, 1, 1s, false});
  CHECK(stuck().empty());
  stage.run("update holdfast.archive_result set started_at = now() - interval '5 minutes'");
  CHECK(stuck() == "snapshot: hook wget/on_Snapshot__35_wget is past its time");
  stage.run("update holdfast.archive_result set started_at = now()");
  stage.run("update holdfast.snapshot_queue set claimed_at = now() - interval '2 hours'");
  CHECK(stuck() == "snapshot: in work for very long");
  stage.run("update holdfast.snapshot_queue set claimed_at = now()");
  stage.run("update holdfast.process set lease_until = now() - interval '1 minute' where id = $1::uuid",
            pg::Params::of(node));
  CHECK(stuck() == "process: its lease has run out");
  store::lapse_nodes(stage.connection);
  CHECK(stage.value("select string_agg(name || ' ' || value, ', ' order by name) from holdfast.tally") ==
        "nodes_lost 1, takeovers 1");
  const auto late = stage.add({Stage::seed("2")});
  stage.run("update holdfast.crawl set retry_at = now() - interval '3 minutes' where id = $1::uuid",
            pg::Params::of(late));
  CHECK(stuck().find("crawl: due, but nobody takes it") != std::string::npos);
}

namespace {

// What the functions behind why() are made of that people read: the string constants of their bodies which have a
// space, without patterns and spans of time.
std::set<std::string> sentence_parts() {
  std::set<std::string> parts;
  std::size_t functions = 0;
  for (const auto& file : migrations::functions()) {
    const std::string text(file.text);
    static const std::regex head(R"(create or replace function holdfast\.why\w*\()");
    for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) {
      ++functions;
      const auto begin = text.find("$$", static_cast<std::size_t>(at->position())) + 2;
      const auto stop = text.find("$$", begin);
      REQUIRE(stop != std::string::npos);
      for (auto i = begin; i < stop; ++i) {
        if (text.compare(i, 2, "--") == 0) i = text.find('\n', i);
        if (text[i] != '\'') continue;
        const bool span = text.compare(i - 9, 9, "interval ") == 0;
        std::string part;
        for (++i; text[i] != '\'' || text[i + 1] == '\''; ++i) {
          if (text[i] == '\'') ++i;
          part += text[i];
        }
        if (!span && part.find(' ') != std::string::npos && part.find('%') == std::string::npos) parts.insert(part);
      }
    }
  }
  REQUIRE(functions > 10);
  return parts;
}

} // namespace

// The last of this file: the test cases above must have run before it. doctest runs them in the order of the file.
TEST_CASE("every part of every sentence that why() can say was said in a test") {
  const auto parts = sentence_parts();
  CHECK(parts.size() > 100);
  for (const auto& part : parts)
    CHECK_MESSAGE(all_reasons().find(part) != std::string::npos, "no test produces \"" << part << "\"");
}
