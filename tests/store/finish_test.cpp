// How the work on one snapshot ends: sealed or released, by whom, and what becomes of its crawl and its links. Several
// at once: turn_test.cpp.
#include "lib/store/live.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace holdfast;
using namespace holdfast::test;

using What = store::PageAnswer::What;

// Released
// ---------------------------------------------------------------------------------------------------------------

TEST_CASE("what is released says why, is due when asked, and counts the attempt or not") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  CHECK(stage.release(worker, stage.claim(worker), 0ms, "").what == What::released);
  const auto claim = stage.claim(worker);
  CHECK(claim.attempts == 2);
  auto page = stage.released(claim, 10min, "stopping");
  page.ending = "interrupted";
  page.spend = false;
  CHECK(stage.finish(worker, page).what == What::released);
  const auto row = stage.row("select *, retry_at > clock_timestamp() + interval '9 minutes' as later from "
                             "holdfast.v_snapshot");
  CHECK(row.text("status") == "queued");
  CHECK(row.text("reason") == "stopping");
  CHECK(row.integer("attempts") == 1);
  CHECK(row.integer("lapses") == 0);
  CHECK(row.boolean("later"));
  CHECK(row.is_null("owner_id"));
  CHECK(stage.value("select string_agg(fence || ' ' || ending, ', ' order by fence) from holdfast.v_attempt") ==
        "1 released, 2 interrupted");
  CHECK(stage.value("select count(*) from holdfast.event where event = 'release'") == "2");
}

TEST_CASE("a page that fails is tried again later each time, and sealed as failed when its attempts are used up") {
  Stage stage;
  const auto crawl = stage.start({stage.seed("1")});
  stage.run("update holdfast.collection set max_attempts = 4, retry_base = '10 seconds', retry_max = '50 seconds'");
  const auto worker = stage.worker();
  // retry_base * 2 ^ attempts, at most retry_max; a quarter more or less.
  for (const auto& [low, high] : std::vector<std::pair<int, int>>{{15, 25}, {30, 50}, {37, 63}}) {
    CAPTURE(low);
    CHECK(stage.release(worker, stage.claim(worker), std::nullopt, "no route").what == What::released);
    const auto delay =
        std::stod(stage.value("select extract(epoch from retry_at - clock_timestamp()) from holdfast.snapshot_queue"));
    CHECK(delay > low - 1);
    CHECK(delay <= high);
    CHECK(stage.claim_many(worker, 1).empty());
    stage.pass("1 day");
  }
  const auto last = stage.claim(worker);
  CHECK(last.attempts == 4);
  auto page = stage.released(last, std::nullopt, "no route");
  page.results = {stage.result("wget", "hook", "failed")};
  const auto answer = stage.finish(worker, page);
  CHECK(answer.what == What::failed);
  CHECK(answer.crawl_sealed);
  CHECK(stage.finish(worker, page).what == What::failed); // a lost answer
  const auto row = stage.row("select * from holdfast.v_snapshot");
  CHECK(row.text("outcome") == "failed");
  CHECK(row.text("reason") == "no route");
  CHECK(row.integer("attempts") == 4);
  CHECK(row.is_null("directory"));
  CHECK(store::crawl(stage.connection, crawl).outcome == "failed");
  CHECK(stage.value("select count(*) from holdfast.archive_result where fence = 4") == "1");
}

TEST_CASE("a page released for worker errors keeps its attempts, waits longer each time, and fails in the end") {
  Stage stage;
  stage.start({stage.seed("1")});
  stage.run("update holdfast.collection set max_attempts = 1, max_worker_errors = 4, retry_max = '50 seconds'");
  const auto worker = stage.worker();
  const auto worker_error = [&] {
    auto page = stage.released(stage.claim(worker), 15s, "no space left");
    page.ending = "worker_error";
    page.spend = false;
    return stage.finish(worker, page).what;
  };
  for (const int seconds : {15, 30, 50}) {
    CHECK(worker_error() == What::released);
    CHECK(stage.value("select attempts from holdfast.snapshot_queue") == "0");
    const auto delay =
        std::stod(stage.value("select extract(epoch from retry_at - clock_timestamp()) from holdfast.snapshot_queue"));
    CHECK(delay > seconds - 10);
    CHECK(delay <= seconds);
    stage.pass("1 day");
  }
  CHECK(worker_error() == What::failed);
  CHECK(stage.value("select reason from holdfast.v_snapshot where outcome = 'failed'") ==
        "released 4 times because of worker errors; the last: no space left");
}

