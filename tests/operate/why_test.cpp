// Every reason that holdfast.why() can give, each from a collection that is really in that state.
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/find.hpp"
#include "lib/store/worker.hpp"
#include "migrations/migrations.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <regex>
#include <set>
#include <thread>

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
    run("select holdfast.process_leave(id, 0, 'told to') from holdfast.process where status = 'running'");
  }
  void stats(const std::string& worker, const std::string& json) {
    run("update holdfast.process set stats = $2::jsonb where id = $1::uuid", pg::Params::of(worker, json));
  }
};

} // namespace

TEST_CASE("what has no name, or too many") {
  Questions stage;
  stage.ask("5a5a", "nothing", {"\"5a5a\" names nothing"});
  stage.ask("not an id", "nothing", {"names nothing"});
  stage.ask("5a5", "nothing", {"too short for an id"});
  stage.ask(base::new_uuid(), "nothing", {"names nothing"});
  store::NewCrawl first, second;
  first.id = "aaaabbbb-0000-7000-8000-000000000001";
  second.id = "aaaabbbb-0000-7000-8000-000000000002";
  stage.add({Stage::seed("1")}, first);
  stage.add({Stage::seed("2")}, second);
  const auto facts = stage.ask("aaaabbbb", "nothing", {"short for more than one id"});
  CHECK(facts["matches"].size() == 2);
  CHECK(stage.value("select count(*) from holdfast.why(gen_random_uuid())") == "1");
  CHECK(stage.value("select kind from holdfast.why(gen_random_uuid())") == "nothing");
  all_reasons() += stage.value("select reason from holdfast.why(gen_random_uuid())") + '\n';
  CHECK(stage.value("select reason from holdfast.why($1::uuid)", pg::Params::of(first.id)) ==
        store::why(stage.connection, first.id).reason);
}

TEST_CASE("a snapshot that is due, and why no worker claims it") {
  Questions stage;
  const auto crawl = stage.add({Stage::seed("1")});
  stage.ask(crawl, "crawl",
            {"Its 1 URL waits for a worker to queue it", "no worker is running, and none has run before"});
  const auto expander = stage.worker("expander");
  const auto lease = store::crawl_claim(stage.connection, expander, 1min);
  stage.ask(crawl, "crawl", {"being expanded by expander", "1 left"});
  store::crawl_expand(stage.connection, expander, *lease, 10);
  stage.leave_all();
  const auto id = stage.only_snapshot();
  auto facts =
      stage.ask(id, "snapshot", {"due since", "no worker is running", "the last one, expander, ended", "told to"});
  CHECK(facts["url"] == "https://site.test/1");
  CHECK(facts["workers"] == 0);
  stage.ask(id.substr(id.size() - 12), "snapshot", {"no worker is running"});
  stage.ask(crawl, "crawl", {"None of its 1 open snapshot is running. The next one: it has been due", "no worker"});

  const auto one = stage.worker("one");
  stage.ask(id, "snapshot", {"due since", "a worker with a free slot will claim it in a moment"});
  stage.stats(one, R"({"not_claiming": "only 3 MB free in work_dir"})");
  facts = stage.ask(id, "snapshot", {"no worker can claim: 1 not claiming (one says: only 3 MB free"});
  CHECK(facts["says"] == "one says: only 3 MB free in work_dir");
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(one));
  stage.ask(id, "snapshot", {"no worker can claim: 1 draining"});
  stage.run("update holdfast.process set draining = false, paused_at = now(), paused_by = 'ann' where id = $1::uuid",
            pg::Params::of(one));
  stage.ask(id, "snapshot", {"no worker can claim: 1 paused"});
  stage.run(
      "update holdfast.process set paused_at = null, paused_by = null, slots = 0, stats = '{}' where id = $1::uuid",
      pg::Params::of(one));
  facts = stage.ask(id, "snapshot", {"no worker can claim: 1 full (0 slots)"});
  CHECK(facts["full"] == 1);
  const auto two = stage.worker("two");
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(two));
  const auto three = stage.worker("three");
  stage.stats(three, R"({"not_claiming": "the disk is full"})");
  stage.ask(id, "snapshot",
            {"no worker can claim: 1 full (16 slots), 1 draining, 1 not claiming (three says: the disk is full)"});
  stage.expire(one);
  stage.expire(two);
  stage.expire(three);
  stage.ask(id, "snapshot", {"no worker is running"});
  stage.leave_all();
}

TEST_CASE("a crawl whose persona is signed out") {
  Questions stage;
  stage.run("select holdfast.persona_set('press', '{}', 'me')");
  store::NewCrawl named;
  named["persona"] = "press";
  stage.start({Stage::seed("1")}, named);
  const auto before = stage.worker();
  const auto held = stage.claim_many(before, 1);
  REQUIRE(held.size() == 1);
  CHECK(stage.value("select holdfast.persona_signed_out($1::uuid, $2::uuid, $3::bigint, 0, 'a login was shown')",
                    pg::Params::of(before, held[0].lease.snapshot_id, held[0].lease.fence)) == "t");
  store::call(stage.connection, "process_leave", before, 0, "done");
  const auto worker = stage.worker();
  stage.ask(stage.only_snapshot(), "snapshot",
            {"persona \"press\" is signed out since ",
             "(a login was shown): sign in again, or holdfast persona import press"});
  stage.run("insert into holdfast.persona_sign_in (persona, id, url, asked_by, deadline, problem) values ('press', "
            "gen_random_uuid(), 'https://press.test/', 'me', now() + interval '1 minute', 'its worker cannot listen')");
  stage.ask(stage.only_snapshot(), "snapshot", {"; the last sign-in has failed: its worker cannot listen"});
  CHECK(stage.claim_many(worker, 1).empty());
  stage.leave_all();
}

