// Politeness: delays, caps and back-off of hosts, counted over all workers and crawls, inside the claim.
#include "lib/store/worker.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::size_t claimed(Stage& stage, const std::string& worker, int room = 20) {
  return stage.claim_many(worker, room).size();
}

void finish(Stage& stage, const std::string& worker, const store::Claim& claim) {
  REQUIRE(stage.seal(worker, claim).what == store::PageAnswer::What::sealed);
}

} // namespace

TEST_CASE("no more pages of a host are in work than it allows, over all workers and crawls") {
  Stage stage;
  stage.command("setHost", "site.test", {{"parallel", 3}});
  for (int i = 0; i < 4; ++i)
    stage.start(stage.seeds(1, 10));
  const auto first = stage.worker(), second = stage.worker();
  const auto claims = stage.claim_many(first, 2);
  CHECK(claims.size() == 2);
  CHECK(claimed(stage, second) == 1);
  CHECK(claimed(stage, second) == 0);
  finish(stage, first, claims[0]);
  CHECK(claimed(stage, second) == 1);
  CHECK(claimed(stage, first) == 0);
  // More room at once, and less for what comes after.
  stage.command("setHost", "site.test", {{"parallel", 6}});
  CHECK(claimed(stage, first) == 3);
  stage.command("setHost", "site.test", {{"parallel", 1}});
  finish(stage, first, claims[1]);
  CHECK(claimed(stage, first) == 0);
  stage.command("setHost", "site.test", {{"parallel", 0}});
  CHECK(claimed(stage, first, 100) == 33);
}

TEST_CASE("a host whose row is deleted has no limits, also for what waits because of them") {
  Stage stage;
  stage.command("setHost", "site.test", {{"delay", "1h"}, {"parallel", 1}});
  stage.start(stage.seeds(1, 10));
  stage.start(stage.seeds(1, 10));
  const auto worker = stage.worker();
  const auto claims = stage.claim_many(worker, 20);
  CHECK(claims.size() == 1);
  CHECK(claimed(stage, worker) == 0);

  stage.command("pauseHost", "site.test");
  const auto forget = [&] { stage.command("forgetHost", "site.test"); };
  CHECK(refusal(forget) == pg::kRefused);
  stage.command("resumeHost", "site.test");
  store::host_rate_limited(stage.connection, "site.test", 429, std::nullopt, "worker");
  CHECK(refusal(forget) == pg::kRefused);
  CHECK(claimed(stage, worker) == 0);
  stage.command("resumeHost", "site.test");

  CHECK(stage.command("forgetHost", "site.test"));
  CHECK_FALSE(stage.command("forgetHost", "site.test"));
  CHECK(stage.value("select count(*) from holdfast.v_host") == "0");
  CHECK(claimed(stage, worker, 100) == 20); // also the one that its pause has released
  CHECK(stage.value(
            "select action || ' ' || target || ' ' || by_whom from holdfast.v_control order by id desc limit 1") ==
        "forget site.test ann");

  // What it is given again holds for what was in work meanwhile.
  stage.command("setHost", "site.test", {{"parallel", 20}});
  stage.start(stage.seeds(21, 25));
  CHECK(claimed(stage, worker) == 0);
}

TEST_CASE("a Crawl-delay slows down only the crawls that follow robots.txt") {
  Stage stage;
  const auto worker = stage.worker();
  store::NewCrawl asks;
  asks["robots"] = true;
  stage.start(stage.seeds(1, 3), asks);
  const auto first = stage.claim_many(worker, 1);
  REQUIRE(first.size() == 1);
  const store::Robots known = store::robots_get(stage.connection, worker, first[0].lease, "https://site.test");
  REQUIRE(known.fetch);
  store::RobotsAnswer answer;
  answer.status = 200;
  answer.delay = 1h;
  answer.keep = 1h;
  CHECK(store::robots_put(stage.connection, worker, "https://site.test", "site.test", answer));
  finish(stage, worker, first[0]);
  CHECK(claimed(stage, worker) == 0);
  CHECK(stage.value("select distinct state from holdfast.v_queue") ==
        "waits: its host is limited to one page every 01:00:00");

  stage.start(stage.seeds(11, 13));
  const auto others = stage.claim_many(worker, 20);
  CHECK(others.size() == 3); // at once
  stage.pass("1 hour");
  CHECK(claimed(stage, worker) == 0); // it counts from the others' pages, too, and lets none beside them
  for (const auto& claim : others)
    finish(stage, worker, claim);
  CHECK(claimed(stage, worker) == 0);
  stage.pass("1 hour");
  CHECK(claimed(stage, worker) == 1);

  // Without a Crawl-delay in the next version of the file.
  stage.run("update holdfast.robots set expires_at = clock_timestamp()");
  CHECK(store::robots_get(stage.connection, worker, first[0].lease, "https://site.test").fetch);
  answer.delay = 0ms;
  CHECK_FALSE(store::robots_put(stage.connection, worker, "https://site.test", "site.test", answer));
  CHECK(claimed(stage, worker) == 1);
}

