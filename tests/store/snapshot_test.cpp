// Claiming, starting, putting back, sealing.
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::vector<std::string> urls_of(const std::vector<store::Claim>& claims) {
  std::vector<std::string> urls;
  for (const auto& claim : claims)
    urls.push_back(claim.url);
  return urls;
}

std::map<std::string, int> count_by_crawl(const std::vector<store::Claim>& claims) {
  std::map<std::string, int> counts;
  for (const auto& claim : claims)
    ++counts[claim.lease.crawl_id];
  return counts;
}

} // namespace

TEST_CASE("a claim takes as many as there is room for, each once, and never what somebody holds") {
  Stage stage;
  stage.start(stage.seeds(1, 5));
  const auto a = stage.node(), b = stage.node();
  const auto first = store::snapshot_claim(stage.connection, a, 3, {});
  const auto second = store::snapshot_claim(stage.connection, b, 10, {});
  CHECK(first.size() == 3);
  CHECK(second.size() == 2);
  std::set<std::string> all;
  for (const auto& claims : {first, second})
    for (const auto& claim : claims) {
      all.insert(claim.url);
      CHECK(claim.lease.fence == 1);
      CHECK(claim.attempts == 1);
    }
  CHECK(all.size() == 5);
  CHECK(store::snapshot_claim(stage.connection, a, 10, {}).empty());
  CHECK(store::snapshot_claim(stage.connection, a, 0, {}).empty());
}

TEST_CASE("snapshots of a crawl are claimed in the order in which they were found") {
  Stage stage;
  stage.start(stage.seeds(1, 4));
  const auto node = stage.node();
  for (int i = 1; i <= 4; ++i)
    CHECK(stage.claim(node).url == stage.seed(std::to_string(i)).url);
}

TEST_CASE("with each claim the fence grows and the attempts are counted") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  for (int i = 1; i <= 4; ++i) {
    const auto claim = stage.claim_and_start(node);
    CHECK(claim.lease.fence == i);
    CHECK(claim.attempts == i);
    store::snapshot_release(stage.connection, node, claim.lease, "released", 0ms, "again", true);
  }
}

TEST_CASE("a node's open crawls come first, with all the room there is") {
  Stage stage;
  std::vector<std::string> crawls;
  for (int i = 0; i < 10; ++i)
    crawls.push_back(stage.start(stage.seeds(1, 12)));
  const auto node = stage.node();
  for (const auto& near : crawls) {
    const auto claims = store::snapshot_claim(stage.connection, node, 8, {near});
    CHECK(count_by_crawl(claims) == std::map<std::string, int>{{near, 8}});
  }
  // What is left of the room goes to the others.
  const auto claims = store::snapshot_claim(stage.connection, node, 8, {crawls[0]});
  auto counts = count_by_crawl(claims);
  CHECK(claims.size() == 8);
  CHECK(counts[crawls[0]] == 4);
}

TEST_CASE("a crawl of one page does not wait behind one of a thousand") {
  Stage stage;
  const auto large = stage.start(stage.seeds(1, 1000));
  const auto small = stage.start({stage.seed("1")});
  // A claim with room for four takes at most a quarter of it from each crawl before it has seen them all.
  const auto counts = count_by_crawl(store::snapshot_claim(stage.connection, stage.node(), 4, {}));
  CHECK(counts.at(small) == 1);
  CHECK(counts.at(large) == 3);
}

TEST_CASE("several large crawls share a claim evenly") {
  Stage stage;
  for (int i = 0; i < 4; ++i)
    stage.start(stage.seeds(1, 50));
  for (const auto& [crawl, count] : count_by_crawl(store::snapshot_claim(stage.connection, stage.node(), 40, {})))
    CHECK(count == 10);
}