TEST_CASE("workers that have not the plugins that a crawl names") {
  Questions stage;
  store::NewCrawl named;
  named["plugins"] = {"wget,title"};
  const auto crawl = stage.start({Stage::seed("1")}, named);
  const auto id = stage.only_snapshot();
  stage.leave_all();
  const auto one = stage.worker("one"), two = stage.worker("two");
  const auto has = [&](const std::string& worker, const std::string& plugins) {
    stage.run("update holdfast.process set capabilities = jsonb_build_object('plugins', $2::jsonb) where id = $1::uuid",
              pg::Params::of(worker, plugins));
  };
  has(one, R"(["title"])");
  has(two, R"([])");
  const std::string lacking = "one has no plugin \"wget\", two has no plugin \"title\", \"wget\"";
  auto facts = stage.ask(id, "snapshot", {"but no running worker can take pages of its crawl: " + lacking + "."});
  CHECK(facts["lacking"] == lacking);
  stage.ask(crawl, "crawl", {"no running worker can take pages"});
  CHECK(stage.value("select name || ': ' || what from holdfast.v_stuck") ==
        "https://site.test/1: no running worker can take it");
  CHECK(stage.claim_many(one, 1).empty());
  CHECK(stage.claim_many(two, 1).empty());

  has(two, R"(["title", "wget", "more"])");
  facts = stage.ask(id, "snapshot", {"will claim it in a moment; one has no plugin \"wget\"."});
  CHECK(facts["lacking"] == "one has no plugin \"wget\"");
  CHECK(stage.value("select count(*) from holdfast.v_stuck") == "0");
  CHECK(stage.claim_many(one, 1).empty());
  CHECK(stage.claim_many(two, 1).size() == 1);
  stage.leave_all();
}

TEST_CASE("workers that are all alike") {
  Questions stage;
  stage.start({Stage::seed("1")});
  const auto id = stage.only_snapshot();
  stage.leave_all();
  const auto one = stage.worker("one"), two = stage.worker("two");
  for (const auto& worker : {one, two})
    stage.stats(worker, R"({"not_claiming": "archive.root is not mounted"})");
  stage.ask(id, "snapshot", {"no worker can claim: 2 not claiming (one says: archive.root is not mounted)"});
  stage.run("update holdfast.process set stats = '{}', paused_at = now()");
  stage.ask(id, "snapshot", {"no worker can claim: 2 paused"});
  stage.run("update holdfast.process set paused_at = null, draining = true");
  stage.ask(id, "snapshot", {"no worker can claim: 2 draining"});
  stage.run("update holdfast.process set draining = false, slots = 0");
  stage.ask(id, "snapshot", {"no worker can claim: 2 full (0 slots)"});
  stage.leave_all();
}

TEST_CASE("what was cancelled, has failed, or could not run everything") {
  Questions stage;
  const auto crawl = stage.start(Stage::seeds(1, 3));
  const auto worker = stage.worker("worker");
  const auto bad = stage.claim(worker);
  auto failed = Stage::sealed(bad, "failed");
  failed.results = {Stage::result("chrome", "on_Snapshot__51_screenshot", "skipped"),
                    Stage::result("wget", "on_Snapshot__35_wget", "failed")};
  failed.results[0].error = "there is no chromium on this machine";
  failed.results[1].error = "no route to host";
  failed.facts["cut"] = R"(["load", "scroll"])";
  failed.facts["files_from"] = R"("01a22080-9b2e-7db6-803b-5790f1baccff")";
  failed.facts["unrecorded"] = R"({"unseen.test": 2048})";
  stage.finish(worker, failed);
  const auto facts =
      stage.ask(bad.lease.snapshot_id, "snapshot",
                {"outcome failed", "wget: no route to host", "; in no record: 2048 bytes from unseen.test",
                 "; no hook ran, because the site sent the same files as for 01a22080-9b2e-7db6-803b-5790f1baccff",
                 "; cut short: load, scroll", "skipped: chrome: there is no chromium on this machine"});
  CHECK(facts["hooks"].size() == 2);
  const auto other = stage.value("select snapshot_id::text from holdfast.snapshot_queue limit 1");
  stage.run("select holdfast.crawl_cancel($1::uuid, 'ann', 'no need')", pg::Params::of(crawl));
  stage.ask(other, "snapshot", {"outcome cancelled"});
  stage.ask(crawl, "crawl", {"Finished at", "with outcome", "because it was cancelled"});
}

TEST_CASE("schedules and watches") {
  Questions stage;
  const auto add = [&](const std::string& label, const std::string& rest) {
    stage.run("select holdfast.schedule_add(holdfast.new_uuid(), '" + label + "', " + rest + ")");
  };
  add("weekly", "'weekly', 'UTC', '{https://site.test/}', '{}'");
  stage.ask("weekly", "schedule", {"It runs next at", "(weekly, UTC)", "No runner leads, so it does not run"});
  add("news", "'15m..1d', 'UTC', '{https://site.test/}', '{}', '{\"when\": \"text changes\"}'");
  stage.ask("news", "schedule",
            {"every 15 min, between 15m and 1d; the interval halves when the page changes and grows by half "
             "when it does not"});
  stage.run("select holdfast.schedule_run(id, holdfast.new_uuid()) from holdfast.schedule where label = 'news'");
  stage.run("update holdfast.schedule set note = 'skipped' where label = 'news'");
  stage.ask("news", "schedule", {"Its crawl", "is still open; it runs next at", "; last: skipped."});
  stage.run("select holdfast.schedule_enable(id, false) from holdfast.schedule where label = 'weekly'");
  stage.ask("weekly", "schedule", {"It is paused; last: paused."});
}

