// check_invariants() itself: each rule is broken by force, and exactly that is reported.
#include "lib/store/call.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct Breakage {
  std::string invariant; // as reported
  std::string sql;       // what does it
};

const std::vector<Breakage> kBreakages = {
    {"an owned snapshot has a live owner",
     "delete from holdfast.running_hook; update holdfast.process set status = 'exited', ended_at = now() where label = "
     "'busy'"},
    {"an owned snapshot has a live owner",
     "delete from holdfast.running_hook; delete from holdfast.process where label = 'busy'"},
    {"an owned crawl has a live owner",
     "update holdfast.process set status = 'exited', ended_at = now() where label = 'expander'"},
    {"an owned crawl has a live owner", "delete from holdfast.process where label = 'expander'"},
    {"a running hook has a live worker", "update holdfast.running_hook set process_id = gen_random_uuid()"},
    {"a snapshot is either open or sealed: neither",
     "insert into holdfast.snapshot (id, crawl_id, url, url_hash) select gen_random_uuid(), id, 'https://site.test/u', "
     "sha256('https://site.test/u') from holdfast.crawl where label = 'ended'; update holdfast.crawl set "
     "snapshots_total = snapshots_total + 1, snapshots_failed = snapshots_failed + 1 where label = 'ended'"},
    {"a snapshot is either open or sealed: both",
     "insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, reason, fence) select snapshot_id, "
     "crawl_id, 'refused', 'r', 1 from holdfast.snapshot_queue where owner_id is null limit 1"},
    {"a queue row belongs to a snapshot",
     "insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host) select gen_random_uuid(), id, 'site.test' from "
     "holdfast.crawl where label = 'running'"},
    {"a snapshot belongs to a crawl",
     "with s as (insert into holdfast.snapshot (id, crawl_id, url, url_hash) values (gen_random_uuid(), "
     "gen_random_uuid(), 'https://site.test/u', sha256('https://site.test/u')) returning id, crawl_id) insert into "
     "holdfast.snapshot_queue (snapshot_id, crawl_id, host) select id, crawl_id, 'site.test' from s"},
    {"a seed belongs to a crawl",
     "insert into holdfast.crawl_seed (crawl_id, position, url) values (gen_random_uuid(), 1, 'https://site.test/u')"},
    {"a started crawl has something open",
     "insert into holdfast.crawl (id, status) values (gen_random_uuid(), 'started')"},
    {"an open crawl is due, owned, parked or has open snapshots",
     "update holdfast.crawl set retry_at = null, owner_id = null where label = 'half'"},
    {"counters equal counts", "update holdfast.crawl set snapshots_succeeded = snapshots_succeeded + 1, "
                              "snapshots_partial = snapshots_partial - 1 where label = 'ended'"},
    {"counters equal counts", "update holdfast.crawl set bytes = bytes + 1 where label = 'ended'"},
    {"counters equal counts", "update holdfast.crawl set snapshots_total = snapshots_total + 1, snapshots_open = "
                              "snapshots_open + 1 where label = 'running'"},
    {"counters equal counts", "update holdfast.crawl set snapshots_total = snapshots_total + 1, snapshots_failed = "
                              "snapshots_failed + 1 where label = 'ended'"},
    {"counters equal counts", "update holdfast.crawl set snapshots_failed = snapshots_failed + 1, snapshots_succeeded "
                              "= snapshots_succeeded - 1 where label = 'ended'"},
    {"counters equal counts", "update holdfast.crawl set snapshots_cancelled = snapshots_cancelled + 1 where label = "
                              "'ended'"},
    {"counters equal counts", "update holdfast.crawl set seeds_left = seeds_left + 1 where label = 'half'"},
    {"counters equal counts",
     "delete from holdfast.crawl_seed where crawl_id = (select id from holdfast.crawl where label = 'half')"},
    {"counters equal counts", "update holdfast.crawl set snapshots_excluded = 1 where label = 'running'"},
    {"a due snapshot is in sight of claims", "update holdfast.crawl_queue set ready_at = null where crawl_id = (select "
                                             "id from holdfast.crawl where label = 'running')"},
    {"a due snapshot is in sight of claims",
     "update holdfast.crawl_queue set ready_at = now() + interval '1 hour' where crawl_id = (select id from "
     "holdfast.crawl where label = 'running')"},
    {"a due snapshot is in sight of claims",
     "delete from holdfast.crawl_queue where crawl_id = (select id from holdfast.crawl where label = 'running')"},
    {"a due snapshot is in sight of claims", "delete from holdfast.crawl_lane"},
    {"a due snapshot is in sight of claims", "update holdfast.crawl_lane set low_at = 'infinity'"},
    {"a claimed snapshot is leased no longer than its worker",
     "update holdfast.snapshot_queue set retry_at = now() + interval '1 year' where owner_id is not null"},
    {"a crawl in crawl_queue is started", "update holdfast.crawl set stopping_at = now() where label = 'running'"},
    {"a binary that was found has been looked at, and will be again",
     "insert into holdfast.binary (machine_id, name, retry_at) select id, 'wget', null from holdfast.machine limit 1"},
    {"a live crawl session has a live worker",
     "update holdfast.process set status = 'exited', ended_at = now() where label = 'host'"},
    {"a running crawl hook belongs to a live crawl session",
     "update holdfast.session set status = 'closed', ended_at = now()"},
    {"a page holds no more than its crawl allows",
     "insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, "
     "started_at, ended_at, output_bytes) select snapshot_id, crawl_id, fence, 'p', 'h', 'succeeded', owner_id, now(), "
     "now(), 2 from holdfast.snapshot_sealed; update holdfast.crawl set max_snapshot_bytes = 1 where label = 'ended'"},
    {"a result belongs to an attempt that has ended",
     "insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, "
     "started_at, ended_at) select snapshot_id, crawl_id, fence, 'p', 'h', 'succeeded', owner_id, now(), now() from "
     "holdfast.snapshot_queue where owner_id is not null"},
    {"one runner leads at a time",
     "insert into holdfast.runner_term (epoch, process_id, label, began_at, valid_until) select n, gen_random_uuid(), "
     "'r', now() - interval '1 minute', now() from generate_series(1, 2) n"},
    {"the leading runner has the last epoch",
     "update holdfast.process set worker_type = 'worker_runner', epoch = 7 where label = 'busy'"},
    {"no two maintenance tasks overlap",
     "insert into holdfast.maintenance_run (task, epoch, process_id, began_at, ended_at, count) select 'mend', 1, "
     "gen_random_uuid(), now() - interval '1 minute', now(), 0 from generate_series(1, 2)"},
    {"a task is done by the runner of its time",
     "insert into holdfast.maintenance_run (task, epoch, process_id, began_at, ended_at, count) select 'mend', 3 - n, "
     "gen_random_uuid(), now() + n * interval '1 minute', now() + n * interval '1 minute', 0 from generate_series(1, "
     "2) n"},
    {"search knows the text of a sealed snapshot",
     "update holdfast.snapshot_sealed set sealed_at = now() - interval '2 days'; insert into holdfast.page_text "
     "(snapshot_id, crawl_id, language, text, words) values (gen_random_uuid(), gen_random_uuid(), 'simple', '', '')"},
    {"a sealed snapshot had an owner",
     "update holdfast.snapshot_sealed set owner_id = null where outcome = 'succeeded'"},
    {"the page on which a URL was found is there",
     "update holdfast.snapshot set parent_id = gen_random_uuid() where crawl_id = (select id from holdfast.crawl where "
     "label = 'ended')"},
    {"webhooks are told only of what happened: crawl.sealed",
     "with w as (insert into holdfast.webhook (name, url, events) values ('w', 'https://hooks.test/', "
     "'{crawl.sealed}') returning name) insert into holdfast.delivery (webhook, event, object_id, payload) select 'w', "
     "'crawl.sealed', id, '{}' from holdfast.crawl where label = 'running'"},
};

