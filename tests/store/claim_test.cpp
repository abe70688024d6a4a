// Claiming: who gets what, in which order, and what a claim leaves behind for the next one.
#include "lib/store/call.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::map<std::string, int> count_by_crawl(const std::vector<store::Claim>& claims) {
  std::map<std::string, int> counts;
  for (const auto& claim : claims)
    ++counts[claim.lease.crawl_id];
  return counts;
}

// All of them go back to their places, and no attempt is counted.
void release(Stage& stage, const std::string& worker, const std::vector<store::Claim>& claims) {
  std::vector<store::Page> pages;
  for (const auto& claim : claims) {
    pages.push_back(stage.released(claim));
    pages.back().ending = "declined";
    pages.back().spend = false;
  }
  stage.finish_all(worker, pages);
}

} // namespace

TEST_CASE("snapshots of a crawl are claimed in the order in which they were found") {
  Stage stage;
  stage.start(stage.seeds(1, 4));
  const auto worker = stage.worker();
  for (int i = 1; i <= 4; ++i)
    CHECK(stage.claim(worker).url == stage.seed(std::to_string(i)).url);
}

TEST_CASE("the order of a claim holds for the snapshots of a host with limits too") {
  Stage stage;
  stage.run("insert into holdfast.host (name, max_parallel) values ('site.test', 20)");
  stage.start(stage.seeds(1, 40));
  const auto worker = stage.worker();
  const auto take = [&](int room, store::ClaimOrder order) {
    return stage.claim_as(worker, {.room = room, .order = order});
  };
  CHECK(take(1, {.newest = true}).at(0).url == stage.seed("40").url);
  CHECK(take(1, {}).at(0).url == stage.seed("1").url);
  std::set<std::string> picked;
  for (int i = 0; i < 20; ++i) {
    const auto one = take(1, {.from_top_n = 10});
    picked.insert(one.at(0).url);
    release(stage, worker, one);
  }
  CHECK(picked.size() > 1);
  for (const auto& url : picked)
    CHECK(std::stoi(url.substr(url.rfind('/') + 1)) <= 11);
  CHECK(take(100, {.newest = true, .from_top_n = 5}).size() == 18); // the cap holds in every order
}

TEST_CASE("what is claimed is started, with one event and the terms of its crawl") {
  Stage stage;
  store::NewCrawl crawl;
  crawl["robots"] = true;
  crawl["max_snapshot_bytes"] = 1000;
  const auto id = stage.start(stage.seeds(1, 3), crawl);
  stage.run("insert into holdfast.host (name, max_parallel) values ('elsewhere.test', 1)"); // hosts have limits at all
  const auto worker = stage.worker("the worker");
  const auto claims = stage.claim_only(worker, 2, {id});
  REQUIRE(claims.size() == 2);
  CHECK(claims[0].robots);
  CHECK(claims[0].max_snapshot_bytes == 1000);
  CHECK(claims[0].host == "site.test");
  CHECK(stage.status(claims[0].lease) == "started");
  CHECK(stage.value("select count(*) from holdfast.snapshot_queue where status = 'started' and claimed_at is not null "
                    "and owner_id is not null") == "2");
  CHECK(stage.value("select count(*) || ' ' || min(object_id::text) || ' ' || min(process) || ' ' || "
                    "min(from_state || ' ' || event || ' ' || to_state) from holdfast.v_event where lifecycle = "
                    "'snapshot'") ==
        "2 " + std::min(claims[0].lease.snapshot_id, claims[1].lease.snapshot_id) + " the worker queued start started");
  CHECK(stage.value("select count(*) || ' ' || sum(cardinality(objects)) from holdfast.event where lifecycle = "
                    "'snapshot'") == "1 2");
  for (const auto& claim : claims)
    stage.seal(worker, claim);
  CHECK(stage.claim_only(worker, 2, {id}).size() == 1);
  CHECK(stage.claim_only(worker, 2, {id}).empty());
}