TEST_CASE("e-mail and Apprise") {
  Questions stage;
  stage.run("select holdfast.webhook_set('team', 'apprise:team', '{}', 'ann')");
  stage.run("select holdfast.webhook_test('team', 'ann')");
  stage.ask("team", "webhook",
            {"no worker or runner that has its services (apprise.config), and the program apprise,"});
  stage.run("select holdfast.webhook_set('me', 'mailto:me@example.org', '{}', 'ann')");
  stage.run("select holdfast.webhook_test('me', 'ann')");
  stage.ask("me", "webhook", {"1 delivery waits, but no worker or runner that has its server (mail.server)"});
}

TEST_CASE("webhooks") {
  Questions stage;
  stage.run("select holdfast.webhook_set('ops', 'https://hooks.test/secret', '{worker.lapsed}', 'ann')");
  auto facts = stage.ask("ops", "webhook", {"Nothing waits for it"});
  CHECK(facts["origin"] == "https://hooks.test");
  const auto test = [&] { stage.run("select holdfast.webhook_test('ops', 'ann')"); };
  const auto claim = [&] {
    return stage.value("select id || ' ' || fence from holdfast.webhook_claim('worker one', null, '1 minute', 1)");
  };
  const auto report = [&](const std::string& claimed, const std::string& outcome) {
    const auto space = claimed.find(' ');
    stage.run("select holdfast.webhook_report(" + claimed.substr(0, space) + ", " + claimed.substr(space) + ", " +
              outcome + ")");
  };
  test();
  stage.ask("ops", "webhook", {"1 delivery waits, but no worker or runner that has its secret", "has asked for work"});
  auto claimed = claim();
  stage.ask("ops", "webhook", {"1 delivery waits, and worker one is sending now"});
  report(claimed, "503, 'it answered HTTP 503', false");
  stage.ask("ops", "webhook",
            {"1 delivery waits: its receiver failed 1 time in a row (it answered HTTP 503), it is tried again at"});
  stage.run("update holdfast.webhook set last_error = null");
  stage.ask("ops", "webhook", {"failed 1 time in a row (no reason given)"});
  stage.run("select holdfast.webhook_retry('ops', 'ann')");
  stage.ask("ops", "webhook", {"1 delivery waits and will be sent in a moment"});
  test();
  stage.run("update holdfast.webhook set asked_at = now() - interval '1 hour'");
  stage.ask("ops", "webhook", {"2 deliveries wait, but no worker or runner", "since"});
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
  stage.ask("ops", "webhook", {"It is not enabled (no reason given)"});
  stage.run("select holdfast.webhook_enable('ops', true, 'ann')");
  report(claim(), "410, 'it answered HTTP 410', true");
  facts = stage.ask("ops", "webhook", {"It is not enabled (its receiver said that it is gone (410))"});
  CHECK(facts["given_up"] == 1);
  stage.run("delete from holdfast.delivery where status = 'waiting'");
  stage.ask("ops", "webhook", {"It is not enabled", "and nothing waits"});
}

TEST_CASE("a snapshot that a worker has") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1"), Stage::seed("2")});
  const auto worker = stage.worker("worker one");
  const auto claim = stage.claim(worker);
  const auto id = claim.lease.snapshot_id;
  stage.ask(id, "snapshot", {"has been running on worker one since", "no hook running right now"});

  const auto session = base::new_uuid();
  stage.run("select holdfast.session_open($1::uuid, $2::uuid, $3::uuid, '/tmp/x')",
            pg::Params::of(worker, session, crawl));
  stage.run(
      R"(select holdfast.session_set($1::uuid, 'opening', null, '[{"plugin":"chrome","hook_name":"launch","status":"started"}]'))",
      pg::Params::of(session));
  stage.ask(id, "snapshot", {"waits for the hooks of its crawl there, starting since", "(chrome)"});
  stage.run("select holdfast.session_set($1::uuid, 'failed', 'chrome would not start', "
            "'[{\"plugin\":\"chrome\",\"hook_name\":\"launch\",\"status\":\"failed\"}]')",
            pg::Params::of(session));
  stage.ask(id, "snapshot", {"the hooks of its crawl have failed: chrome would not start"});
  stage.force("update holdfast.session set status = 'draining', ended_at = null, reason = 'its worker leaves'");
  stage.ask(id, "snapshot", {"the hooks of its crawl are being ended: its worker leaves"});
  stage.force("update holdfast.session set status = 'closed', ended_at = now()");

  stage.ask(id, "snapshot", {"has been running on worker one since", "with no hook running right now"});
  std::vector<store::ActiveHook> hooks = {Stage::running(claim, "chrome", "on_Snapshot__10_tab.bg"),
                                          Stage::running(claim, "wget", "on_Snapshot__35_wget")};
  hooks[0].background = true;
  store::worker_hooks(stage.connection, worker, hooks);
  const auto facts =
      stage.ask(id, "snapshot", {"running on worker one", "in hook wget/on_Snapshot__35_wget", "(limit 60 s)"});
  CHECK(facts["hooks"].size() == 2);
  CHECK(facts["worker_id"] == worker);
  CHECK_FALSE(facts.contains("no_progress_since"));
  CHECK(stage.value("select count(no_progress_since) from holdfast.v_running") == "0");
  stage.run("update holdfast.running_hook set no_progress_since = now() - interval '90 seconds' where plugin = 'wget'");
  CHECK(stage.value("select count(no_progress_since) from holdfast.v_running") == "1");
  CHECK(stage.ask(id, "snapshot", {"which has shown no progress since"}).contains("no_progress_since"));
  // A row of an earlier attempt, or of a worker that has lost the snapshot, does not count.
  const std::pair<std::string, std::string> stale[] = {{"fence = fence - 1", "fence = fence + 1"},
                                                       {"process_id = snapshot_id", "process_id = '" + worker + "'"}};
  for (const auto& [change, undo] : stale) {
    stage.run("update holdfast.running_hook set " + change);
    CHECK(stage.value("select count(*) from holdfast.v_running") == "0");
    CHECK(stage.value("select count(*) from holdfast.v_result") == "0");
    stage.ask(id, "snapshot", {"with no hook running right now"});
    stage.run("update holdfast.running_hook set " + undo);
  }
  stage.ask(crawl, "crawl", {"1 of its snapshots is running on worker one", "1 more wait"});
  stage.ask(worker, "process", {"works on 1 snapshot (8 slots)"});

  stage.expire(worker);
  stage.ask(id, "snapshot", {"worker one sent its last heartbeat at", "its lease has expired: another worker"});
  stage.ask(
      crawl, "crawl",
      {"1 more wait; the worker of 1 sent its last heartbeat at ", ": another takes over once its lease has expired"});
  stage.ask(worker, "process", {"sent its last heartbeat at", "other workers will take over its 1 snapshot"});
  stage.worker("two");
  CHECK(store::call_for<int>(stage.connection, "lapse_process") == 1);
  stage.ask(worker, "process", {"It ended at", "lease lapsed"});
}