// One of everything: a crawl that has ended, one that runs, one that is being expanded.
void furnish(Stage& stage) {
  const auto worker = stage.worker("busy"), expander = stage.worker("expander");
  store::NewCrawl crawl;
  crawl["label"] = "ended";
  stage.start({stage.seed("1")}, crawl);
  stage.seal(worker, stage.claim(worker));
  crawl["label"] = "running";
  stage.start(stage.seeds(1, 2), crawl);
  stage.claim(worker);
  stage.run("insert into holdfast.running_hook (process_id, snapshot_id, crawl_id, fence, plugin, hook_name, "
            "started_at) select owner_id, snapshot_id, crawl_id, fence, 'wget', 'hook', now() from "
            "holdfast.snapshot_queue where owner_id is not null");
  const auto host = stage.worker("host");
  stage.run("select holdfast.session_open(id, gen_random_uuid(), (select id from holdfast.crawl where label = "
            "'running'), '/d') from holdfast.process where id = $1::uuid",
            pg::Params::of(host));
  stage.run("select holdfast.session_set(id, 'ready', null, '[{\"plugin\": \"chrome\", \"hook_name\": \"launch\", "
            "\"status\": \"started\"}]') from holdfast.session");
  crawl["label"] = "half";
  stage.add(stage.seeds(1, 2), crawl);
  REQUIRE(store::crawl_claim(stage.connection, expander, 1min));
}

} // namespace

TEST_CASE("each invariant that is broken is reported, by its name, and no other") {
  for (const auto& breakage : kBreakages) {
    CAPTURE(breakage.sql);
    Stage stage;
    stage.broken_on_purpose = true;
    furnish(stage);
    CHECK(store::call(stage.connection, "check_invariants").empty());
    // The constraints would refuse some of it first; what they guard can still break, by a restore or a bug in them.
    stage.run("alter table holdfast.crawl drop constraint crawl_open_adds_up, drop constraint crawl_counts");
    stage.run("alter table holdfast.snapshot_sealed drop constraint snapshot_sealed_has_files");
    stage.force(breakage.sql);
    const auto reported = store::call(stage.connection, "check_invariants");
    REQUIRE(reported.size() >= 1);
    for (std::size_t i = 0; i < reported.size(); ++i) {
      const auto told = reported[i].text("invariant") + ": " + reported[i]["detail"].value_or("");
      CHECK_MESSAGE(told.find(breakage.invariant) == 0, told);
      CHECK_FALSE(reported[i].is_null("object_id"));
    }
    CHECK(reported.size() == 1);
  }
}

TEST_CASE("every rule of check_invariants has been broken once") {
  Stage stage;
  std::set<std::string> broken;
  for (const auto& breakage : kBreakages)
    broken.insert(breakage.invariant.substr(0, breakage.invariant.find(':')));
  const auto rules = stage.connection.call(
      "select (regexp_matches(prosrc, $$^\\s*select '([^']+)'$$, 'gn'))[1] as rule from pg_proc where proname like "
      "'check\\_%' and pronamespace = 'holdfast'::regnamespace");
  CHECK(rules.size() >= 10);
  for (std::size_t i = 0; i < rules.size(); ++i)
    CHECK_MESSAGE(broken.count(rules[i].text("rule")) == 1, rules[i].text("rule"));
  CHECK(broken.size() == rules.size());
}