TEST_CASE("a claim that is limited to a worker's open crawls takes of these with all the room there is") {
  Stage stage;
  std::vector<std::string> crawls;
  for (int i = 0; i < 5; ++i)
    crawls.push_back(stage.start(stage.seeds(1, 12)));
  const auto worker = stage.worker();
  for (const auto& open : crawls)
    CHECK(count_by_crawl(stage.claim_only(worker, 8, {open})) == std::map<std::string, int>{{open, 8}});
  // Nothing of the others, whatever room is left.
  CHECK(count_by_crawl(stage.claim_only(worker, 8, {crawls[0]})) == std::map<std::string, int>{{crawls[0], 4}});
  CHECK(stage.claim_only(worker, 8, {}).empty());
}

TEST_CASE("a worker's open crawls come first in every other claim, and what they leave of the room goes to others") {
  Stage stage;
  stage.run("select setseed(0.25)");
  std::vector<std::string> crawls;
  for (int i = 0; i < 10; ++i)
    crawls.push_back(stage.start(stage.seeds(1, 12)));
  const auto worker = stage.worker();
  int first = 0;
  for (int i = 0; i < 40; ++i) {
    const auto claims = stage.claim_many(worker, 8, {crawls[0]});
    auto counts = count_by_crawl(claims);
    CHECK(claims.size() == 8);
    if (counts[crawls[0]] == 8)
      ++first;
    else
      CHECK(counts[crawls[0]] <= 2); // a quarter of the room, as for any other
    release(stage, worker, claims);
  }
  CHECK(first > 8);
  CHECK(first < 32);
  CHECK(stage.claim_only(worker, 8, {crawls[0]}).size() == 8);
  int rest = 0; // four are left of it
  for (int i = 0; i < 50 && rest < 4; ++i) {
    const auto claims = stage.claim_many(worker, 8, {crawls[0]});
    CHECK(claims.size() == 8);
    rest = count_by_crawl(claims)[crawls[0]];
    release(stage, worker, claims);
  }
  CHECK(rest == 4);
}

TEST_CASE("a crawl of one page does not wait behind one of a thousand") {
  Stage stage;
  const auto large = stage.start(stage.seeds(1, 1000));
  const auto small = stage.start({stage.seed("1")});
  // A claim with room for four takes at most a quarter of it from each crawl before it has seen them all.
  const auto counts = count_by_crawl(stage.claim_many(stage.worker(), 4));
  CHECK(counts.at(small) == 1);
  CHECK(counts.at(large) == 3);
}

TEST_CASE("several large crawls share a claim evenly") {
  Stage stage;
  for (int i = 0; i < 4; ++i)
    stage.start(stage.seeds(1, 50));
  for (const auto& [crawl, count] : count_by_crawl(stage.claim_many(stage.worker(), 40)))
    CHECK(count == 10);
}

TEST_CASE("a claim opens one new crawl that is small enough, and leaves others to be expanded") {
  Stage stage;
  const auto large = stage.add(stage.seeds(1, 30)), small = stage.add(stage.seeds(1, 3));
  const auto worker = stage.worker();
  CHECK(stage.claim_many(worker, 8).empty());
  const auto claims = stage.claim_as(worker, {.room = 2, .seeds = 10});
  CHECK(count_by_crawl(claims) == std::map<std::string, int>{{small, 2}});
  CHECK(stage.value("select status || ' ' || seeds_left || ' ' || (owner_id is null) from holdfast.crawl where id = "
                    "$1::uuid",
                    pg::Params::of(small)) == "started 0 true");
  CHECK(stage.value("select status from holdfast.crawl where id = $1::uuid", pg::Params::of(large)) == "queued");
  CHECK(count_by_crawl(stage.claim_as(worker, {.room = 8, .seeds = 10})) == std::map<std::string, int>{{small, 1}});
  // Limited to crawls that are open it opens none.
  CHECK(stage.claim_as(worker, {.room = 8, .open = {small}, .open_only = true, .seeds = 100}).empty());
  CHECK(count_by_crawl(stage.claim_as(worker, {.room = 8, .seeds = 100})) == std::map<std::string, int>{{large, 8}});
}