TEST_CASE("a snapshot that waits") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1")});
  const auto worker = stage.worker("worker");
  const auto claim = stage.claim(worker);
  const auto id = claim.lease.snapshot_id;
  stage.release(worker, claim, 1h, "the site said 503");
  const auto facts = stage.ask(id, "snapshot", {"It waits until", "the site said 503", "after 1 attempt"});
  CHECK(facts["attempts"] == 1);
  stage.run("update holdfast.snapshot_queue set reason = null");
  stage.pass("1 hour");

  stage.command("pauseHost", "site.test", {{"why", "they asked us to stop"}});
  stage.ask(id, "snapshot",
            {"It has been due since", ", but its host site.test is paused by ann: they asked us to stop"});
  stage.ask("site.test", "host", {"It is paused by ann: they asked us to stop"});
  stage.run("update holdfast.host set paused = false, reason = '429 Too Many Requests', backoff_level = 2, "
            "backoff_until = now() + interval '1 hour'");
  stage.ask(id, "snapshot", {"its host site.test is in back-off until", "429 Too Many Requests"});
  stage.run("update holdfast.host set backoff_until = null, reason = null, min_delay = '30 seconds', last_at = now() - "
            "interval '10 seconds'");
  stage.ask(id, "snapshot", {"its host site.test is limited to one page every 30 s, the next at"});
  stage.run("update holdfast.host set min_delay = '0', robots_delay = '45 seconds'");
  stage.ask("site.test", "host",
            {"It is limited to one page every 45 s by crawls that follow its robots.txt, the next at"});
  stage.ask(id, "snapshot", {"It has been due since", "will claim it in a moment"});
  stage.run("update holdfast.host set robots_delay = '0'");
  stage.run("update holdfast.crawl_queue set ready_at = now() + interval '1 hour'");
  stage.ask(id, "snapshot", {", but no claim looks at it before ", "the clock has gone back"});
  stage.run("update holdfast.crawl_queue set ready_at = now()");
  stage.run("update holdfast.host set last_at = null, min_delay = '0', max_parallel = 1");
  const auto other = stage.start({Stage::seed("other")});
  stage.run("update holdfast.snapshot_queue set owner_id = $1::uuid, claimed_at = now(), due_at = retry_at, "
            "status = 'started', event = 'start' where crawl_id = $2::uuid",
            pg::Params::of(worker, other));
  stage.ask(id, "snapshot", {"its host site.test has reached its limit of 1 snapshot at once"});
  stage.run("update holdfast.host set max_parallel = null");
  stage.ask("site.test", "host", {"No limit or pause applies to this host now"});
  stage.run("update holdfast.snapshot_queue set owner_id = null, claimed_at = null, due_at = null, "
            "status = 'queued', event = 'release' where crawl_id = $1::uuid",
            pg::Params::of(other));
  stage.run("update holdfast.crawl_queue set ready_at = now()");

  stage.run("update holdfast.snapshot_queue set status = 'paused', retry_at = holdfast.retry_at_max(), reason = 'by "
            "ann' where snapshot_id = $1::uuid",
            pg::Params::of(id));
  stage.ask(id, "snapshot", {"It is paused (by ann), while its crawl goes on"});
  stage.run("update holdfast.snapshot_queue set excluded = true where snapshot_id = $1::uuid", pg::Params::of(id));
  stage.ask(id, "snapshot", {"outside the scope of its crawl"});
  stage.run("update holdfast.snapshot_queue set excluded = false, status = 'queued', retry_at = now(), reason = null "
            "where snapshot_id = $1::uuid",
            pg::Params::of(id));

  stage.run("select holdfast.collection_pause('bob', 'moving house')");
  stage.ask(id, "snapshot", {"the whole collection has been paused since", "UTC by bob: moving house."});
  stage.ask(crawl, "crawl", {"the whole collection has been paused since"});
  stage.run("update holdfast.collection set paused_at = null, paused_by = null");
  stage.run(
      "update holdfast.crawl set max_time = '1 hour', deadline_at = now() - interval '1 minute' where id = $1::uuid",
      pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"its crawl reached its time limit at", "max_time 60 min"});
  stage.ask(crawl, "crawl", {"It reached its time limit at"});
  stage.run("update holdfast.crawl set max_time = '0', deadline_at = null where id = $1::uuid", pg::Params::of(crawl));
  stage.run("update holdfast.crawl set stopping_at = now(), changed_by = 'ann' where id = $1::uuid",
            pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"its crawl has been stopping since", "(ann)"});
  stage.ask(crawl, "crawl", {"It has been stopping since"});
  stage.run("update holdfast.crawl set stopping_at = null where id = $1::uuid", pg::Params::of(crawl));
  stage.run("update holdfast.crawl set status = 'paused', retry_at = holdfast.retry_at_max(), paused_at = now(), "
            "changed_by = 'ann', reason = 'paused by ann: too many' where id = $1::uuid",
            pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"its crawl has been paused since", "UTC by ann: too many."});
  stage.ask(crawl, "crawl", {"It has been paused since", "UTC by ann: too many."});
  stage.run("update holdfast.crawl set status = 'queued', retry_at = now() + interval '1 hour', paused_at = null, "
            "reason = 'later' where id = $1::uuid",
            pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"It waits: its crawl is due at", "later"});
  stage.ask(crawl, "crawl", {"It waits until", "later"});
  stage.run("update holdfast.crawl set retry_at = now() where id = $1::uuid", pg::Params::of(crawl));
  stage.ask(id, "snapshot", {"waits for its crawl to be started, and a worker with a free slot"});
  stage.ask(crawl, "crawl", {"It waits to be started, and a worker with a free slot"});
  // A crawl may have only so many at once.
  stage.broken_on_purpose = true;
}