TEST_CASE("a claim that finds nothing parks the crawl, and work put back wakes it") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node(), other = stage.node();
  const auto claim = stage.claim_and_start(node);
  CHECK(store::snapshot_claim(stage.connection, other, 5, {}).empty());
  CHECK(stage.value("select ready_at > clock_timestamp() + interval '30 seconds' from holdfast.crawl_queue") == "t");
  store::snapshot_release(stage.connection, node, claim.lease, "released", 0ms, "again", true);
  CHECK(stage.value("select ready_at <= clock_timestamp() from holdfast.crawl_queue") == "t");
  CHECK(store::snapshot_claim(stage.connection, other, 5, {}).size() == 1);
}

TEST_CASE("new links wake a parked crawl") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.max_depth = 1;
  stage.start({stage.seed("1")}, crawl);
  const auto node = stage.node();
  const auto claim = stage.claim_and_start(node);
  CHECK(store::snapshot_claim(stage.connection, node, 5, {}).empty());
  CHECK(stage.seal(node, claim, stage.succeeded({stage.seed("2")})).children == 1);
  CHECK(store::snapshot_claim(stage.connection, node, 5, {}).size() == 1);
}

TEST_CASE("a crawl is parked until its next snapshot is due, a minute at most") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  const auto claim = stage.claim_and_start(node);
  store::snapshot_release(stage.connection, node, claim.lease, "released", 1h, "later", true);
  CHECK(store::snapshot_claim(stage.connection, node, 5, {}).empty());
  CHECK(stage.value(
            "select extract(epoch from ready_at - clock_timestamp()) between 30 and 60 from holdfast.crawl_queue") ==
        "t");
  CHECK(stage.value("select state from holdfast.v_queue") == "waits: later");
  // The hour passes.
  stage.run("update holdfast.snapshot_queue set retry_at = retry_at - interval '1 hour'");
  stage.run("update holdfast.crawl_queue set ready_at = ready_at - interval '1 hour'");
  CHECK(store::snapshot_claim(stage.connection, node, 5, {}).size() == 1);
}

TEST_CASE("a claim takes over at once what a dead node held") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto dead = stage.node(), node = stage.node();
  stage.claim_and_start(dead);
  stage.claim(dead);
  stage.expire(dead);
  const auto claims = store::snapshot_claim(stage.connection, node, 5, {});
  REQUIRE(claims.size() == 2);
  for (const auto& claim : claims) {
    CHECK(claim.lease.fence == 2);
    CHECK(claim.owners_lost == 1);
  }
}

TEST_CASE("a draining node claims nothing; one that is late or was given up is told so") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto draining = stage.node(), late = stage.node();
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(draining));
  CHECK(store::snapshot_claim(stage.connection, draining, 5, {}).empty());
  stage.expire(late);
  CHECK(refusal([&] { store::snapshot_claim(stage.connection, late, 5, {}); }) == "HF002");
  store::lapse_nodes(stage.connection);
  CHECK(refusal([&] { store::snapshot_claim(stage.connection, late, 5, {}); }) == "HF002");
  CHECK(refusal([&] { store::snapshot_claim(stage.connection, "00000000-0000-7000-8000-000000000000", 5, {}); }) ==
        "HF002");
  CHECK(stage.value("select count(owner_id) from holdfast.snapshot_queue") == "0");
}

TEST_CASE("starting may be repeated, and only by the owner with its fence") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node(), other = stage.node();
  const auto claim = stage.claim(node);
  CHECK(stage.status(claim.lease) == "queued");
  auto stale = claim.lease;
  stale.fence = 0;
  CHECK(refusal([&] { store::snapshot_start(stage.connection, node, stale); }) == "HF003");
  CHECK(refusal([&] { store::snapshot_start(stage.connection, other, claim.lease); }) == "HF003");
  CHECK(stage.status(claim.lease) == "queued");
  store::snapshot_start(stage.connection, node, claim.lease);
  const auto started = stage.value("select started_at from holdfast.snapshot_queue");
  store::snapshot_start(stage.connection, node, claim.lease);
  CHECK(stage.status(claim.lease) == "started");
  CHECK(stage.value("select started_at from holdfast.snapshot_queue") == started);
  CHECK(stage.value("select count(*) from holdfast.event where event = 'start' and lifecycle = 'snapshot'") == "1");
}

