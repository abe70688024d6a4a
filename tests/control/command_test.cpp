// Pause, resume, cancel, scope, retry, remove: what matrix_test.cpp does not see of them.
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "lib/store/runner.hpp"
#include "lib/store/worker.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

const nlohmann::json kWhy{{"why", "for a test"}};

std::size_t lost(Stage& stage, const std::string& worker, const store::Lease& lease) {
  return store::worker_heartbeat(stage.connection, worker, 1h, {lease}, "{}").lost.size();
}

} // namespace

TEST_CASE("cancelling a large crawl goes in batches, and workers end it if no one else does") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 2500));
  const auto worker = stage.worker();
  const auto held = stage.claim(worker);
  // The first batch only, as when the canceller dies after it.
  CHECK(stage.value("select holdfast.crawl_cancel($1::uuid, 'ann', '')", pg::Params::of(crawl)) == "1499");
  CHECK(stage.status(held.lease) == "sealed");
  CHECK(lost(stage, worker, held.lease) == 1);
  CHECK(stage.claim_many(worker, 8).empty());
  stage.expand(worker);
  const auto ended = store::crawl(stage.connection, crawl);
  CHECK(ended.status == "sealed");
  CHECK(ended.outcome == "cancelled");
  CHECK(ended.stop_reason == "cancelled");
  CHECK(ended.cancelled == 2500);
}

TEST_CASE("a worker is told to end, and a host's pages are cancelled in every crawl") {
  Stage stage;
  stage.start(stage.seeds(1, 3));
  stage.start({{"https://other.test/", "", {}}, stage.seed("1")});
  const auto worker = stage.worker();
  CHECK(stage.command("cancelWorker", worker, kWhy));
  CHECK_FALSE(stage.command("cancelWorker", worker, kWhy));
  CHECK(store::worker_heartbeat(stage.connection, worker, 1h, {}, "{}").request == "stop");
  CHECK(stage.command("cancelHost", "site.test", kWhy));
  CHECK_FALSE(stage.command("cancelHost", "site.test", kWhy));
  CHECK(stage.value("select count(*) from holdfast.v_snapshot where outcome = 'cancelled'") == "4");
}

TEST_CASE("what was claimed while the command was given is taken with the worker's next heartbeat") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker();
  const auto held = stage.claim(worker);
  std::string to = "paused";
  // As if the claim had come in just after the command had looked for it.
  SUBCASE("paused by hand") {
    stage.run("update holdfast.crawl set status = 'paused', retry_at = holdfast.retry_at_max() where id = $1::uuid",
              pg::Params::of(crawl));
  }
  SUBCASE("being cancelled") {
    stage.run("update holdfast.crawl set stopping_at = now(), stop_reason = 'cancelled', retry_at = now() where id = "
              "$1::uuid",
              pg::Params::of(crawl));
    to = "sealed";
  }
  CHECK(lost(stage, worker, held.lease) == 1);
  CHECK(stage.status(held.lease) == to);
  if (to == "sealed") stage.expand(worker);
}

TEST_CASE("a domain is excluded from a running crawl, and let in again") {
  Stage stage;
  std::vector<store::Seed> seeds = stage.seeds(1, 5);
  for (int i = 1; i <= 5; ++i)
    seeds.push_back({"https://ads.other.test/" + std::to_string(i), "", {}});
  const auto crawl = stage.start(seeds);
  const auto worker = stage.worker();
  const nlohmann::json deny{{"deny", {"other.test"}}};
  CHECK(stage.command("scopeCrawl", crawl, {{"add", deny}}));
  CHECK_FALSE(stage.command("scopeCrawl", crawl, {{"add", deny}}));
  CHECK(stage.value("select excluded from holdfast.v_crawl where id = $1::uuid", pg::Params::of(crawl)) == "5");
  CHECK(stage.value("select count(*) from holdfast.v_queue where state = 'outside: excluded: other.test (by ann)'") ==
        "5");
  stage.expand(worker);
  auto claims = stage.claim_many(worker, 10);
  CHECK(claims.size() == 5);
  for (const auto& claim : claims)
    CHECK(claim.host == "site.test");
  SUBCASE("let in again") {
    CHECK(stage.command("scopeCrawl", crawl, {{"remove", deny}}));
    stage.expand(worker);
    CHECK(stage.claim_many(worker, 10).size() == 5);
  }
  SUBCASE("left out to the end, links to it too") {
    for (const auto& claim : claims) {
      stage.seal(worker, claim, {{"https://other.test/x", "", {}}});
    }
    stage.expand(worker);
    const auto ended = store::crawl(stage.connection, crawl);
    CHECK(ended.status == "sealed");
    CHECK(ended.outcome == "succeeded");
    CHECK(ended.succeeded == 5);
    CHECK(ended.failed == 0);
    CHECK(ended.cancelled == 5);
    CHECK(stage.value("select count(*) from holdfast.v_snapshot where outcome = 'cancelled' and reason = 'excluded: "
                      "other.test (by ann)'") == "5");
  }
  SUBCASE("a page of it that is in work is taken back") {
    CHECK(stage.command("scopeCrawl", crawl, {{"add", {{"deny", {"site.test"}}}}}));
    CHECK(stage.status(claims[0].lease) == "paused");
    CHECK(lost(stage, worker, claims[0].lease) == 1);
  }
}