TEST_CASE("a crawl that was resumed for later is due then, and so are its pages, wherever one looks") {
  Questions stage;
  const auto worker = stage.worker("patient");
  const auto crawl = stage.start({Stage::seed("held"), Stage::seed("waiting")});
  const auto held = stage.claim(worker).lease.snapshot_id;
  stage.run("select holdfast.crawl_pause($1::uuid, 'ann', 'later')", pg::Params::of(crawl));
  stage.run("select holdfast.crawl_resume($1::uuid, 'ann', 'at night', now() + interval '2 hours')",
            pg::Params::of(crawl));
  const auto at = stage.value("select holdfast.people_time(retry_at) from holdfast.crawl");
  for (const auto& page : {held, stage.value("select id::text from holdfast.v_queue where url like '%waiting'")}) {
    const auto facts = stage.ask(page, "snapshot", {"It waits: its crawl is due at " + at, "resumed by ann: at night"});
    CHECK(stage.value("select $1::timestamptz = retry_at from holdfast.crawl",
                      pg::Params::of(facts["retry_at"].get<std::string>())) == "t");
  }
  stage.ask(crawl, "crawl", {"It waits until " + at, "resumed by ann: at night"});
  const std::string of_both = "select count(*) || string_agg(distinct ";
  const std::string waits = "its crawl is due at " + at + ": resumed by ann: at night";
  CHECK(stage.value(of_both + "state, '/') from holdfast.v_queue") == "2waits: " + waits);
  CHECK(stage.value(of_both + "reason, '/') from holdfast.v_snapshot") == "2" + waits);
  CHECK(stage.value(of_both + "(v.retry_at = c.retry_at)::text, '/') from holdfast.v_snapshot v join holdfast.crawl c "
                              "on c.id = v.crawl_id") == "2true");
  CHECK(stage.value("select max(due_for) < '-1 hour' from holdfast.v_queue") == "t");
  CHECK(stage.value("select url || reason from holdfast.next_work()").find("It waits until " + at) !=
        std::string::npos);
  // Once it is due, no page keeps the reason of the pause.
  stage.run("update holdfast.crawl set retry_at = now() where id = $1::uuid", pg::Params::of(crawl));
  CHECK(stage.value(of_both + "state, '/') from holdfast.v_queue") == "2due");
  CHECK(stage.value("select count(reason) from holdfast.v_snapshot") == "0");
}

TEST_CASE("URLs that are queued while no worker runs are stuck") {
  Questions stage;
  stage.add(Stage::seeds(1, 3));
  CHECK(stage.value("select count(*) from holdfast.v_stuck") == "0");
  stage.run("update holdfast.crawl set retry_at = now() - interval '15 seconds'");
  const std::string stuck = "select string_agg(what || ': ' || reason, '; ') from holdfast.v_stuck";
  CHECK(stage.value(stuck).starts_with("no worker is running: Its 3 URLs wait"));
  stage.worker("other");
  CHECK(stage.value(stuck) == "");
}

TEST_CASE("a worker that was killed has no heartbeat until its lease ends") {
  Questions stage;
  const auto worker = stage.worker("killed", 1min);
  const auto crawl = stage.start({Stage::seed("1")});
  const auto page = stage.claim(worker).lease.snapshot_id;
  const auto state = [&] {
    return stage.value("select v.state || ', ' || p.state from holdfast.v_worker v join holdfast.v_process p on "
                       "p.process_id = v.id where v.id = $1::uuid",
                       pg::Params::of(worker));
  };
  CHECK(state() == "runs, runs");
  stage.run("update holdfast.process set heartbeat_at = now() - interval '40 seconds', lease_until = now() + interval "
            "'20 seconds' where id = $1::uuid",
            pg::Params::of(worker));
  CHECK(state() == "no heartbeat, no heartbeat");
  stage.ask(worker, "process",
            {"It sent its last heartbeat at", "its lease holds for 1", "then other workers take over its 1 snapshot"});
  stage.ask(page, "snapshot",
            {"Its worker sent its last heartbeat at", "its lease holds for 1", "then another worker takes over"});
  stage.expire(worker);
  CHECK(state() == "lapsed, lapsed");
}