TEST_CASE("a crawl is parked until its next snapshot is due, a minute at most") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  stage.release(worker, stage.claim(worker), 1h, "later");
  CHECK(stage.claim_many(worker, 5).empty());
  CHECK(stage.value(
            "select extract(epoch from ready_at - clock_timestamp()) between 30 and 60 from holdfast.crawl_queue") ==
        "t");
  CHECK(stage.value("select state from holdfast.v_queue") == "waits: later");
  // The hour passes.
  stage.pass("1 day");
  CHECK(stage.claim_many(worker, 5).size() == 1);
}

TEST_CASE("a draining worker claims nothing; one that is late or has lapsed is told so") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto draining = stage.worker(), late = stage.worker();
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(draining));
  CHECK(stage.claim_many(draining, 5).empty());
  stage.expire(late);
  CHECK(refusal([&] { stage.claim_many(late, 5); }) == pg::kLeaseLapsed);
  store::call(stage.connection, "lapse_process");
  CHECK(refusal([&] { stage.claim_many(late, 5); }) == pg::kLeaseLapsed);
  CHECK(refusal([&] { stage.claim_many("00000000-0000-7000-8000-000000000000", 5); }) == pg::kLeaseLapsed);
  CHECK(stage.value("select count(owner_id) from holdfast.snapshot_queue") == "0");
}

// low_at of crawl_lane: how far the claims of a lane have come
// ------------------------------------------------------------

namespace {

// The page that is due first from low_at on.
std::string low(Stage& stage) {
  return stage.value("select s.url from holdfast.crawl_lane l join holdfast.snapshot_queue q on q.host = l.host and "
                     "coalesce(q.due_at, q.retry_at) >= l.low_at join holdfast.snapshot s on s.id = q.snapshot_id "
                     "order by coalesce(q.due_at, q.retry_at) limit 1");
}

} // namespace

TEST_CASE("what comes back to an old place is claimed first, although claims have come further") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 20));
  const auto early = stage.worker(), worker = stage.worker();
  const auto first = stage.claim_only(early, 4, {crawl}); // in one walk
  CHECK(low(stage) == stage.seed("5").url);
  REQUIRE(first.size() == 4);
  REQUIRE(stage.claim_many(worker, 4).size() == 4);
  SUBCASE("because its worker has left") { store::call(stage.connection, "process_leave", early, 0, "test"); }
  SUBCASE("because it was released") {
    for (const auto& claim : first)
      stage.release(early, claim);
  }
  SUBCASE("because its worker lapsed") {
    stage.expire(early);
    store::call(stage.connection, "lapse_process");
  }
  CHECK(low(stage) == stage.seed("1").url);
  pg::Connection another(stage.dsn());
  const auto again = store::worker_turn(another, worker, {.claim = {.room = 4}}).claims;
  REQUIRE(again.size() == 4);
  for (const auto& claim : again) {
    CHECK(std::stoi(claim.url.substr(claim.url.rfind('/') + 1)) <= 4);
    CHECK(claim.lease.fence == 2);
  }
}

TEST_CASE("what a claim that was rolled back had taken is claimed first") {
  Stage stage;
  stage.start(stage.seeds(1, 20));
  const auto worker = stage.worker();
  struct Failure {};
  pg::Connection failing(stage.dsn());
  CHECK_THROWS_AS(failing.transaction([&](pg::Transaction& transaction) {
    CHECK(transaction.call("select from holdfast.claim($1::uuid, 4)", pg::Params::of(worker)).size() == 4);
    CHECK(stage.claim_many(worker, 4).empty()); // the lane is locked
    throw Failure();
  }),
                  Failure);
  stage.pass("1 minute"); // parked for a moment
  CHECK(stage.claim(worker).url == stage.seed("1").url);
}
