// Several pages at once, by finish() or by worker_turn(), which then claims: one transaction, an answer for each.
#include "lib/store/live.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace holdfast;
using namespace holdfast::test;

using What = store::PageAnswer::What;

namespace {

// All of these are sealed as succeeded.
std::vector<store::Page> sealed(const std::vector<store::Claim>& claims) {
  std::vector<store::Page> pages;
  for (const auto& claim : claims)
    pages.push_back(Stage::sealed(claim));
  return pages;
}

std::vector<What> answers_of(const std::vector<store::PageAnswer>& answers) {
  std::vector<What> all;
  for (const auto& answer : answers)
    all.push_back(answer.what);
  return all;
}

} // namespace

TEST_CASE("a turn seals, releases and claims in one transaction") {
  Stage stage;
  stage.start(stage.seeds(1, 5));
  const auto worker = stage.worker();
  const auto first = store::worker_turn(stage.connection, worker, {.pages = {}, .claim = {.room = 3}});
  REQUIRE(first.claims.size() == 3);
  CHECK(first.pages.empty());
  CHECK_FALSE(first.wait);
  auto refused = stage.sealed(first.claims[1], "refused");
  const auto second = store::worker_turn(
      stage.connection, worker,
      {.pages = {stage.sealed(first.claims[0]), refused, stage.released(first.claims[2], 1h)}, .claim = {.room = 3}});
  CHECK(
      stage.value("select count(*) || ' rows, transactions: ' || count(distinct xmin::text) from ("
                  "select xmin from holdfast.snapshot_sealed union all select xmin from holdfast.snapshot_queue) r") ==
      "5 rows, transactions: 1");
  CHECK(answers_of(second.pages) == std::vector<What>{What::sealed, What::sealed, What::released});
  REQUIRE(second.claims.size() == 2);
  CHECK(std::set<std::string>{second.claims[0].url, second.claims[1].url} ==
        std::set<std::string>{stage.seed("4").url, stage.seed("5").url});
  REQUIRE(second.wait); // at most a minute, even if the next page is due in an hour
  CHECK(*second.wait <= 60s);
  CHECK(*second.wait > 50s);
  // The last turn: nothing is left to wait for, but the lease of a worker (an hour) could lapse.
  stage.pass("1 day");
  const auto rest = stage.claim(worker);
  auto pages = sealed(second.claims);
  pages.push_back(stage.sealed(rest));
  const auto last = store::worker_turn(stage.connection, worker, {.pages = pages, .claim = {.room = 3}});
  CHECK(last.pages.at(2).crawl_sealed);
  CHECK(last.claims.empty());
  REQUIRE(last.wait);
  CHECK(*last.wait > 50min);
}

TEST_CASE("a page makes room for the next one of the same crawl in the same turn") {
  Stage stage;
  store::NewCrawl narrow;
  narrow["max_parallel"] = 1;
  narrow["max_depth"] = 1;
  stage.start({stage.seed("1")}, narrow);
  const auto worker = stage.worker();
  auto page = stage.sealed(stage.claim(worker));
  page.links = {stage.seed("2"), stage.seed("3")};
  const auto turn = store::worker_turn(stage.connection, worker, {.pages = {page}, .claim = {.room = 4}});
  REQUIRE(turn.claims.size() == 1);
  CHECK(turn.claims[0].url == stage.seed("2").url);
}

TEST_CASE("one page that breaks a rule of the schema fails the turn, and nothing of it is done") {
  Stage stage;
  store::NewCrawl deep;
  deep["max_depth"] = 1;
  stage.start(stage.seeds(1, 5), deep);
  const auto worker = stage.worker();
  const auto claims = stage.claim_many(worker, 3);
  auto pages = sealed(claims);
  pages[0].links = {stage.seed("9")};
  pages[0].results = {stage.result("wget", "hook")};
  pages[1] = stage.released(claims[1]);
  SUBCASE("a success without files") { pages[2].directory.clear(); }
  SUBCASE("a result without a name") { pages[2].results = {stage.result("wget", "x", "nonsense")}; }
  SUBCASE("a failure that does not say why") {
    pages[2].results = {stage.result("wget", "x", "failed")};
    pages[2].results[0].error.clear();
  }
  const auto state = [&] {
    return stage.value(
        "select (select jsonb_agg(to_jsonb(q) order by snapshot_id) from holdfast.snapshot_queue q)::text "
        "|| (select jsonb_agg(to_jsonb(c)) from holdfast.crawl c)::text || (select count(*) from "
        "holdfast.snapshot) || (select count(*) from holdfast.event)");
  };
  const auto before = state();
  CHECK(refusal([&] { store::worker_turn(stage.connection, worker, {.pages = pages, .claim = {.room = 2}}); }) ==
        "23514");
  CHECK(state() == before);
  CHECK(stage.value("select (select count(*) from holdfast.snapshot_sealed) + (select count(*) from holdfast.attempt) "
                    "+ (select count(*) from holdfast.archive_result)") == "0");
  // The others can be finished alone.
  CHECK(stage.finish(worker, pages[0]).children == 1);
  CHECK(stage.finish(worker, pages[1]).what == What::released);
}