TEST_CASE("a worker stays below its runner when that has joined again under another id") {
  Questions stage;
  const auto run = stage.worker("run"), child = stage.worker("child");
  stage.run("update holdfast.process set parent_id = $1::uuid where id = $2::uuid", pg::Params::of(run, child));
  const auto tree = [&] { return stage.value("select string_agg(tree, '/') from holdfast.v_process"); };
  CHECK(tree() == "run/   child");
  stage.run("select holdfast.process_leave($1::uuid, 0, 'made way')", pg::Params::of(run));
  CHECK(tree() == "child");
  const auto again = stage.worker("again");
  stage.run("update holdfast.process n set (machine_id, boot_id, pid, start_ticks) = (select machine_id, boot_id, pid, "
            "start_ticks from holdfast.process where id = $1::uuid) where n.id = $2::uuid",
            pg::Params::of(run, again));
  CHECK(tree() == "again/   child");
}

TEST_CASE("a crawl's own cap on snapshots at once") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1"), Stage::seed("2")});
  const auto worker = stage.worker("worker");
  const auto claim = stage.claim(worker);
  stage.run("update holdfast.crawl set max_parallel = 1 where id = $1::uuid", pg::Params::of(crawl));
  const auto other = stage.value("select snapshot_id::text from holdfast.snapshot_queue where owner_id is null");
  stage.ask(other, "snapshot", {"its crawl has reached its limit of 1 snapshot at once"});
  stage.ask(crawl, "crawl", {"1 of its snapshots is running on worker"});
}

TEST_CASE("how snapshots and crawls ended") {
  Questions stage;
  store::NewCrawl capped;
  capped["max_urls"] = 4;
  const auto crawl = stage.start(Stage::seeds(1, 9), capped);
  stage.ask(crawl, "crawl", {"None of its 4 open snapshots is running", "has reached its limit max_urls"});
  const auto worker = stage.worker("worker");
  const auto good = stage.claim(worker);
  stage.seal(worker, good);
  stage.ask(good.lease.snapshot_id, "snapshot", {"Finished at", "by worker with outcome succeeded"});

  const auto half = stage.claim(worker);
  auto partial = Stage::sealed(half, "partial");
  partial.results = {Stage::result("wget", "hook", "failed")};
  partial.results[0].error = "no route to host\nand more";
  stage.finish(worker, partial);
  const auto facts = stage.ask(half.lease.snapshot_id, "snapshot", {"outcome partial", "wget: no route to host"});
  CHECK(facts["hooks"][0]["plugin"] == "wget");

  const auto bad = stage.claim(worker);
  auto refused = Stage::sealed(bad, "refused");
  refused.reason = "it is a private address";
  refused.directory.clear(); // no hook has run
  stage.finish(worker, refused);
  stage.ask(bad.lease.snapshot_id, "snapshot", {"outcome refused", "it is a private address"});
  store::call(stage.connection, "process_leave", worker, 0, "done");
  stage.ask(worker, "process", {"It ended at", "done (exit code 0)"});

  std::string poison;
  for (int i = 0; i < 3; ++i) {
    const auto doomed = stage.worker("doomed");
    poison = stage.claim(doomed).lease.snapshot_id;
    stage.expire(doomed);
    store::call(stage.connection, "lapse_process");
  }
  const auto story = stage.ask(poison, "snapshot", {"outcome quarantined: its worker died, 3 times over"});
  CHECK(story["lapses"] == 3);
  stage.ask(crawl, "crawl",
            {"with outcome partial: 4 snapshots, 1 partial, 2 failed", "The last one that failed: finished at",
             "cut short by its limit max_urls"});

  const auto empty = stage.add({});
  const auto last = stage.worker("last");
  const auto lease = store::crawl_claim(stage.connection, last, 1min);
  store::crawl_expand(stage.connection, last, *lease, 10);
  stage.ask(empty, "crawl", {"outcome empty", "0 snapshots"});
}

TEST_CASE("a crawl that the runner is about to seal") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1")});
  stage.force("delete from holdfast.snapshot_queue");
  stage.ask(crawl, "crawl", {"It has nothing left to do, and the runner will seal it on its next round"});
  stage.broken_on_purpose = true;
}

TEST_CASE("a crawl whose seeds a lapsed worker was expanding") {
  Questions stage;
  const auto crawl = stage.add(Stage::seeds(1, 3));
  const auto worker = stage.worker("gone");
  store::crawl_claim(stage.connection, worker, 1min);
  stage.expire(worker);
  stage.ask(crawl, "crawl", {"gone sent its last heartbeat at", "lease has expired"});
  store::call(stage.connection, "lapse_process");
}