TEST_CASE("what is taken is started, with an event and the terms of its crawl") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.robots = true;
  crawl.max_snapshot_bytes = 1000;
  const auto id = stage.start(stage.seeds(1, 3), crawl);
  stage.run("insert into holdfast.host (name, max_parallel) values ('elsewhere.test', 1)"); // hosts have limits at all
  const auto node = stage.node();
  const auto claims = store::snapshot_take(stage.connection, node, 2, {}, false);
  REQUIRE(claims.size() == 2);
  CHECK(claims[0].robots);
  CHECK(claims[0].max_snapshot_bytes == 1000);
  CHECK(claims[0].attempts == 1);
  CHECK(stage.value("select string_agg(distinct status || ' ' || (started_at = claimed_at), ' ') from "
                    "holdfast.snapshot_queue where owner_id is not null") == "started true");
  CHECK(stage.value("select count(*) || ' ' || min(object_id::text) || ' ' || min(process) || ' ' || "
                    "min(from_state || event || to_state) from holdfast.v_event where lifecycle = 'snapshot'") ==
        "2 " + std::min(claims[0].lease.snapshot_id, claims[1].lease.snapshot_id) + " " +
            stage.value("select label from holdfast.process where id = '" + node + "'") + " queuedstartstarted");
  CHECK(stage.value("select sum(cardinality(objects)) from holdfast.event where lifecycle = 'snapshot'") ==
        "2");                                                     // by sets
  store::snapshot_start(stage.connection, node, claims[0].lease); // as if it had been claimed only
  // What this left behind for the session concerns nobody else: another way to start is recorded as before.
  const auto other = stage.claim_and_start(node);
  CHECK(stage.value("select count(*) from holdfast.v_event where lifecycle = 'snapshot' and event = 'start'") == "3");
  CHECK(stage.status(other.lease) == "started");
  for (const auto& claim : claims)
    stage.seal(node, claim);
  CHECK(store::snapshot_take(stage.connection, node, 2, {id}, true).empty());
}

TEST_CASE("what comes back to an old place is found although the session has come further") {
  Stage stage;
  stage.start(stage.seeds(1, 20));
  const auto early = stage.node(), node = stage.node();
  const auto first = store::snapshot_take(stage.connection, early, 4, {}, false);
  const auto next = store::snapshot_take(stage.connection, node, 4, {}, false);
  REQUIRE(first.size() == 4);
  REQUIRE(next.size() == 4);
  store::node_leave(stage.connection, early, 0, "test");
  SUBCASE("at once, when the rest does not fill the claim") {
    CHECK(store::snapshot_take(stage.connection, node, 20, {}, false).size() == 16);
  }
  SUBCASE("when what the session remembers is a second old") {
    stage.run("select set_config('holdfast.claim_floors', jsonb_set(current_setting('holdfast.claim_floors')::jsonb, "
              "'{until}', to_jsonb(clock_timestamp()))::text, false)");
    const auto again = store::snapshot_take(stage.connection, node, 1, {}, false);
    REQUIRE(again.size() == 1);
    CHECK(again[0].url == "https://site.test/1");
    CHECK(again[0].lease.fence == 2);
  }
  SUBCASE("by another session at once") {
    pg::Connection other(stage.dsn());
    const auto again = store::snapshot_take(other, node, 4, {}, false);
    REQUIRE(again.size() == 4);
    CHECK(again[0].lease.fence == 2);
  }
}