TEST_CASE("what failed is tried again as a new crawl, as deep as it was") {
  Stage stage;
  store::NewCrawl deep;
  deep["max_depth"] = 2;
  deep["tags"] = {"a"};
  const auto crawl = stage.start(stage.seeds(1, 2), deep);
  const auto worker = stage.worker();
  stage.seal(worker, stage.claim(worker), {stage.seed("9")});
  stage.finish(worker, Stage::sealed(stage.claim(worker), "failed"));
  const auto child = stage.claim(worker);
  auto partial = Stage::sealed(child, "partial");
  partial.results = {Stage::result("wget", "hook", "failed")};
  stage.finish(worker, partial);

  const auto id = base::new_uuid();
  const auto retry = [&](const std::string& new_id, const nlohmann::json& body) {
    return catalog::operation("retry").run({stage.connection, "", new_id, body, "ann"})["seeds"].get<int>();
  };
  CHECK(retry(id, {{"ids", {crawl}}, {"failed", true}}) == 2);
  CHECK(retry(id, {{"ids", {crawl}}, {"failed", true}}) == 2); // a repeat adds nothing
  stage.expand(worker);
  CHECK(stage.value("select string_agg(url || ' ' || depth, ', ' order by depth) from holdfast.v_snapshot where "
                    "crawl_id = $1::uuid",
                    pg::Params::of(id)) == "https://site.test/2 0, https://site.test/9 2");
  CHECK(stage.value("select retry_of::text || max_depth || tags[1] from holdfast.v_crawl where id = $1::uuid",
                    pg::Params::of(id)) == crawl + "2a");
  // One plugin, where it failed; and over everything.
  CHECK(retry(base::new_uuid(), {{"ids", {crawl}}, {"failed", true}, {"plugins", {"wget"}}}) == 1);
  CHECK(retry(base::new_uuid(), {{"ids", {crawl}}, {"failed", true}, {"plugins", {"title"}}}) == 0);
  CHECK(retry(base::new_uuid(), {{"ids", {crawl}}, {"plugins", {"title"}}}) == 3);
  CHECK(retry(base::new_uuid(), {{"ids", {child.lease.snapshot_id}}}) == 1);
}

TEST_CASE("a crawl is removed once it is sealed, and its directories are listed for deletion") {
  Stage stage;
  const auto crawl = stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  CHECK(refusal([&] { stage.command("removeCrawl", crawl); }) == pg::kRefused);
  const auto claim = stage.claim(worker);
  stage.seal(worker, claim);
  stage.command("changeCrawl", crawl, {{"keep", "1ms"}});
  CHECK(stage.value("select keep_until is not null from holdfast.v_crawl where id = $1::uuid", pg::Params::of(crawl)) ==
        "t");
  CHECK(stage.command("removeCrawl", crawl));
  CHECK_FALSE(stage.command("removeCrawl", crawl));
  const std::vector<std::string> directories = {"2026/01/site.test/" + claim.lease.snapshot_id};
  CHECK(store::call_list(stage.connection, "purge_list", 10) == directories);
  store::call(stage.connection, "purge_done", directories);
  CHECK(store::call_list(stage.connection, "purge_list", 10).empty());
}

TEST_CASE("a worker that loses its lease and comes back is still paused, and still asked to end") {
  Stage stage;
  const auto join = [&](const std::string& id, int pid) {
    stage.run(R"(select holdfast.process_join($1::uuid, '{"machine": {"id": "m", "hostname": "h"}, "boot_id": "boot",
                   "start_ticks": 7, "process_type": "worker", "worker_type": "all", "label": "worker", "version": "1",
                   "slots": 4}' || jsonb_build_object('pid', $2::integer), interval '1 minute'))",
              pg::Params::of(id, pid));
    return id;
  };
  const auto told = [&](const std::string& id) {
    return stage.value(
        "select (paused_at is not null) || ' ' || coalesce(paused_by, '') || ' ' || coalesce(request, '') "
        "from holdfast.process where id = $1::uuid",
        pg::Params::of(id));
  };
  const auto crawl = stage.start(stage.seeds(1, 3));
  const auto first = join(base::new_uuid(), 70000);
  const nlohmann::json why{{"why", "too hot"}};
  stage.command("pauseWorker", first, why);
  stage.expire(first);
  const auto second = join(base::new_uuid(), 70000);
  CHECK(told(second) == "true its worker was paused by ann: too hot ");
  CHECK(stage.claim_only(second, 1, {crawl}).empty());
  CHECK(told(join(base::new_uuid(), 70001)) == "false  "); // another process
  CHECK(stage.command("resumeWorker", second, why));
  stage.command("cancelWorker", second, why);
  stage.expire(second);
  CHECK(told(join(base::new_uuid(), 70000)) == "false  stop");
}

TEST_CASE("what was found on a page that is removed says where it was found, and what is given twice keeps all that is "
          "said of it") {
  Stage stage;
  const auto worker = stage.worker();
  store::NewCrawl crawl;
  crawl["max_depth"] = 1;
  auto plain = stage.seed("1"), titled = plain;
  plain.tags = {"x"};
  titled.tags = {"y"};
  titled.title = "A title";
  const auto id = stage.start({plain, titled}, crawl);
  CHECK(stage.value("select title || ' ' || tags::text from holdfast.snapshot where crawl_id = $1::uuid",
                    pg::Params::of(id)) == "A title {x,y}");
  const auto parent = stage.claim(worker);
  stage.seal(worker, parent, {stage.seed("2")});
  const auto found_on = [&] {
    return stage.value("select coalesce(parent_id::text, 'gone') || ' ' || found_on from holdfast.v_snapshot where "
                       "crawl_id = $1::uuid and depth = 1",
                       pg::Params::of(id));
  };
  CHECK(found_on() == parent.lease.snapshot_id + " " + parent.url);
  stage.command("cancelCrawl", id, kWhy);
  CHECK(stage.command("removeSnapshot", parent.lease.snapshot_id));
  CHECK(found_on() == "gone " + parent.url);
}