TEST_CASE("processes") {
  Questions stage;
  const auto worker = stage.worker("worker");
  stage.ask(worker, "process", {"It is idle (8 slots); its lease has", "left"});
  const auto silent = stage.worker("silent");
  stage.expire(silent);
  stage.ask(silent, "process", {"sent its last heartbeat at", "it holds nothing"});
  stage.run("update holdfast.process set status = 'exited', ended_at = now(), exit_reason = null where id = $1::uuid",
            pg::Params::of(silent));
  stage.ask(silent, "process", {"It ended at", "it gave no reason"});
  stage.stats(worker, R"({"not_claiming": "only 3 MB free"})");
  stage.ask(worker, "process", {"claims nothing: only 3 MB free"});
  stage.run("select holdfast.worker_pause($1::uuid, 'ann', 'a new disk')", pg::Params::of(worker));
  stage.ask(worker, "process", {"paused since", "UTC by ann: a new disk", "holds 0 snapshots"});
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(worker));
  stage.ask(worker, "process", {"draining: it finishes its 0 snapshots"});
  stage.run("update holdfast.process set request = 'stop' where id = $1::uuid", pg::Params::of(worker));
  stage.ask(worker, "process", {"asked to stop and releases its 0 snapshots"});

  const auto present = [&](const std::string& type, const std::string& what, bool standby) {
    const auto id = base::new_uuid();
    stage.run(
        R"(select holdfast.process_present($1::uuid, '{"machine": {"id": "m", "hostname": "h"}, "boot_id": "boot",
             "pid": 1, "start_ticks": 1, "label": "label", "version": "v"}' || jsonb_build_object('process_type', $2::text,
             'worker_type', $3::text, 'standby', $4::boolean), interval '1 hour'))",
        pg::Params::of(id, type, what, standby));
    return id;
  };
  stage.ask(present("serve", "127.0.0.1:8118", false), "process", {"It answers requests on 127.0.0.1:8118"});
  stage.ask(present("serve", "127.0.0.1:8118", true), "process",
            {"It waits until another process no longer listens on 127.0.0.1:8118"});
  stage.ask(present("command", "export", false), "process", {"It has been running since"});

  stage.leave_all();
  const auto runner = [&](const std::string& label, bool standby) {
    const auto id = base::new_uuid();
    stage.run(
        R"(select holdfast.process_join($1::uuid, '{"machine": {"id": "m", "hostname": "h"}, "boot_id": "boot", "pid": 1,
             "start_ticks": 1, "pid_namespace": "ns", "process_type": "runner", "worker_type": "runner_waiting",
             "version": "v", "capabilities": {"spawns": true}}'
             || jsonb_build_object('label', $2::text, 'standby', $3::boolean), interval '1 hour'))",
        pg::Params::of(id, label, standby));
    return id;
  };
  const auto leading = runner("runner one", false);
  stage.ask(leading, "process", {"It waits to lead, but no runner leads yet"});
  stage.run("select holdfast.runner_enter($1::uuid, interval '1 hour', '5 s')", pg::Params::of(leading));
  stage.ask(leading, "process", {"is the leading runner, with epoch 1", "left"});
  stage.ask(stage.add({Stage::seed("1")}), "crawl", {", and the runner starts a worker for it in a moment"});
  const auto patient = runner("runner two", true);
  stage.ask(patient, "process", {"stands by while runner one leads"});
  const auto rival = runner("runner three", false);
  stage.run("select holdfast.runner_enter($1::uuid, interval '1 hour', '5 s')", pg::Params::of(rival));
  stage.ask(rival, "process", {"waits to lead while runner one leads"});
  stage.ask(leading, "process", {"a newer runner has asked it to leave"});
}

TEST_CASE("what is stuck is found, and what waits on purpose is not") {
  Questions stage;
  const auto stuck = [&] {
    return stage.value("select string_agg(kind || ': ' || what, ', ' order by what) from holdfast.v_stuck");
  };
  stage.start({Stage::seed("1")});
  stage.leave_all();
  CHECK(stuck().empty());
  stage.pass("3 minutes");
  CHECK(stuck() == "snapshot: no worker is running");
  CHECK(stage.value("select reason from holdfast.v_stuck").find("no worker is running") != std::string::npos);
  // Workers without a runner are told of, but not the worker that an add has for a moment.
  {
    const auto lonely = stage.worker("lonely");
    CHECK(stage.value("select runners from holdfast.v_status") == "0");
    stage.run("update holdfast.process set started_at = now() - interval '20 minutes' where id = $1::uuid",
              pg::Params::of(lonely));
    CHECK(stuck() == "snapshot: due, but no worker takes it, runner: no runner leads");
    stage.leave_all();
  }

  CHECK(stage.value(
            "select count(*) from holdfast.metrics() where name = 'holdfast_queue_age_seconds' and labels ->> 'kind' "
            "= 'snapshot' and value > 170") == "1");
  // Claims have looked, and the host has to wait.
  stage.run("update holdfast.crawl_lane set next_at = now() + interval '1 minute'");
  CHECK(stuck().empty());
  stage.run("update holdfast.crawl_lane set next_at = 'infinity'");
  CHECK(stuck().empty());
  stage.run("update holdfast.crawl_lane set next_at = now()");

  const auto worker = stage.worker("worker");
  const auto claim = stage.claim(worker);
  auto hook = Stage::running(claim, "wget", "on_Snapshot__35_wget");
  hook.timeout = 1s;
  store::worker_hooks(stage.connection, worker, {hook});
  CHECK(stuck().empty());
  stage.run("update holdfast.running_hook set started_at = now() - interval '5 minutes'");
  CHECK(stuck() == "snapshot: hook wget/on_Snapshot__35_wget is past its timeout");
  stage.run("update holdfast.running_hook set started_at = now()");
  stage.run("update holdfast.snapshot_queue set claimed_at = now() - interval '2 hours'");
  CHECK(stuck() == "snapshot: running for very long");
  stage.run("update holdfast.snapshot_queue set claimed_at = now()");
  stage.run("update holdfast.process set lease_until = now() - interval '1 minute' where id = $1::uuid",
            pg::Params::of(worker));
  CHECK(stuck() == "process: its lease has expired");
  store::call(stage.connection, "lapse_process");
  CHECK(stage.value("select string_agg(name || ' ' || value, ', ' order by name) from holdfast.tally") ==
        "takeovers 1, workers_lapsed 1");
  const auto late = stage.add({Stage::seed("2")});
  stage.run("update holdfast.crawl set retry_at = now() - interval '3 minutes' where id = $1::uuid",
            pg::Params::of(late));
  CHECK(stuck().find("crawl: no worker is running") != std::string::npos);
  stage.worker("idle");
  CHECK(stuck().find("crawl: due, but no worker takes it") != std::string::npos);
}