TEST_CASE("what is put back says why, is due when asked, and counts the attempt or not") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  auto claim = stage.claim_and_start(node);
  store::result_start(stage.connection, node, claim.lease, {"wget", "on_Snapshot__1_wget", 1, 1, 1s, false});
  store::snapshot_release(stage.connection, node, claim.lease, "released", 0ms, "", true);
  CHECK(stage.value("select status || ' ' || (error <> '') from holdfast.archive_result") == "failed true");
  claim = stage.claim_and_start(node);
  CHECK(claim.attempts == 2);
  store::snapshot_release(stage.connection, node, claim.lease, "interrupted", 10min, "stopping", false);
  const auto row = stage.row("select *, retry_at > clock_timestamp() + interval '9 minutes' as later from "
                             "holdfast.v_snapshot");
  CHECK(row.text("status") == "queued");
  CHECK(row.text("reason") == "stopping");
  CHECK(row.integer("attempts") == 1);
  CHECK(row.integer("owners_lost") == 0);
  CHECK(row.boolean("later"));
  CHECK(row.is_null("owner_id"));
  CHECK(stage.value("select string_agg(fence || ' ' || ending, ', ' order by fence) from holdfast.v_attempt") ==
        "1 released, 2 interrupted");
  CHECK(stage.value("select count(*) from holdfast.event where event = 'release'") == "2");
}

TEST_CASE("putting back may be repeated, but what was taken away cannot be put back") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node(), other = stage.node();
  const auto release = [&](const std::string& who, const store::Lease& lease, const std::string& ending = "released") {
    return refusal([&] { store::snapshot_release(stage.connection, who, lease, ending, 0ms, "reason", true); });
  };
  const auto first = stage.claim_and_start(node).lease;
  CHECK(release(other, first) == "HF003");
  CHECK(release(node, first, "lost") == "HF001");
  CHECK(release(node, first, "sealed") == "HF001");
  CHECK(stage.status(first) == "started");
  CHECK(release(node, first) == "");
  CHECK(release(node, first) == "");
  const auto second = stage.claim_and_start(other).lease;
  CHECK(release(node, first) == "");
  CHECK(stage.status(second) == "started");
  CHECK(release(node, second) == "HF003");
  stage.expire(other);
  store::lapse_nodes(stage.connection);
  CHECK(release(other, second) == "HF003");
  CHECK(stage.value("select count(*) from holdfast.v_attempt") == "2");
}

TEST_CASE("sealing writes down everything once, and the crawl ends with its last snapshot") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 2));
  const auto node = stage.node("the node");
  const auto claim = stage.claim_and_start(node), last = stage.claim_and_start(node);
  store::result_start(stage.connection, node, claim.lease, {"wget", "on_Snapshot__1_wget", 1, 1, 1s, false});
  store::result_finish(stage.connection, node, claim.lease, "wget", "on_Snapshot__1_wget", "succeeded", "{}");
  auto sealing = stage.succeeded();
  sealing.title = "Title";
  sealing.tags = {"b", "a", "b"};
  CHECK_FALSE(stage.seal(node, claim, sealing).crawl_sealed);
  const auto row =
      stage.row("select * from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(claim.lease.snapshot_id));
  CHECK(row.text("status") == "sealed");
  CHECK(row.text("outcome") == "succeeded");
  CHECK(row.text("title") == "Title");
  CHECK(row.text_array("tags") == std::vector<std::string>{"a", "b"});
  CHECK(row.text("directory") == sealing.directory);
  CHECK(row.text("manifest_sha256") == "digest");
  CHECK(row.integer("bytes") == 1000);
  CHECK(row.integer("files") == 3);
  CHECK(row.integer("fence") == 1);
  CHECK(row.text("owner") == "the node");
  CHECK(row.is_null("retry_at"));
  CHECK_FALSE(row.is_null("started_at"));
  CHECK(store::crawl_progress(stage.connection, crawl).status == "started");

  auto partial = stage.succeeded();
  partial.outcome = "partial";
  CHECK(stage.seal(node, last, partial).crawl_sealed);
  const auto progress = store::crawl_progress(stage.connection, crawl);
  CHECK(progress.status == "sealed");
  CHECK(progress.outcome == "partial");
  CHECK(progress.open == 0);
  CHECK(progress.succeeded == 1);
  CHECK(progress.partial == 1);
  CHECK(progress.bytes == 2000);
  CHECK(stage.value("select count(*) from holdfast.crawl_queue") == "0");
}

