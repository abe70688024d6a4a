// Adding crawls, claiming them, turning seeds into snapshots.
#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "lib/store/persona.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("a crawl that is added is queued, due, and keeps everything it was given") {
  Stage stage;
  store::NewCrawl crawl;
  crawl["label"] = "a \"label\"";
  crawl["notes"] = "notes with \\ and \n and \xC3\xA9";
  store::persona_set(stage.connection, "Work", nlohmann::json::object(), "ann");
  crawl["persona"] = "Work";
  crawl["created_by"] = "alice";
  crawl["tags"] = {"one", "t,w{o}", ""};
  crawl["plugins"] = {"title", "wget"};
  crawl["options"] = {{"WGET_TIMEOUT", "30"}, {"JSON", "{\"a\": 1}"}};
  crawl["max_depth"] = 2;
  crawl["max_urls"] = 100;
  crawl["priority"] = -3;
  auto first = stage.seed("1");
  first.title = "Title";
  first.tags = {"seed"};
  const auto id = stage.add({first, stage.seed("2")}, crawl);
  const auto row = stage.row("select * from holdfast.crawl where id = $1::uuid", pg::Params::of(id));
  CHECK(row.text("label") == "a \"label\"");
  CHECK(row.text("notes") == crawl["notes"].get<std::string>());
  CHECK(row.text("persona") == "Work");
  CHECK(row.text("created_by") == "alice");
  CHECK(row["tags"].as<std::vector<std::string>>() == std::vector<std::string>{"one", "t,w{o}"}); // in one order
  CHECK(nlohmann::json(row["plugins"].as<std::vector<std::string>>()) == crawl["plugins"]);
  CHECK(row.integer("priority") == -3);
  CHECK(row.text("status") == "queued");
  CHECK(row.text("first_url") == first.url);
  CHECK(row.integer("seeds_total") == 2);
  CHECK(row.integer("seeds_left") == 2);

  const auto worker = stage.worker();
  const auto lease = store::crawl_claim(stage.connection, worker, 1min);
  REQUIRE(lease);
  CHECK(lease->fence == 1);
  CHECK(lease->seeds_left == 2);
  store::crawl_expand(stage.connection, worker, *lease, 10);
  const auto claim = stage.claim(worker);
  CHECK(claim.url == first.url);
  CHECK(claim.title == "Title");
  CHECK(claim.tags == std::vector<std::string>{"one", "seed", "t,w{o}"});
  CHECK(nlohmann::json(claim.plugins) == crawl["plugins"]);
  CHECK(nlohmann::json(claim.options) == crawl["options"]);
  CHECK(claim.persona == "Work");
  CHECK(claim.depth == 0);
  CHECK(claim.max_depth == 2);
}

TEST_CASE("adding with the same id again changes nothing") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.id = base::new_uuid();
  CHECK(store::crawl_add(stage.connection, crawl, stage.seeds(1, 3)));
  crawl["label"] = "other";
  CHECK_FALSE(store::crawl_add(stage.connection, crawl, stage.seeds(1, 5)));
  const auto progress = store::crawl(stage.connection, crawl.id);
  CHECK(progress.label == "");
  CHECK(progress.seeds_left == 3);
}

TEST_CASE("a crawl whose seeds cannot be stored is not there at all") {
  Stage stage;
  store::NewCrawl crawl;
  crawl.id = base::new_uuid();
  SUBCASE("it goes too deep") { crawl["max_depth"] = 17; }
  SUBCASE("it would both skip and replace what is there") { crawl["overwrite"] = crawl["only_new"] = true; }
  SUBCASE("its scope has a list that is not known") { crawl["scope"] = {{"sites", {"a"}}}; }
  CHECK(refusal([&] { store::crawl_add(stage.connection, crawl, stage.seeds(1, 3)); }) == pg::kRefused);
  CHECK(stage.value("select count(*) from holdfast.crawl") == "0");
}