TEST_CASE("each cause of calls that fail in workers is one row, with the text of the error and the way out") {
  Questions stage;
  const auto crawl = stage.start({Stage::seed("1")});
  const auto one = stage.worker("one"), two = stage.worker("two");
  const std::string failing =
      R"x({"failing_calls": [{"call": "worker_turn", "seconds": 90, "text": "could not extend file (SQLSTATE 53100 )x"
      R"x(in: select holdfast.worker_turn(...))", "way_out": "make room"}, {"call": "worker_hooks", "seconds": 9, )x"
      R"x("text": "could not extend file (SQLSTATE 53100 in: select holdfast.worker_hooks(...))", "way_out": "make )x"
      R"x(room"}, {"call": "crawl_claim", "seconds": 8, "text": "a lock is held", "way_out": ""}]})x";
  for (const auto& worker : {one, two})
    stage.stats(worker, failing);
  CHECK(stage.value("select string_agg(concat_ws('|', kind, name, reason, stuck_for > '80 s'), '; ' order by since) "
                    "from holdfast.v_stuck where kind = 'call'") ==
        "call|the database|make room.|t; call|the database|See the log of the database server.|f");
  stage.ask(crawl, "crawl",
            {"one and 1 more cannot make the call worker_hooks, worker_turn since",
             "could not extend file (SQLSTATE 53100). make room.", "cannot make the call crawl_claim since",
             "a lock is held"});
  stage.stats(one, "{}");
  stage.stats(two, "{}");
  CHECK(stage.value("select count(*) from holdfast.failing_calls()") == "0");
}

TEST_CASE("a collection on another server than before says that restored() was not called, until it is called") {
  Questions stage;
  const auto crawl = stage.add({Stage::seed("1")});
  const std::string missing = "select count(*) from holdfast.v_stuck where kind = 'restored'";
  CHECK(stage.value(missing) == "0");
  stage.run("update holdfast.collection set system_identifier = 1"); // as a restored dump has it
  CHECK(stage.value(missing) == "1");
  stage.ask(crawl, "crawl", {"restored() was not called", "select holdfast.restored('your name')"});
  stage.run("select holdfast.restored('ann')");
  CHECK(stage.value(missing) == "0");
}

TEST_CASE("what the server itself makes wait is named: its queue of notifications, a read-only default, connections") {
  Questions stage;
  const auto crawl = stage.add({Stage::seed("1")});
  const auto kinds = [&] {
    return stage.value("select string_agg(distinct kind, ', ' order by kind) from holdfast.database_waits('0 s')");
  };
  CHECK(kinds() == "");
  const auto database = stage.value("select quote_ident(current_database())");
  stage.run("alter database " + database + " set default_transaction_read_only = on");
  {
    pg::Connection late(stage.dsn());
    CHECK(late.call("select kind || ': ' || way_out as w from holdfast.database_waits() where kind = 'read-only'")
              .one()
              .text("w") == "read-only: Reset it for the role, the database or the server");
    CHECK(store::why(late, crawl).reason.find("default_transaction_read_only is on for") != std::string::npos);
  }
  stage.run("set default_transaction_read_only = off");
  stage.run("alter database " + database + " reset default_transaction_read_only");
}

TEST_CASE("a session that keeps others waiting for a lock is named") {
  Questions stage;
  const auto crawl = stage.add({Stage::seed("1")});
  pg::ConnectionOptions options;
  options.application_name = "editor";
  pg::Connection person(stage.dsn(), options), waiting(stage.dsn());
  const auto waits = [&] {
    return stage.value("select count(*) from pg_locks where not granted and pid = $1::integer",
                       pg::Params::of(waiting.backend_pid())) != "0";
  };
  person.transaction([&](pg::Transaction& open) {
    open.call("select id from holdfast.crawl for update");
    std::thread other([&] { waiting.call("update holdfast.crawl set label = 'later'"); });
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
         !waits() && std::chrono::steady_clock::now() < until;)
      std::this_thread::yield();
    const auto pid = std::to_string(person.backend_pid());
    const auto facts = stage.ask(crawl, "crawl",
                                 {"In the database, pid " + pid + " (holdfast editor, ", "does nothing", "for update"});
    CHECK(facts["database"].get<std::string>().starts_with("pid " + pid));
    CHECK(stage.value("select kind from holdfast.v_stuck where what like $1", pg::Params::of("pid " + pid + " %")) ==
          "lock");
    CHECK(stage.value("select value from holdfast.metrics() where name = 'holdfast_lock_waits'") == "1");
    open.call("rollback");
    other.join();
  });
  CHECK(stage.value("select count(*) from holdfast.database_waits() where kind = 'lock'") == "0");
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