TEST_CASE("how a crawl ended follows from how its snapshots did") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"succeeded", "succeeded"}, "succeeded"}, {{"succeeded", "failed"}, "partial"},
      {{"failed", "failed"}, "failed"},          {{"partial", "failed"}, "partial"},
      {{"refused", "refused"}, "failed"},        {{"partial", "succeeded"}, "partial"}};
  Stage stage;
  const auto node = stage.node();
  for (const auto& [outcomes, expected] : cases) {
    CAPTURE(expected);
    const auto crawl = stage.start(stage.seeds(1, static_cast<int>(outcomes.size())));
    for (const auto& outcome : outcomes) {
      const auto claim = stage.claim_and_start(node);
      auto sealing = stage.succeeded();
      sealing.outcome = outcome;
      sealing.reason = "a sentence";
      stage.seal(node, claim, sealing);
    }
    CHECK(store::crawl_progress(stage.connection, crawl).outcome == expected);
  }
}

TEST_CASE("links become snapshots one level deeper, in order, each once, and no deeper than the crawl goes") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.max_depth = 1;
  const auto id = stage.start({stage.seed("1")}, crawl);
  const auto node = stage.node();
  const auto claim = stage.claim_and_start(node);
  auto titled = stage.seed("3");
  titled.title = "Three";
  CHECK(stage
            .seal(node, claim,
                  stage.succeeded({stage.seed("2"), titled, stage.seed("1"), stage.seed("2"), stage.seed("4")}))
            .children == 3);
  const auto row = stage.row("select * from holdfast.v_snapshot where url like '%/3'");
  CHECK(row.integer("depth") == 1);
  CHECK(row.text("parent_id") == claim.lease.snapshot_id);
  CHECK(row.text("title") == "Three");
  CHECK(row.text("host") == "site.test");
  for (const char* name : {"2", "3", "4"}) {
    const auto child = stage.claim_and_start(node);
    CHECK(child.url == stage.seed(name).url);
    CHECK(child.depth == 1);
    CHECK(stage.seal(node, child, stage.succeeded({stage.seed("deeper")})).children == 0);
  }
  const auto progress = store::crawl_progress(stage.connection, id);
  CHECK(progress.status == "sealed");
  CHECK(progress.total == 4);
  CHECK(progress.stop_reason == "");
}

TEST_CASE("the same URL in two crawls is two snapshots") {
  Stage stage;
  stage.start({stage.seed("1")});
  stage.start({stage.seed("1")});
  CHECK(store::snapshot_claim(stage.connection, stage.node(), 5, {}).size() == 2);
}

TEST_CASE("URLs longer than an index entry, and any text in them, are told apart") {
  Stage stage;
  const std::string path(20000, 'x');
  stage.start(
      {stage.seed(path + "1"), stage.seed(path + "2"), stage.seed("\xC3\xA9 \"'\\{},%"), stage.seed(path + "1")});
  const auto claims = store::snapshot_claim(stage.connection, stage.node(), 5, {});
  CHECK(claims.size() == 3);
  const auto urls = urls_of(claims);
  CHECK(std::set<std::string>(urls.begin(), urls.end()).count(stage.seed("\xC3\xA9 \"'\\{},%").url) == 1);
}

