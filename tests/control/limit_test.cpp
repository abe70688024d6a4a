// Limits taken in the transaction that spends them, scope where URLs come in, fair shares between crawls.
#include "lib/store/live.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("a crawl whose time is over is stopped, and its pauses do not count") {
  Stage stage;
  store::NewCrawl brief;
  brief["max_time"] = "1 hour";
  const auto crawl = stage.start(stage.seeds(1, 3), brief);
  const auto worker = stage.worker();
  const auto held = stage.claim(worker);
  const auto left = [&] {
    return std::stod(stage.value("select extract(epoch from deadline_at - clock_timestamp()) from holdfast.v_crawl"));
  };
  CHECK(left() > 3500);
  CHECK(left() <= 3600);
  stage.command("pauseCrawl", crawl);
  stage.run("update holdfast.crawl set paused_at = paused_at - interval '30 minutes'");
  stage.command("resumeCrawl", crawl);
  CHECK(left() > 5300);
  stage.expand(worker);
  CHECK(stage.value("select retry_at = deadline_at from holdfast.v_crawl") == "t"); // when a worker shall look again
  stage.run("update holdfast.crawl set deadline_at = clock_timestamp(), retry_at = clock_timestamp()");
  CHECK(stage.claim_many(worker, 8).empty());
  stage.run("update holdfast.crawl_queue set stop_at = 'infinity'"); // as a claim sees it that has begun before
  CHECK(stage.claim_many(worker, 8).empty());
  stage.expand(worker);
  const auto ended = store::crawl(stage.connection, crawl);
  CHECK(ended.status == "sealed");
  CHECK(ended.stop_reason == "max_time");
  CHECK(stage.status(held.lease) == "sealed");
}

TEST_CASE("no more snapshots of a crawl are in work than it allows, however many workers claim") {
  Stage stage;
  store::NewCrawl narrow;
  narrow["max_parallel"] = 3;
  stage.start(stage.seeds(1, 20), narrow);
  const auto worker = stage.worker(), other = stage.worker();
  const auto claims = stage.claim_many(worker, 2);
  CHECK(claims.size() == 2);
  CHECK(stage.claim_many(other, 8).size() == 1);
  CHECK(stage.claim_many(other, 8).empty());
  stage.seal(worker, claims[0]);
  CHECK(stage.claim_many(other, 8).size() == 1);
  CHECK(stage.claim_many(worker, 8).empty());
}

TEST_CASE("links outside the scope never become snapshots") {
  Stage stage;
  store::NewCrawl crawl;
  crawl["max_depth"] = 3;
  crawl["scope"] = {{"domains", {"site.test"}}, {"deny", {"logout", "*.ads.site.test"}}, {"schemes", {"https"}}};
  stage.start({stage.seed("1")}, crawl);
  const auto worker = stage.worker();
  const auto link = [](const std::string& url) { return store::Seed{url, "", {}}; };
  const auto sealed =
      stage.seal(worker, stage.claim(worker),
                 {link("https://site.test/2"), link("https://www.site.test/"), link("https://ads.site.test/"),
                  link("https://x.ads.site.test/"), link("https://site.test/LOGOUT?now"), link("http://site.test/3"),
                  link("https://notsite.test/")});
  CHECK(sealed.children == 3);
  CHECK(stage.value("select refused from holdfast.v_crawl") == "4");
}

TEST_CASE("a scope that makes no sense is refused with the reason") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.id = "018f0000-0000-7000-8000-000000000001";
  crawl["scope"] = {{"deny", {"("}}};
  CHECK(refusal([&] { store::crawl_add(stage.connection, crawl, {stage.seed("1")}); }) == pg::kRefused);
  crawl["scope"] = {{"colour", {"red"}}};
  CHECK(refusal([&] { store::crawl_add(stage.connection, crawl, {stage.seed("1")}); }) == pg::kRefused);
}