TEST_CASE("a key that no crawl has is refused, and the message names those that there are") {
  Stage stage;
  try {
    stage.run("select holdfast.crawl_add(holdfast.new_uuid(), '{\"label\": \"x\", \"max_deph\": 1}')");
    FAIL_CHECK("accepted");
  } catch (const pg::DatabaseError& error) {
    CHECK(error.sqlstate() == pg::kRefused);
    CHECK(std::string(error.what()).find("a crawl has no \"max_deph\"") == 0);
    CHECK(error.hint().find("max_depth") != std::string::npos);
  }
  CHECK(refusal([&] { stage.run("select holdfast.crawl_add(holdfast.new_uuid(), '{\"max_depth\": \"deep\"}')"); }) ==
        pg::kRefused);
  CHECK(stage.value("select count(*) from holdfast.crawl") == "0");
}

TEST_CASE("a crawl and a schedule cannot choose the binaries that workers start") {
  Stage stage;
  for (const char* name : {"CHROME_BINARY", "CHROME_ARGS", "CHROME_ARGS_EXTRA", "CHROME_SANDBOX", "NODE_MODULES_DIR",
                           "COOKIES_FILE", "NODE_PATH", "BASH_FUNC_x%%", "path", ""}) {
    CAPTURE(name);
    const auto crawl = "'{\"options\": {\"" + std::string(name) + "\": \"/bin/id\"}}')";
    for (const auto& call : {"crawl_add(holdfast.new_uuid(), " + crawl,
                             "schedule_add(holdfast.new_uuid(), '', 'daily', 'UTC', '{https://a.test/}', " + crawl}) {
      try {
        stage.run("select holdfast." + call);
        FAIL_CHECK("accepted");
      } catch (const pg::DatabaseError& error) {
        CHECK(error.sqlstate() == pg::kRefused);
        CHECK(std::string(error.what()).find("a crawl cannot set the option \"" + std::string(name) + "\"") == 0);
      }
    }
  }
  stage.run("select holdfast.crawl_add(holdfast.new_uuid(), '{\"options\":{\"CHROME_TIMEOUT\":\"9\"}}')");
  CHECK(stage.value("select count(*) from holdfast.crawl") == "1");
}

TEST_CASE("a seed that is no canonical URL of a web page is refused with one line that names it") {
  Stage stage;
  for (const std::string url : {"file:///etc/passwd", "ftp://site.test/", "https://Site.test/", "https://site.test",
                                "https://user:secret@site.test/", "site.test", "javascript:alert(1)"}) {
    CAPTURE(url);
    store::NewCrawl crawl;
    crawl.id = base::new_uuid();
    try {
      store::crawl_add(stage.connection, crawl, {stage.seed("1"), {url, "", {}}});
      FAIL_CHECK("accepted");
    } catch (const pg::DatabaseError& error) {
      CHECK(error.sqlstate() == pg::kRefused);
      CHECK(std::string(error.what()) == "not a URL that can be archived: " + url);
    }
  }
  // However long it is, and whatever is in it.
  store::NewCrawl crawl;
  crawl.id = base::new_uuid();
  try {
    store::crawl_add(stage.connection, crawl, {{"x\n" + std::string(5000, 'y'), "", {}}});
    FAIL_CHECK("accepted");
  } catch (const pg::DatabaseError& error) {
    const std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    CHECK(what.size() < 300);
  }
  CHECK(stage.value("select count(*) from holdfast.crawl") == "0");
}

TEST_CASE("the host of a page is that of its URL") {
  Stage stage;
  stage.start({{"https://one.test/", "", {}}, {"http://two.test:8080/x", "", {}}, {"https://[2001:db8::1]/", "", {}}});
  CHECK(stage.value("select string_agg(q.host || ' ' || s.host, ', ' order by q.retry_at) from holdfast.snapshot_queue "
                    "q join holdfast.snapshot s on s.id = q.snapshot_id") ==
        "one.test one.test, two.test two.test, 2001:db8::1 2001:db8::1");
}