TEST_CASE("max_urls holds for links too, counts only what is new, and says so when it cut") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.max_depth = 3;
  crawl.max_urls = 3;
  const auto id = stage.start({stage.seed("1")}, crawl);
  const auto node = stage.node();
  CHECK(
      stage
          .seal(node, stage.claim_and_start(node), stage.succeeded({stage.seed("1"), stage.seed("2"), stage.seed("3")}))
          .children == 2);
  CHECK(store::crawl_progress(stage.connection, id).stop_reason == "");
  CHECK(stage.seal(node, stage.claim_and_start(node), stage.succeeded({stage.seed("2"), stage.seed("4")})).children ==
        0);
  const auto progress = store::crawl_progress(stage.connection, id);
  CHECK(progress.stop_reason == "max_urls");
  CHECK(progress.total == 3);
  stage.seal(node, stage.claim_and_start(node));
  CHECK(store::crawl_progress(stage.connection, id).status == "sealed");
}

TEST_CASE("a seal may be repeated and then changes nothing") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.max_depth = 1;
  const auto id = stage.start({stage.seed("1")}, crawl);
  const auto node = stage.node();
  const auto claim = stage.claim_and_start(node);
  CHECK(stage.seal(node, claim, stage.succeeded({stage.seed("2")})).children == 1);
  CHECK(stage.seal(node, claim, stage.succeeded({stage.seed("2"), stage.seed("3")})).children == 0);
  CHECK_FALSE(stage.seal(node, claim).crawl_sealed);
  CHECK(store::crawl_progress(stage.connection, id).total == 2);
  const auto last = stage.claim_and_start(node);
  CHECK(stage.seal(node, last).crawl_sealed);
  CHECK(stage.seal(node, last).crawl_sealed);
  CHECK(stage.value("select count(*) from holdfast.v_event where to_state = 'sealed'") == "3");
}

TEST_CASE("a seal with a stale fence, of another node, or of nothing changes nothing") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.max_depth = 1;
  const auto id = stage.start({stage.seed("1")}, crawl);
  const auto node = stage.node(), other = stage.node();
  const auto old = stage.claim_and_start(node);
  const auto attempt = [&](const std::string& who, const store::Claim& claim) {
    return refusal([&] { stage.seal(who, claim, stage.succeeded({stage.seed("2")})); });
  };
  CHECK(attempt(other, old) == "HF003");
  store::snapshot_release(stage.connection, node, old.lease, "released", 0ms, "again", true);
  CHECK(attempt(node, old) == "HF003");
  const auto current = stage.claim_and_start(node);
  CHECK(attempt(node, old) == "HF003");
  auto ahead = current;
  ahead.lease.fence = 3;
  CHECK(attempt(node, ahead) == "HF003");
  auto elsewhere = current;
  elsewhere.lease.crawl_id = "00000000-0000-7000-8000-000000000000";
  CHECK(attempt(node, elsewhere) == "HF003");
  const auto progress = store::crawl_progress(stage.connection, id);
  CHECK(progress.total == 1);
  CHECK(progress.open == 1);
  CHECK(stage.status(current.lease) == "started");
  CHECK(attempt(node, current) == "");
  CHECK(attempt(other, current) == "HF003");
}

TEST_CASE("a snapshot cannot be sealed while one of its hooks runs") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  const auto claim = stage.claim_and_start(node);
  store::result_start(stage.connection, node, claim.lease, {"chrome", "on_Snapshot__1_chrome", 1, 1, 1s, true});
  CHECK(refusal([&] { stage.seal(node, claim); }) == "HF001");
  CHECK(stage.status(claim.lease) == "started");
  store::result_finish(stage.connection, node, claim.lease, "chrome", "on_Snapshot__1_chrome", "noresults", "{}");
  CHECK(stage.seal(node, claim).crawl_sealed);
}

TEST_CASE("what was never started cannot have succeeded, but it can be refused") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  const auto claim = stage.claim(node);
  CHECK(refusal([&] { stage.seal(node, claim); }) == "HF001");
  store::Sealing refused;
  refused.outcome = "refused";
  CHECK(refusal([&] { stage.seal(node, claim, refused); }) == "23514");
  refused.reason = "a private address";
  CHECK(stage.seal(node, claim, refused).crawl_sealed);
  CHECK(stage.value("select event from holdfast.event where lifecycle = 'snapshot'") == "refuse");
}