TEST_CASE("only what is new, or was archived too long ago") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker();
  stage.seal(worker, stage.claim(worker));
  stage.seal(worker, stage.claim(worker));
  store::NewCrawl fresh;
  fresh["only_new"] = true;
  const auto crawl = stage.start(stage.seeds(1, 3), fresh);
  CHECK(store::crawl(stage.connection, crawl).total == 1);
  fresh["max_age"] = "1 hour";
  stage.force(
      "update holdfast.snapshot_sealed set sealed_at = sealed_at - interval '2 hours' where snapshot_id = (select "
      "id from holdfast.snapshot where url = 'https://site.test/2' limit 1)");
  const auto again = stage.start(stage.seeds(1, 3), fresh);
  CHECK(store::crawl(stage.connection, again).total == 2);
}

TEST_CASE("a crawl of higher priority goes first, and the others still get their turn") {
  Stage stage;
  stage.run("select setseed(0.25)"); // the walk's dice
  store::NewCrawl urgent, late;
  urgent["priority"] = 5;
  late["priority"] = -5;
  const auto plain = stage.start(stage.seeds(1, 400));
  const auto first = stage.start(stage.seeds(1, 400), urgent);
  const auto last = stage.start(stage.seeds(1, 400), late);
  // Places in the walk as far from each other as can be.
  stage.run(
      "update holdfast.crawl_queue q set shuffle = (select count(*) from holdfast.crawl_queue o where o.crawl_id < "
      "q.crawl_id) / 3.0");
  const auto worker = stage.worker();
  std::map<std::string, int> counts;
  for (int i = 0; i < 300; ++i)
    for (const auto& claim : stage.claim_many(worker, 1))
      ++counts[claim.lease.crawl_id];
  CHECK(counts[first] > 200);
  CHECK(counts[plain] > 0);
  CHECK(counts[last] > 0);
  CHECK(counts[plain] + counts[first] + counts[last] == 300);
}

TEST_CASE("the priority of a crawl is changed while it runs, and the next claim heeds it") {
  Stage stage;
  stage.run("select setseed(0.25)"); // the walk's dice
  const auto plain = stage.start(stage.seeds(1, 200));
  const auto raised = stage.start(stage.seeds(1, 200));
  stage.run(
      "update holdfast.crawl_queue q set shuffle = (select count(*) from holdfast.crawl_queue o where o.crawl_id < "
      "q.crawl_id) / 2.0");
  CHECK(stage.command("changeCrawl", raised, {{"priority", 10}}));
  CHECK_FALSE(stage.command("changeCrawl", raised, {{"priority", 10}}));
  CHECK(stage.value("select action || ' ' || by_whom || ': ' || detail from holdfast.v_control") ==
        "priority ann: now 10");
  const auto worker = stage.worker();
  std::map<std::string, int> counts;
  for (int i = 0; i < 100; ++i)
    for (const auto& claim : stage.claim_many(worker, 1))
      ++counts[claim.lease.crawl_id];
  CHECK(counts[raised] > 70);
  CHECK(counts[plain] > 0);
  stage.command("cancelCrawl", plain);
  CHECK_FALSE(stage.command("changeCrawl", plain, {{"priority", 1}})); // it has ended
}

TEST_CASE("a worker that always has a large crawl open still serves the small ones") {
  Stage stage;
  stage.run("select setseed(0.25)");
  const auto large = stage.start(stage.seeds(1, 2000));
  std::set<std::string> small;
  for (int i = 0; i < 20; ++i)
    small.insert(stage.start({stage.seed("1")}));
  const auto worker = stage.worker();
  stage.run(
      "update holdfast.crawl_queue q set shuffle = (select count(*) from holdfast.crawl_queue o where o.crawl_id < "
      "q.crawl_id) / 21.0");
  for (int i = 0; i < 1000 && !small.empty(); ++i)
    for (const auto& claim : stage.claim_many(worker, 1, {large}))
      small.erase(claim.lease.crawl_id);
  CHECK(small.empty());
}
