// Many snapshots: depth, limits, once each; several crawls, several workers.

#include "tests/worker/stage.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kPage = "echo \"$url\" >page.txt\n";

// Each page links to three below it, back to the first one in another spelling, and to what is no page.
constexpr const char* kTree =
    "for n in 1 2 3; do echo \"{\\\"type\\\":\\\"Snapshot\\\",\\\"url\\\":\\\"$url/$n\\\"}\"; done\n"
    "for link in HTTPS://SITE.test:443/x/../0#top javascript:alert\\(1\\) nonsense; do\n"
    "  echo \"{\\\"type\\\":\\\"Snapshot\\\",\\\"url\\\":\\\"$link\\\"}\"\n"
    "done\n";

constexpr const char* kOnce =
    "select count(*) from holdfast.v_snapshot where status = 'sealed' and fence = 1 and attempts = 1";

} // namespace

TEST_CASE("a crawl of depth 2 takes every page once and seals itself") {
  WorkerStage stage;
  stage.hook("page", "on_Snapshot__10_page.sh", std::string(kPage) + kTree);
  store::NewCrawl crawl;
  crawl["max_depth"] = 2;
  const std::string id = stage.add({WorkerStage::url("0")}, crawl);
  stage.work();
  CHECK(stage.table("select depth, count(*), count(distinct url) from holdfast.v_snapshot group by 1 order by 1") ==
        "0|1|1\n1|3|3\n2|9|9");
  CHECK(stage.number(kOnce) == 13);
  CHECK(stage.table("select status, outcome, total, open, succeeded, stop_reason from holdfast.v_crawl") ==
        "sealed|succeeded|13|0|13|");
  CHECK(stage.number("select count(*) from holdfast.snapshot s join holdfast.snapshot p on p.id = s.parent_id "
                     "where s.depth = p.depth + 1 and s.url like p.url || '/_'") == 12);
  CHECK(stage.attempts_on_disk().size() == 13);
  stage.check_disk_and_rows();
  const std::string page = read_file(stage.archive() / "crawls" / id / "index.html");
  for (const auto& directory : stage.attempts_on_disk())
    CHECK(page.find(directory + "/index.html") != std::string::npos);
}

TEST_CASE("links into one's own network are not followed") {
  WorkerStage stage;
  stage.options.allow_private = false;
  stage.hook(
      "page", "on_Snapshot__10_page.sh",
      kPage + WorkerStage::discover({"http://127.0.0.1/", "http://10.0.0.1/x", "http://[::1]/", "http://localhost/"}));
  store::NewCrawl crawl;
  crawl["max_depth"] = 1;
  stage.add({"http://8.8.8.8/"}, crawl); // a number: no name server is asked, and no hook goes there
  stage.work();
  CHECK(stage.table("select url, outcome from holdfast.v_snapshot") == "http://8.8.8.8/|succeeded");
}

TEST_CASE("several crawls share the slots, and never more run than there are") {
  WorkerStage stage;
  stage.options.slots = 3;
  stage.hook("page", "on_Snapshot__10_page.sh", std::string(kPage) + "gate \"${url##*/}\"");
  for (int c = 0; c < 3; ++c) {
    std::vector<std::string> urls;
    for (int i = 0; i < 5; ++i)
      urls.push_back(WorkerStage::url(std::to_string(c) + "-" + std::to_string(i)));
    stage.add(urls);
  }
  auto& worker = stage.start();
  const auto waiting = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(stage.dir / "gates"))
      if (entry.path().extension() == ".here" && !std::filesystem::exists(stage.dir / "gates" / entry.path().stem()))
        names.insert(entry.path().stem());
    return names;
  };
  std::size_t done = 0;
  while (done < 15) {
    const std::size_t expected = std::min<std::size_t>(3, 15 - done);
    stage.until("the slots are full", [&] { return waiting().size() == expected; });
    CHECK(stage.number("select count(*) from holdfast.snapshot_queue where owner_id is not null") <= 3);
    CHECK(worker.worker->running() <= 3);
    stage.open(*waiting().begin());
    ++done;
  }
  stage.until_sealed();
  stage.leave(worker);
  CHECK(stage.number(kOnce) == 15);
  CHECK(stage.number("select count(*) from holdfast.v_crawl where outcome = 'succeeded' and total = 5") == 3);
  stage.check_disk_and_rows();
}

TEST_CASE("two workers share a crawl, and nothing is done twice") {
  WorkerStage stage;
  stage.options.slots = 2;
  stage.hook("page", "on_Snapshot__10_page.sh",
             std::string(kPage) + kTree + "[[ -e $gates/open ]] || gate \"${url##*/}\"");
  store::NewCrawl crawl;
  crawl["max_depth"] = 2;
  stage.add({WorkerStage::url("0"), WorkerStage::url("x"), WorkerStage::url("y"), WorkerStage::url("z")}, crawl);
  auto& one = stage.start();
  auto& two = stage.start();
  stage.until("both workers hold two", [&] {
    return stage.table("select count(*) from holdfast.snapshot_queue where owner_id is not null group by owner_id") ==
           "2\n2";
  });
  for (const char* name : {"open", "0", "x", "y", "z"})
    stage.open(name);
  stage.until_sealed();
  stage.leave(one);
  stage.leave(two);
  CHECK(stage.number("select count(*) from holdfast.v_snapshot") == 4 * 13);
  CHECK(stage.number(kOnce) == 4 * 13);
  CHECK(stage.number("select count(distinct owner_id) from holdfast.v_snapshot") == 2);
  CHECK(stage.number("select count(*) from holdfast.archive_result") == 4 * 13);
  stage.check_disk_and_rows();
}

TEST_CASE("an idle worker takes what is added when it is notified, or at its next poll") {
  WorkerStage stage;
  stage.options.lease = 1h; // a worker looks again when the next lease ends
  stage.hook("page", "on_Snapshot__10_page.sh", kPage);
  const auto idle = [&](WorkerStage::Running& worker) {
    stage.until("it has nothing to do", [&, from = stage.value("select now()")] {
      return stage.number("select count(*) from holdfast.process where id = $1::uuid and heartbeat_at > "
                          "$2::timestamptz + interval '300 ms'",
                          pg::Params::of(worker.id, from)) == 1;
    });
  };
  SUBCASE("by a notification") {
    stage.options.poll = 1h;
    auto& worker = stage.start();
    for (int i = 0; i < 3; ++i) {
      idle(worker);
      stage.add({WorkerStage::url(std::to_string(i))});
      stage.until_sealed();
    }
    stage.leave(worker);
    CHECK(stage.number(kOnce) == 3);
  }
  SUBCASE("by a poll") {
    const auto crawl = stage.add({WorkerStage::url("1")});
    stage.run("select holdfast.crawl_pause($1::uuid, 'ann', '')", pg::Params::of(crawl));
    auto& worker = stage.start();
    idle(worker);
    stage.run("update holdfast.crawl set status = 'queued', retry_at = now(), paused_at = null"); // by hand: no notice
    stage.until_sealed();
    stage.leave(worker);
  }
}