TEST_CASE("a delay lets one page through, and counts from its end") {
  Stage stage;
  stage.command("setHost", "site.test", {{"delay", "1h"}});
  stage.start(stage.seeds(1, 5));
  stage.start(stage.seeds(1, 5));
  const auto worker = stage.worker();
  const auto claims = stage.claim_many(worker, 8);
  REQUIRE(claims.size() == 1);
  CHECK(claimed(stage, worker) == 0);
  stage.pass("2 hours");
  CHECK(claimed(stage, worker) == 0); // the first is still in work
  finish(stage, worker, claims[0]);
  CHECK(claimed(stage, worker) == 0);
  CHECK(stage.value("select last_at + min_delay > clock_timestamp() + interval '59 minutes' from holdfast.v_host") ==
        "t");
  CHECK(stage.value(
            "select count(*) from holdfast.v_queue where state like 'waits: its host is limited to one page every%'") ==
        "9");
  stage.pass("1 hour");
  CHECK(claimed(stage, worker) == 1);
}

TEST_CASE("a crawl of polite and free hosts gives the free ones at once, and sleeps no longer than it must") {
  Stage stage;
  stage.command("setHost", "slow.test", {{"delay", "1h"}});
  std::vector<store::Seed> seeds;
  for (int i = 1; i <= 50; ++i)
    seeds.push_back({"https://slow.test/" + std::to_string(i), "", {}});
  for (int i = 1; i <= 5; ++i)
    seeds.push_back(Stage::seed(std::to_string(i)));
  stage.start(seeds);
  const auto worker = stage.worker();
  std::map<std::string, int> hosts;
  for (const auto& claim : stage.claim_many(worker, 20))
    ++hosts[claim.host];
  CHECK(hosts == std::map<std::string, int>{{"site.test", 5}, {"slow.test", 1}});
  store::TurnRequest request;
  request.claim.room = 20;
  const auto turn = store::worker_turn(stage.connection, worker, request);
  CHECK(turn.claims.empty());
  REQUIRE(turn.wait);
  CHECK(*turn.wait > 0ms);
  CHECK(*turn.wait <= 1h);
}

TEST_CASE("a site that asks for time gets it, twice as long each time it has to ask again") {
  Stage stage;
  stage.start(stage.seeds(1, 5));
  const auto worker = stage.worker();
  const auto seconds = [&] {
    return std::stoi(stage.value(
        "select round(extract(epoch from backoff_until - updated_at)) from holdfast.v_host where name = 'site.test'"));
  };
  store::host_rate_limited(stage.connection, "site.test", 429, std::nullopt, "worker");
  CHECK(seconds() == 30);
  CHECK(claimed(stage, worker) == 0);
  CHECK(stage.value("select distinct state from holdfast.v_queue") == "waits: it asked us to slow down (status 429)");
  store::host_rate_limited(stage.connection, "site.test", 429, std::nullopt, "worker"); // under way with the first
  CHECK(seconds() == 30);
  stage.pass("31 seconds");
  CHECK(claimed(stage, worker, 1) == 1);
  store::host_rate_limited(stage.connection, "site.test", 503, std::nullopt, "worker");
  CHECK(seconds() == 60);
  store::host_rate_limited(stage.connection, "site.test", 503, 10min, "worker");
  CHECK(seconds() == 600);
  CHECK(claimed(stage, worker) == 0);
  CHECK(stage.command("resumeHost", "site.test"));
  CHECK(claimed(stage, worker) == 4);
}

TEST_CASE("the limits of a crawl hold at all hosts that have none of their own, and for no other crawl") {
  Stage stage;
  stage.command("setHost", "site.test", {{"parallel", 5}});
  store::NewCrawl polite;
  polite["host_parallel"] = 2;
  stage.start(
      {stage.seed("1"), {"https://other.test/", "", {}}, {"http://127.0.0.1/", "", {}}, {"http://nas.local/", "", {}}},
      polite);
  CHECK(stage.value("select string_agg(concat_ws(' ', name, min_delay, max_parallel), ', ' order by name) from "
                    "holdfast.v_host") == "127.0.0.1, nas.local, other.test, site.test 5");
}

TEST_CASE("a crawl keeps its own delay at a host that other crawls have met before") {
  Stage stage;
  store::NewCrawl quick, slow;
  quick["host_parallel"] = slow["host_parallel"] = 20;
  slow["host_delay"] = "1 hour";
  const auto first = stage.start(stage.seeds(1, 2), quick);
  const auto worker = stage.worker();
  CHECK(claimed(stage, worker) == 2);
  const auto late = stage.start(stage.seeds(3, 5), slow);
  CHECK(claimed(stage, worker) == 1);
  stage.pass("59 minutes");
  CHECK(claimed(stage, worker) == 0);
  stage.pass("1 minute");
  CHECK(claimed(stage, worker) == 1);
  // Pages of other crawls count; these crawls do not wait.
  stage.pass("1 hour");
  stage.start(stage.seeds(6, 6), quick);
  stage.run("update holdfast.crawl_lane set next_at = 'infinity' where crawl_id = $1::uuid", pg::Params::of(late));
  CHECK(claimed(stage, worker) == 1);
  stage.run("update holdfast.crawl_lane set next_at = now() where crawl_id = $1::uuid", pg::Params::of(late));
  CHECK(claimed(stage, worker) == 0);
  CHECK(stage.value("select count(*) from holdfast.v_queue where state like "
                    "'waits: its host is limited to one page every 01:00:00'") == "1");
  // What people set counts before the crawl's own.
  stage.command("setHost", "site.test", {{"delay", "0s"}, {"parallel", 0}});
  CHECK(claimed(stage, worker) == 1);
}