TEST_CASE("a success names its files, or it is none") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  const auto claim = stage.claim_and_start(node);
  store::Sealing sealing;
  sealing.outcome = "succeeded";
  CHECK(refusal([&] { stage.seal(node, claim, sealing); }) == "23514");
  sealing.outcome = "nonsense";
  CHECK(refusal([&] { stage.seal(node, claim, sealing); }) == "23514");
  CHECK(stage.status(claim.lease) == "started");
  sealing.outcome = "failed";
  CHECK(stage.seal(node, claim, sealing).crawl_sealed);
}

namespace {

using What = store::SealAnswer::What;

// Seals all of these in one call, each with what `succeeded` says and `bytes`.
std::vector<store::SealAnswer> seal_many(Stage& stage, const std::string& node, const std::vector<store::Claim>& claims,
                                         const std::vector<store::Sealing>& sealings) {
  std::vector<store::SealRequest> requests;
  for (std::size_t i = 0; i < claims.size(); ++i)
    requests.push_back({claims[i].lease, sealings[i % sealings.size()]});
  return store::snapshot_seal_many(stage.connection, node, requests);
}

std::vector<store::Claim> claim_and_start_all(Stage& stage, const std::string& node, int count) {
  auto claims = store::snapshot_claim(stage.connection, node, count, {});
  for (const auto& claim : claims)
    store::snapshot_start(stage.connection, node, claim.lease);
  return claims;
}

std::vector<What> answers_of(const std::vector<store::SealAnswer>& answers) {
  std::vector<What> all;
  for (const auto& answer : answers)
    all.push_back(answer.what);
  return all;
}

} // namespace

TEST_CASE(
    "sealing many at once gives each its own answer, and one that cannot be sealed does not keep the others from it") {
  Stage stage;
  stage.start(stage.seeds(1, 6));
  const auto node = stage.node(), other = stage.node();
  auto claims = claim_and_start_all(stage, node, 4);
  const auto foreign = claim_and_start_all(stage, other, 1);
  REQUIRE(claims.size() == 4);
  store::result_start(stage.connection, node, claims[1].lease, {"wget", "hook", 1, 1, 1s, false});
  claims[2].lease.fence += 1;
  claims.push_back(foreign.at(0));
  claims.push_back(claims[0]); // twice
  const auto answers = seal_many(stage, node, claims, {stage.succeeded()});
  CHECK(answers_of(answers) ==
        std::vector<What>{What::sealed, What::running, What::lost, What::sealed, What::lost, What::sealed});
  CHECK(stage.value("select snapshots_open || ' ' || snapshots_succeeded from holdfast.crawl") == "4 2");
  CHECK(stage.value("select count(*) from holdfast.v_attempt") == "2");
  CHECK(stage.value("select count(*) from holdfast.v_event where to_state = 'sealed' and lifecycle = 'snapshot'") ==
        "2");
  // The answer was lost: the same again, and nothing changes.
  CHECK(answers_of(seal_many(stage, node, claims, {stage.succeeded()})) == answers_of(answers));
  CHECK(stage.value("select snapshots_open || ' ' || snapshots_succeeded from holdfast.crawl") == "4 2");
  CHECK(store::snapshot_seal_many(stage.connection, node, {}).empty());
}

TEST_CASE("if one of many breaks a rule of the schema, none is sealed") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto node = stage.node();
  const auto claims = claim_and_start_all(stage, node, 2);
  auto nameless = stage.succeeded();
  nameless.directory.clear(); // a success names its files
  CHECK(refusal([&] { seal_many(stage, node, claims, {stage.succeeded(), nameless}); }) == "23514");
  CHECK(stage.value("select count(*) from holdfast.snapshot_sealed") == "0");
  CHECK(answers_of(seal_many(stage, node, claims, {stage.succeeded()})) ==
        std::vector<What>{What::sealed, What::sealed});
}