TEST_CASE("twelve thousand seeds arrive in batches, in the order given, and are expanded in that order") {
  Stage stage;
  const auto id = stage.add(stage.seeds(1, 12000));
  CHECK(stage.value("select count(*) || ' ' || max(position) from holdfast.crawl_seed") == "12000 12000");
  CHECK(stage.value("select bool_and(url = 'https://site.test/' || position) from holdfast.crawl_seed") == "t");
  const auto worker = stage.worker();
  const auto lease = store::crawl_claim(stage.connection, worker, 1min);
  REQUIRE(lease);
  int batches = 0;
  store::Expansion expansion;
  do {
    expansion = store::crawl_expand(stage.connection, worker, *lease, 5000);
    CHECK(expansion.status == "started");
    ++batches;
  } while (expansion.seeds_left > 0 && batches < 10);
  CHECK(batches == 3);
  CHECK(expansion.inserted == 2000);
  CHECK(store::crawl(stage.connection, id).total == 12000);
  // They fall due in the order in which they were given.
  CHECK(stage.value(
            "select bool_and(n = 'https://site.test/' || position) from (select url as n, row_number() over (order by "
            "q.retry_at) as position from holdfast.snapshot s join holdfast.snapshot_queue q on q.snapshot_id = "
            "s.id) o") == "t");
  CHECK(stage.value("select count(distinct retry_at) from holdfast.snapshot_queue") == "12000");
}

TEST_CASE("a started crawl takes no more seeds") {
  Stage stage;
  const auto id = stage.start(stage.seeds(1, 2));
  const auto add = [&] {
    stage.run("select holdfast.crawl_add_seeds($1::uuid, '{https://site.test/x}', '{}', null)", pg::Params::of(id));
  };
  CHECK(refusal(add) == pg::kRefused);
  CHECK(store::crawl(stage.connection, id).total == 2);
}

TEST_CASE("a crawl is claimed for 100 ms to an hour") {
  Stage stage;
  stage.add(stage.seeds(1, 1));
  const auto worker = stage.worker();
  for (const auto lease : {std::chrono::milliseconds(0), std::chrono::milliseconds(-1), std::chrono::milliseconds(99),
                           std::chrono::milliseconds(1h) + 1ms})
    CHECK(refusal([&] { store::crawl_claim(stage.connection, worker, lease); }) == pg::kRefused);
  CHECK(store::crawl_claim(stage.connection, worker, 1h));
}

TEST_CASE("a crawl is not claimed by a worker that drains, that is late, or that has lapsed") {
  Stage stage;
  stage.add(stage.seeds(1, 1));
  const auto draining = stage.worker(), late = stage.worker();
  stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(draining));
  CHECK_FALSE(store::crawl_claim(stage.connection, draining, 1min));
  stage.expire(late);
  CHECK(refusal([&] { store::crawl_claim(stage.connection, late, 1min); }) == pg::kLeaseLapsed);
  store::call(stage.connection, "lapse_process");
  CHECK(refusal([&] { store::crawl_claim(stage.connection, late, 1min); }) == pg::kLeaseLapsed);
  CHECK(stage.value("select count(owner_id) from holdfast.crawl") == "0");
}

TEST_CASE("a crawl without seeds is sealed as empty") {
  Stage stage;
  const auto id = stage.add({});
  const auto worker = stage.worker();
  const auto lease = *store::crawl_claim(stage.connection, worker, 1min);
  const auto expansion = store::crawl_expand(stage.connection, worker, lease, 10);
  CHECK(expansion.status == "sealed");
  CHECK(expansion.inserted == 0);
  const auto progress = store::crawl(stage.connection, id);
  CHECK(progress.status == "sealed");
  CHECK(progress.outcome == "empty");
  CHECK(stage.value("select count(*) from holdfast.event where event = 'seal'") == "1");
}

TEST_CASE("progress of a crawl that does not exist is a refusal for people") {
  Stage stage;
  CHECK_THROWS_WITH_AS(store::crawl(stage.connection, "00000000-0000-7000-8000-000000000000"),
                       "there is no crawl 00000000-0000-7000-8000-000000000000", base::Error);
}
