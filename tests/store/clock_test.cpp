// The clock of the server goes back: due times that an earlier clock has set lie too far ahead (74_clock.sql).
#include "lib/store/call.hpp"
#include "lib/store/runner.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;
using namespace std::string_literals;

TEST_CASE("after the clock has gone back, what lies further ahead than its maximum is due") {
  Stage stage;
  const auto ahead = "clock_timestamp() + interval '2 hours'"s;
  store::NewCrawl crawl;
  crawl["max_time"] = "1 hour";
  stage.run("insert into holdfast.host (name, max_parallel) values ('site.test', 20), ('slow.test', 1)");
  const auto id = stage.start(stage.seeds(1, 3), crawl);
  const auto worker = stage.worker();
  stage.run("update holdfast.snapshot_queue set retry_at = " + ahead);
  stage.run("update holdfast.snapshot_queue q set status = 'paused', retry_at = holdfast.retry_at_max() from "
            "holdfast.snapshot s where s.id = q.snapshot_id and s.url = $1",
            pg::Params::of(stage.seed("3").url));
  stage.run("update holdfast.crawl_queue set ready_at = " + ahead);
  stage.run("update holdfast.crawl_lane set next_at = " + ahead + ", low_at = " + ahead);
  stage.run("insert into holdfast.crawl_lane (crawl_id, host, next_at) values ($1::uuid, 'parked.test', 'infinity')",
            pg::Params::of(id));
  stage.run("update holdfast.host set last_at = " + ahead + " where name = 'site.test'");
  stage.run("update holdfast.host set backoff_until = " + ahead + ", updated_at = " + ahead +
            " where name = 'slow.test'");
  stage.run("update holdfast.crawl set deadline_at = deadline_at + interval '2 hours', retry_at = retry_at + interval "
            "'2 hours'");
  stage.run("update holdfast.process set heartbeat_at = a.at, lease_until = a.at + interval '1 minute' from (select " +
            ahead + " as at) a where status = 'running'");
  stage.run("insert into holdfast.robots (origin, state, fetched_at, expires_at) values ('https://site.test', "
            "'unreachable', " +
            ahead + ", " + ahead + " + interval '5 minutes')");
  stage.run("insert into holdfast.binary (machine_id, name, retry_at) select id, 'wget', " + ahead +
            " from holdfast.machine");
  stage.run("insert into holdfast.schedule (id, every, urls, last_run_at, next_run_at) values (holdfast.new_uuid(), "
            "'hourly', '{https://site.test/}', " +
            ahead + ", " + ahead + " + interval '1 hour')");
  stage.run("insert into holdfast.webhook (name, url, events, hold_until) values ('hook', 'https://hook.test/', "
            "'{crawl.sealed}', " +
            ahead + ")");
  stage.run("insert into holdfast.delivery (webhook, event, payload, retry_at) values ('hook', 'test', '{}', " + ahead +
            ")");
  stage.run("update holdfast.maintenance_task set next_at = " + ahead);
  CHECK(stage.claim_many(worker, 10).empty());

  // Meanwhile people can see why nothing moves.
  CHECK(stage.value("select string_agg(kind || ': ' || split_part(what, ': ', 2), ', ' order by kind, id) from "
                    "holdfast.v_stuck") ==
        "crawl: the clock has gone back, snapshot: the clock has gone back, snapshot: the clock has gone back");
  CHECK(stage.value("select count(*) from holdfast.snapshot_queue q cross join lateral "
                    "holdfast.why(q.snapshot_id::text) w where w.reason like '%the clock has gone back%'") == "2");

  CHECK(store::call_for<std::int64_t>(stage.connection, "clock_check") > 0);
  const auto later = [&](const std::string& table, const std::string& condition) {
    return stage.value("select count(*) from holdfast." + table + " where " + condition);
  };
  CHECK(later("snapshot_queue", "status = 'queued' and retry_at > clock_timestamp()") == "0");
  CHECK(later("crawl_queue", "ready_at > clock_timestamp()") == "0");
  CHECK(later("crawl_lane", "greatest(next_at, low_at) > clock_timestamp() and next_at < 'infinity'") == "0");
  CHECK(later("host", "greatest(last_at, backoff_until, updated_at) > clock_timestamp()") == "0");
  CHECK(later("robots", "greatest(fetched_at, expires_at) > clock_timestamp()") == "0");
  CHECK(later("binary", "retry_at > clock_timestamp()") == "0");
  CHECK(later("webhook", "hold_until > clock_timestamp()") == "0");
  CHECK(later("delivery", "retry_at > clock_timestamp()") == "0");
  // A deadline, a lease and a schedule begin again at the time that it is now; what is parked stays parked.
  CHECK(stage.value("select bool_and(deadline_at between clock_timestamp() + interval '59 minutes' and "
                    "clock_timestamp() + interval '1 hour' and retry_at = deadline_at) from holdfast.crawl") == "t");
  CHECK(stage.value("select bool_and(lease_until between clock_timestamp() + interval '50 seconds' and "
                    "clock_timestamp() + interval '1 minute') from holdfast.process where status = 'running'") == "t");
  CHECK(stage.value("select status from holdfast.process where id = $1::uuid", pg::Params::of(worker)) == "running");
  CHECK(stage.value("select bool_and(next_run_at <= clock_timestamp() + interval '1 hour') from holdfast.schedule") ==
        "t");
  CHECK(stage.value("select count(*) from holdfast.snapshot_queue where retry_at = holdfast.retry_at_max()") == "1");
  CHECK(stage.value("select next_at from holdfast.crawl_lane where host = 'parked.test'") == "infinity");
  CHECK(stage.value("select count(*) from holdfast.v_stuck") == "0");
  CHECK(stage.claim_many(worker, 10).size() == 2);

  // Once in a minute, by whichever worker comes first, and nothing that is right is touched.
  CHECK(store::call_for<std::int64_t>(stage.connection, "clock_check") == 0);
  stage.run("update holdfast.maintenance_task set next_at = clock_timestamp() - interval '3 minutes'");
  CHECK(store::call_for<std::int64_t>(stage.connection, "clock_check") == 0);
}