TEST_CASE("many sealed at once end several crawls, each with the last of its own") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  stage.start(stage.seeds(1, 3));
  const auto node = stage.node();
  std::vector<store::Claim> claims;
  while (claims.size() < 5)
    for (auto& claim : claim_and_start_all(stage, node, 5))
      claims.push_back(claim);
  auto failed = stage.succeeded();
  failed.outcome = "failed";
  failed.reason = "no hook succeeded";
  const auto answers = seal_many(stage, node, claims, {stage.succeeded(), failed});
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < claims.size(); ++i)
    last[claims[i].lease.crawl_id] = i;
  for (std::size_t i = 0; i < claims.size(); ++i)
    CHECK(answers[i].sealed.crawl_sealed == (last[claims[i].lease.crawl_id] == i));
  CHECK(stage.value("select count(*) from holdfast.crawl where status = 'sealed' and snapshots_open = 0") == "2");
  CHECK(stage.value("select sum(snapshots_succeeded) || ' ' || sum(snapshots_failed) from holdfast.crawl") == "3 2");
}

TEST_CASE("links found by several pages that are sealed together are added once") {
  Stage stage;
  store::NewCrawl deep;
  deep.max_depth = 1;
  stage.start(stage.seeds(1, 2), deep);
  const auto node = stage.node();
  const auto claims = claim_and_start_all(stage, node, 2);
  const auto answers = seal_many(stage, node, claims,
                                 {stage.succeeded({stage.seed("7"), stage.seed("8")}),
                                  stage.succeeded({stage.seed("8"), stage.seed("9"), stage.seed("1")})});
  CHECK(answers[0].sealed.children == 2);
  CHECK(answers[1].sealed.children == 1);
  CHECK_FALSE(answers[1].sealed.crawl_sealed);
  CHECK(stage.value("select snapshots_total || ' ' || snapshots_open from holdfast.crawl") == "5 3");
  CHECK(stage.value("select parent_id from holdfast.snapshot where url = 'https://site.test/8'") ==
        claims[0].lease.snapshot_id);
}

TEST_CASE("the first of many that is too much for its crawl stops it, and what was before it is kept") {
  Stage stage;
  store::NewCrawl small;
  small.max_bytes = 250;
  const auto crawl = stage.start(stage.seeds(1, 6), small);
  const auto node = stage.node();
  const auto claims = claim_and_start_all(stage, node, 4);
  REQUIRE(claims.size() == 4);
  auto sealing = stage.succeeded();
  sealing.bytes = 100;
  const auto answers = seal_many(stage, node, claims, {sealing});
  CHECK(answers_of(answers) == std::vector<What>{What::sealed, What::sealed, What::cancelled, What::cancelled});
  CHECK(stage.value("select status || ' ' || outcome || ' ' || stop_reason || ' ' || bytes from holdfast.crawl") ==
        "sealed succeeded max_bytes 200");
  CHECK(stage.value(
            "select count(*) from holdfast.snapshot_sealed where outcome = 'cancelled' and directory is null") == "4");
  CHECK(stage.value("select failed || ' ' || cancelled from holdfast.v_crawl") == "0 4");
  CHECK(answers_of(seal_many(stage, node, claims, {sealing})) == answers_of(answers));
  CHECK(store::crawl_progress(stage.connection, crawl).open == 0);
}

TEST_CASE("of the same URL in two crawls that overwrite, sealed together, one takes the other's place, not both") {
  Stage stage;
  store::NewCrawl again;
  again.overwrite = true;
  stage.start(stage.seeds(1, 1), again);
  stage.start(stage.seeds(1, 1), again);
  const auto node = stage.node();
  const auto claims = claim_and_start_all(stage, node, 2);
  REQUIRE(claims.size() == 2);
  seal_many(stage, node, claims, {stage.succeeded()});
  CHECK(stage.value("select count(*) from holdfast.superseded") == "1");
}