// Sealed
// -----------------------------------------------------------------------------------------------------------------

TEST_CASE("sealing writes everything once, and the crawl ends with its last snapshot") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker("the worker");
  const auto claim = stage.claim(worker), last = stage.claim(worker);
  auto page = stage.sealed(claim);
  page.title = "Title";
  page.tags = {"b", "a", "b"};
  page.results = {stage.result("wget", "on_Snapshot__1_wget")};
  const auto answer = stage.finish(worker, page);
  CHECK(answer.what == What::sealed);
  CHECK_FALSE(answer.crawl_sealed);
  const auto row =
      stage.row("select * from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(claim.lease.snapshot_id));
  CHECK(row.text("status") == "sealed");
  CHECK(row.text("outcome") == "succeeded");
  CHECK(row.text("title") == "Title");
  CHECK(row["tags"].as<std::vector<std::string>>() == std::vector<std::string>{"a", "b"});
  CHECK(row.text("directory") == page.directory);
  CHECK(row.text("manifest_sha256") == "digest");
  CHECK(row.integer("bytes") == 1000);
  CHECK(row.integer("files") == 3);
  CHECK(row.integer("fence") == 1);
  CHECK(row.text("owner") == "the worker");
  CHECK(row.is_null("retry_at"));
  CHECK_FALSE(row.is_null("started_at"));
  CHECK(store::crawl(stage.connection, crawl).status == "started");

  CHECK(stage.finish(worker, stage.sealed(last, "partial")).crawl_sealed);
  const auto progress = store::crawl(stage.connection, crawl);
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
  const auto worker = stage.worker();
  for (const auto& [outcomes, expected] : cases) {
    CAPTURE(expected);
    const auto crawl = stage.start(stage.seeds(1, static_cast<int>(outcomes.size())));
    for (const auto& outcome : outcomes)
      stage.finish(worker, stage.sealed(stage.claim(worker), outcome));
    CHECK(store::crawl(stage.connection, crawl).outcome == expected);
  }
}

TEST_CASE("a page of an older fence, of another worker, or of nothing changes nothing and is answered with lost") {
  Stage stage;
  store::NewCrawl crawl;
  crawl["max_depth"] = 1;
  const auto id = stage.start({stage.seed("1")}, crawl);
  const auto worker = stage.worker(), other = stage.worker();
  const auto old = stage.claim(worker);
  const auto attempt = [&](const std::string& who, const store::Claim& claim) {
    return stage.seal(who, claim, {stage.seed("2")}).what;
  };
  CHECK(attempt(other, old) == What::lost);
  stage.release(worker, old);
  CHECK(attempt(worker, old) == What::lost);
  const auto current = stage.claim(worker);
  CHECK(attempt(worker, old) == What::lost);
  auto ahead = current;
  ahead.lease.fence = 3;
  CHECK(attempt(worker, ahead) == What::lost);
  auto elsewhere = current;
  elsewhere.lease.crawl_id = "00000000-0000-7000-8000-000000000000";
  CHECK(attempt(worker, elsewhere) == What::lost);
  const auto progress = store::crawl(stage.connection, id);
  CHECK(progress.total == 1);
  CHECK(progress.open == 1);
  CHECK(stage.status(current.lease) == "started");
  CHECK(attempt(worker, current) == What::sealed);
  CHECK(attempt(other, current) == What::lost);
}

TEST_CASE("the directory of another snapshot, of another attempt, or outside the archive is refused") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker();
  const auto claim = stage.claim(worker), other = stage.claim(worker);
  const auto& id = claim.lease.snapshot_id;
  for (const auto& directory :
       {stage.sealed(other).directory, "2026/01/site.test/" + id + "/a2", "../../01/site.test/" + id + "/a1",
        "2026/01/../" + id + "/a1", "/srv/2026/01/site.test/" + id + "/a1", std::string("d")}) {
    CAPTURE(directory);
    auto page = stage.sealed(claim);
    page.directory = directory;
    CHECK(refusal([&] { stage.finish(worker, page); }) == "23514");
  }
  CHECK(stage.seal(worker, claim).what == What::sealed);
}