TEST_CASE("a due time within its maximum stays as it is when the clock is looked after") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker();
  const auto claim = stage.claim(worker);
  stage.run("select holdfast.host_rate_limited('site.test', 429, '20 hours', 'test')");
  stage.release(worker, claim, 20h);
  stage.run("select holdfast.crawl_wake(crawl_id, clock_timestamp()) from holdfast.crawl_queue");
  CHECK(stage.claim_many(worker, 10).empty()); // the lane now waits for its host
  CHECK(stage.value("select holdfast.clock_went_back()") == "0");
  CHECK(stage.value("select count(*) from holdfast.v_stuck") == "0");
  CHECK(stage.value("select count(*) from holdfast.crawl_lane where next_at > clock_timestamp() + interval '19 "
                    "hours'") == "1");
}

TEST_CASE("a time that a person has said stays, also of a page whose host has limits") {
  Stage stage;
  const std::string at = stage.value("select clock_timestamp() + interval '30 hours'");
  stage.run("insert into holdfast.host (name, min_delay, max_parallel) values ('site.test', '10 seconds', 1)");
  stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker();
  auto free = Stage::seed("");
  free.url = "https://free.test/";
  stage.start({free});
  for (const auto* url : {"https://site.test/1", "https://site.test/2", "https://free.test/"}) {
    const auto page = stage.value("select id from holdfast.snapshot where url = $1", pg::Params::of(url));
    REQUIRE(stage.command("pauseSnapshot", page));
    REQUIRE(stage.command("resumeSnapshot", page, {{"at", at}}));
  }
  const auto untouched = [&] {
    return stage.value("select bool_and(abs(extract(epoch from retry_at - $1::timestamptz)) < 1) from "
                       "holdfast.snapshot_queue",
                       pg::Params::of(at));
  };
  REQUIRE(untouched() == "t");
  // A claim parks the crawls, and the host's lane, until then.
  stage.run("select holdfast.crawl_wake(crawl_id, clock_timestamp()) from holdfast.crawl_queue");
  CHECK(stage.claim_many(worker, 10).empty());
  CHECK(stage.value("select holdfast.clock_went_back()") == "0");
  CHECK(store::call_for<std::int64_t>(stage.connection, "clock_check") == 0);
  CHECK(untouched() == "t");
  CHECK(stage.value("select count(*) from holdfast.v_stuck") == "0");
  // The host's clock has gone back: that is mended, and the pages still wait.
  stage.run("update holdfast.host set last_at = clock_timestamp() + interval '40 hours'");
  stage.run("update holdfast.crawl_lane set next_at = clock_timestamp() + interval '50 hours'");
  stage.run("update holdfast.maintenance_task set next_at = clock_timestamp() + interval '2 hours'");
  CHECK(store::call_for<std::int64_t>(stage.connection, "clock_check") > 0);
  CHECK(untouched() == "t");
  CHECK(stage.claim_many(worker, 10).empty());
  CHECK(stage.value("select bool_and(next_at < $1::timestamptz + interval '1 second') from holdfast.crawl_lane",
                    pg::Params::of(at)) == "t");
  // When the time has come, they are claimed.
  stage.pass("30 days");
  CHECK(stage.claim_many(worker, 10).size() == 2); // one of the host, which takes one at a time
}