TEST_CASE("each of many pages has its own answer, and those that are not held do not keep others from being sealed") {
  Stage stage;
  stage.start(stage.seeds(1, 6));
  const auto worker = stage.worker(), other = stage.worker();
  auto claims = stage.claim_many(worker, 4);
  const auto foreign = stage.claim_many(other, 1);
  REQUIRE(claims.size() == 4);
  claims[2].lease.fence += 1;
  claims.push_back(foreign.at(0));
  claims.push_back(claims[0]); // twice
  const auto answers = stage.finish_all(worker, sealed(claims));
  CHECK(answers_of(answers) ==
        std::vector<What>{What::sealed, What::sealed, What::lost, What::sealed, What::lost, What::sealed});
  CHECK(stage.value("select snapshots_open || ' ' || snapshots_succeeded from holdfast.crawl") == "3 3");
  CHECK(stage.value("select count(*) from holdfast.v_attempt") == "3");
  CHECK(stage.value("select count(*) from holdfast.v_event where to_state = 'sealed' and lifecycle = 'snapshot'") ==
        "3");
  // The answer was lost: the same again, and nothing changes.
  CHECK(answers_of(stage.finish_all(worker, sealed(claims))) == answers_of(answers));
  CHECK(stage.value("select snapshots_open || ' ' || snapshots_succeeded from holdfast.crawl") == "3 3");
}

TEST_CASE("the page of an attempt that has ended does not hide the next attempt of the same snapshot") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  const auto first = stage.claim(worker);
  stage.release(worker, first); // its answer was lost, so it is repeated; meanwhile the snapshot was claimed again
  const auto second = stage.claim(worker);
  const auto answers = stage.finish_all(worker, {stage.released(first), stage.sealed(second), stage.released(first)});
  CHECK(answers_of(answers) == std::vector<What>{What::released, What::sealed, What::released});
  CHECK(stage.status(second.lease) == "sealed");
}

TEST_CASE("the first of many that is too much for its crawl stops it, and what was before it is kept") {
  Stage stage;
  store::NewCrawl small;
  small["max_bytes"] = 250;
  const auto crawl = stage.start(stage.seeds(1, 6), small);
  const auto worker = stage.worker();
  const auto claims = stage.claim_many(worker, 4);
  REQUIRE(claims.size() == 4);
  auto pages = sealed(claims);
  for (auto& page : pages)
    page.bytes = 100;
  const auto answers = stage.finish_all(worker, pages);
  CHECK(answers_of(answers) == std::vector<What>{What::sealed, What::sealed, What::cancelled, What::cancelled});
  CHECK(stage.value("select status || ' ' || outcome || ' ' || stop_reason || ' ' || bytes from holdfast.crawl") ==
        "sealed succeeded max_bytes 200");
  CHECK(stage.value(
            "select count(*) from holdfast.snapshot_sealed where outcome = 'cancelled' and directory is null") == "4");
  CHECK(stage.value("select failed || ' ' || cancelled from holdfast.v_crawl") == "0 4");
  CHECK(answers_of(stage.finish_all(worker, pages)) == answers_of(answers));
  CHECK(store::crawl(stage.connection, crawl).open == 0);
}

TEST_CASE("a page whose hooks left more than max_snapshot_bytes is cancelled, and its crawl goes on") {
  Stage stage;
  store::NewCrawl small;
  small["max_snapshot_bytes"] = 100;
  stage.start(stage.seeds(1, 2), small);
  const auto worker = stage.worker();
  auto pages = sealed(stage.claim_many(worker, 2));
  for (auto& page : pages)
    page.results = {stage.result("wget", "one"), stage.result("dom", "two")};
  pages[0].results[0].bytes = pages[0].results[1].bytes = 51;
  pages[1].results[0].bytes = pages[1].results[1].bytes = 50;
  CHECK(answers_of(stage.finish_all(worker, pages)) == std::vector<What>{What::cancelled, What::sealed});
  CHECK(stage.value("select reason like '%max_snapshot_bytes%' from holdfast.snapshot_sealed where outcome = "
                    "'cancelled'") == "t");
  CHECK(stage.value("select status || ' ' || outcome from holdfast.crawl") == "sealed partial");
}

TEST_CASE("of the same URL in two crawls that overwrite, sealed together, one takes the other's place, not both") {
  Stage stage;
  store::NewCrawl again;
  again["overwrite"] = true;
  stage.start(stage.seeds(1, 1), again);
  stage.start(stage.seeds(1, 1), again);
  const auto worker = stage.worker();
  const auto claims = stage.claim_many(worker, 2);
  REQUIRE(claims.size() == 2);
  stage.finish_all(worker, sealed(claims));
  CHECK(stage.value("select count(*) from holdfast.superseded") == "1");
}