TEST_CASE("a worker can end a page only in a way that is a worker's") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  const auto claim = stage.claim(worker);
  const auto finish = [&](const std::string& ending, const std::string& outcome) {
    auto page = stage.sealed(claim, outcome);
    page.ending = ending;
    return refusal([&] { stage.finish(worker, page); });
  };
  for (const auto& [ending, outcome] :
       std::vector<std::pair<std::string, std::string>>{{"sealed", "cancelled"},   // a command or a limit does this
                                                        {"sealed", "quarantined"}, // as the loss of workers does
                                                        {"sealed", "nonsense"},
                                                        {"sealed", ""},
                                                        {"lapsed", ""}, // this is said of a worker, not by it
                                                        {"cancelled", ""},
                                                        {"nonsense", ""}}) {
    CAPTURE(ending);
    CAPTURE(outcome);
    CHECK(finish(ending, outcome) == pg::kBrokenInvariant);
  }
  CHECK(stage.status(claim.lease) == "started");
  CHECK(stage.value("select lapses from holdfast.snapshot_queue") == "0");
  CHECK(finish("declined", "") == "");
}

// Links
// ------------------------------------------------------------------------------------------------------------------

TEST_CASE("links become snapshots one level deeper, in order, each once, and no deeper than the crawl goes") {
  Stage stage;
  store::NewCrawl crawl;
  crawl["max_depth"] = 1;
  const auto id = stage.start({stage.seed("1")}, crawl);
  const auto worker = stage.worker();
  const auto claim = stage.claim(worker);
  auto titled = stage.seed("3");
  titled.title = "Three";
  CHECK(stage.seal(worker, claim, {stage.seed("2"), titled, stage.seed("1"), stage.seed("2"), stage.seed("4")})
            .children == 3);
  const auto row = stage.row("select * from holdfast.v_snapshot where url like '%/3'");
  CHECK(row.integer("depth") == 1);
  CHECK(row.text("parent_id") == claim.lease.snapshot_id);
  CHECK(row.text("title") == "Three");
  CHECK(row.text("host") == "site.test");
  for (const char* name : {"2", "3", "4"}) {
    const auto child = stage.claim(worker);
    CHECK(child.url == stage.seed(name).url);
    CHECK(child.depth == 1);
    CHECK(stage.seal(worker, child, {stage.seed("deeper")}).children == 0);
  }
  const auto progress = store::crawl(stage.connection, id);
  CHECK(progress.status == "sealed");
  CHECK(progress.total == 4);
  CHECK(progress.stop_reason == "");
}

TEST_CASE("links that are no canonical URLs of web pages are passed over") {
  Stage stage;
  store::NewCrawl crawl;
  crawl["max_depth"] = 1;
  stage.start({stage.seed("1")}, crawl);
  const auto worker = stage.worker();
  const auto claim = stage.claim(worker);
  const auto answer = stage.seal(worker, claim,
                                 {{"file:///etc/passwd", "", {}},
                                  {"https://user:secret@site.test/", "", {}},
                                  {"HTTPS://SITE.TEST/", "", {}},
                                  {"https://site.test", "", {}},
                                  stage.seed("2")});
  CHECK(answer.children == 1);
  CHECK(stage.claim_many(worker, 9).at(0).url == stage.seed("2").url);
}

TEST_CASE("URLs longer than an index entry, and any text in them, are told apart") {
  Stage stage;
  const std::string path(20000, 'x');
  stage.start(
      {stage.seed(path + "1"), stage.seed(path + "2"), stage.seed("\xC3\xA9 \"'\\{},%"), stage.seed(path + "1")});
  std::set<std::string> urls;
  for (const auto& claim : stage.claim_many(stage.worker(), 5))
    urls.insert(claim.url);
  CHECK(urls.size() == 3);
  CHECK(urls.count(stage.seed("\xC3\xA9 \"'\\{},%").url) == 1);
}