TEST_CASE("maintenance removes records that are older than a task keeps them, and no others") {
  Stage stage;
  const auto parent = stage.worker("parent"), child = stage.worker("child"), gone = stage.worker("gone");
  store::call(stage.connection, "process_leave", parent, 0, "done");
  store::call(stage.connection, "process_leave", gone, 0, "done");
  stage.run("update holdfast.process set parent_id = $1::uuid where id = $2::uuid", pg::Params::of(parent, child));
  stage.run("update holdfast.process set ended_at = clock_timestamp() - interval '2 years' where status = 'exited'");
  stage.run("update holdfast.event set at = clock_timestamp() - interval '1 year' where id = (select min(id) from "
            "holdfast.event)");
  stage.run(
      "insert into holdfast.runner_term (epoch, process_id, label, began_at, valid_until, ended_at, ending) "
      "select n, $1::uuid, 'runner', t, t, t, 'done' from generate_series(1, 103) n, (values (clock_timestamp() - "
      "interval '1 year')) v(t)",
      pg::Params::of(parent));
  stage.run("insert into holdfast.maintenance_run (task, epoch, process_id, began_at, ended_at, count) select 'mend', "
            "1, $1::uuid, clock_timestamp() - n * interval '1 day', clock_timestamp(), 0 from generate_series(0, 3) n",
            pg::Params::of(parent));
  const auto trim = [&](const std::string& task) {
    return stage.value("select holdfast.maintenance_trim(t) from holdfast.maintenance_task t where name = $1",
                       pg::Params::of(task));
  };
  const auto events = std::stoi(stage.value("select count(*) from holdfast.event"));
  CHECK(trim("trim_events") == "1");
  CHECK(stage.value("select count(*) from holdfast.event") == std::to_string(events - 1));
  CHECK(trim("trim_processes") == "1"); // not the parent of a running worker
  CHECK(stage.value("select count(*) from holdfast.process where id = $1::uuid", pg::Params::of(gone)) == "0");
  CHECK(trim("trim_runs") == "5"); // three runs of more than a day ago, and all terms but the last 101
  CHECK(stage.value("select min(epoch) from holdfast.runner_term") == "3");
  CHECK(trim("trim_runs") == "0");
  CHECK(trim("trim_deliveries") == "0");
  CHECK(trim("trim_notices") == "0");
}
