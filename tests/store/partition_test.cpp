// Partitioned tables: what comes finds its month, and a month goes at once.
#include "lib/store/call.hpp"
#include "lib/store/runner.hpp"
#include "lib/store/schema.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// A crawl of this id with one page, added, archived and sealed. The id says when the crawl was made.
std::string sealed_crawl(Stage& stage, const std::string& worker, const std::string& id, const std::string& page) {
  store::NewCrawl crawl;
  crawl.id = id;
  stage.start({Stage::seed(page)}, crawl);
  stage.seal(worker, stage.claim(worker));
  return id;
}

// An id of the month that begins so many months after this one.
std::string id_in(Stage& stage, int months) {
  return stage.value("select holdfast.first_id(holdfast.month_of(clock_timestamp(), $1::integer) + interval '9 days')",
                     pg::Params::of(months));
}

} // namespace

TEST_CASE("the crawls of a month are in its partition, and ids of no month are kept as well") {
  Stage stage;
  const auto worker = stage.worker();
  sealed_crawl(stage, worker, id_in(stage, -40), "earlier");
  sealed_crawl(stage, worker, stage.value("select holdfast.new_uuid()"), "now");
  sealed_crawl(stage, worker, id_in(stage, 1), "next");
  sealed_crawl(stage, worker, id_in(stage, 40), "later");
  const auto month = stage.value("select to_char(clock_timestamp() at time zone 'UTC', 'YYYY_MM')");
  for (const auto& partition : {std::string("first"), month, std::string("other")})
    CHECK(stage.value("select count(*) from holdfast.snapshot_sealed_" + partition) == "1");
  CHECK(stage.value("select count(*) from holdfast.v_snapshot where status = 'sealed'") == "4");
}

TEST_CASE("a partition has the constraints, indexes, triggers and compression that those of no month have") {
  Stage stage;
  const auto parts = [&](const std::string& suffix) {
    return stage.value(
        "with part as (select ('holdfast.' || t || $1)::regclass as id "
        "from unnest(holdfast.growing_tables()) t), line as ("
        "select format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) as text "
        "from pg_constraint where conrelid in (select id from part) "
        "union all select pg_get_indexdef(indexrelid) from pg_index where indrelid in (select id from part) "
        "union all select format('%s %s', tgrelid::regclass, tgname) from pg_trigger "
        "where not tgisinternal and tgrelid in (select id from part) "
        "union all select format('%s %s %s', attrelid::regclass, attname, attcompression) "
        "from pg_attribute where attrelid in (select id from part)) "
        "select string_agg(replace(text, $1, ''), E'\\n' order by replace(text, $1, '')) from line",
        pg::Params::of(suffix));
  };
  const auto month = stage.value("select to_char(clock_timestamp() at time zone 'UTC', '_YYYY_MM')");
  CHECK(parts(month) == parts("_other"));
  CHECK(parts("_first") == parts("_other"));
  CHECK(refusal([&] { stage.run("truncate holdfast.archive_result"); }) == pg::kBrokenInvariant);
}

TEST_CASE("a sealed page is not deleted by way of its partition") {
  Stage stage;
  sealed_crawl(stage, stage.worker(), id_in(stage, 40), "later");
  CHECK(refusal([&] { stage.run("delete from holdfast.snapshot_sealed"); }) == pg::kBrokenInvariant);
  CHECK(refusal([&] { stage.run("delete from holdfast.snapshot_sealed_other"); }) == pg::kBrokenInvariant);
}

TEST_CASE("partitions are made ahead of time, but for a month whose crawls are elsewhere already") {
  Stage stage;
  CHECK(stage.value("select holdfast.partitions_ahead()") == "0");
  stage.run(
      "select holdfast.partition_remove((holdfast.month_of(clock_timestamp(), 1) at time zone 'UTC')::date, 'ann')");
  const auto early = id_in(stage, 1); // a month that has no partition
  sealed_crawl(stage, stage.worker(), early, "early");
  CHECK(stage.value("select holdfast.partitions_ahead()") == "0");
  CHECK(stage.value("select count(*) from holdfast.snapshot_other") == "1");
  stage.run("select holdfast.crawl_remove($1::uuid, 'test')", pg::Params::of(early));
  CHECK(stage.value("select holdfast.partitions_ahead()") == "6");
}

TEST_CASE("the crawls of a month are removed at once, if none of them is open or kept") {
  Stage stage;
  const auto worker = stage.worker();
  const auto month = stage.value("select (holdfast.month_of(clock_timestamp(), 1) at time zone 'UTC')::date");
  const auto remove = [&] {
    return stage.value("select holdfast.partition_remove($1::date, 'ann')", pg::Params::of(month));
  };
  const auto other = sealed_crawl(stage, worker, stage.value("select holdfast.new_uuid()"), "stays");
  const auto crawl = sealed_crawl(stage, worker, id_in(stage, 1), "goes");
  stage.run("select holdfast.crawl_keep($1::uuid, '1 day')", pg::Params::of(crawl));
  CHECK(refusal([&] { remove(); }) == pg::kRefused);
  stage.run("select holdfast.crawl_keep($1::uuid, '0')", pg::Params::of(crawl));
  const auto directory = stage.value("select regexp_replace(directory, '/a[0-9]+$', '') from holdfast.v_snapshot "
                                     "where crawl_id = $1::uuid",
                                     pg::Params::of(crawl));

  CHECK(remove() == "1");
  CHECK(stage.value("select string_agg(id::text, ' ') from holdfast.v_crawl") == other);
  CHECK(stage.value("select count(*) from holdfast.v_snapshot") == "1");
  CHECK(store::call_list(stage.connection, "purge_list", 10).empty()); // it only reads
  store::call(stage.connection, "purge_fill");
  CHECK(store::call_list(stage.connection, "purge_list", 10) == std::vector{directory});
  CHECK(stage.value("select count(*) from holdfast.v_control where action = 'remove'") == "1");
  CHECK(refusal([&] { remove(); }) == pg::kRefused); // there is no such partition any more
}

namespace {

// The first day of a month that has three removed pages; `pages`: what claimed them.
struct Removed {
  std::string month;
  std::vector<store::Claim> pages{};
  std::vector<std::string> directories{}; // in the order of their ids
};
Removed remove_month(Stage& stage, const std::string& worker) {
  Removed removed{stage.value("select (holdfast.month_of(clock_timestamp(), 1) at time zone 'UTC')::date")};
  store::NewCrawl crawl;
  crawl.id = id_in(stage, 1);
  stage.start(Stage::seeds(1, 3), crawl);
  for (int i = 0; i < 3; ++i) {
    removed.pages.push_back(stage.claim(worker));
    stage.seal(worker, removed.pages.back());
  }
  const auto rows = stage.connection.call("select regexp_replace(directory, '/a[0-9]+$', '') as d "
                                          "from holdfast.snapshot_sealed order by snapshot_id");
  for (std::size_t i = 0; i < rows.size(); ++i)
    removed.directories.push_back(rows[i].text("d"));
  stage.run("select holdfast.partition_remove($1::date, 'ann')", pg::Params::of(removed.month));
  // Workers wait for its locks, so it leaves the listing to others.
  CHECK(stage.value("select count(*) from holdfast.purge") == "0");
  return removed;
}

// Tables of removed months that are left.
std::string left(Stage& stage) { return stage.value("select count(*) from holdfast.v_partition where holds is null"); }

} // namespace

TEST_CASE("the directories of a removed month are listed in batches, while workers claim and seal") {
  Stage stage;
  const auto worker = stage.worker();
  const auto removed = remove_month(stage, worker);
  CHECK(left(stage) == "2");
  stage.start(Stage::seeds(7, 8));
  pg::Connection other(stage.dsn());
  struct Killed {};
  const auto list = [&](bool dies) {
    other.transaction([&](pg::Transaction& transaction) {
      CHECK(transaction.call("select holdfast.purge_fill(2) as n").one().integer("n") == 2);
      CHECK(stage.seal(worker, stage.claim(worker)).what == store::PageAnswer::What::sealed);
      if (dies) throw Killed{};
    });
  };
  CHECK_THROWS_AS(list(true), Killed);
  CHECK(stage.value("select count(*) from holdfast.purge") == "0");
  list(false);
  CHECK(stage.value("select string_agg(directory, ' ' order by directory) from holdfast.purge") ==
        removed.directories[0] + " " + removed.directories[1]);
  CHECK(stage.value("select holdfast.purge_fill(2)") == "0"); // so many are listed
  store::call(stage.connection, "purge_done", store::call_list(stage.connection, "purge_list", 2));
  CHECK(left(stage) == "2");
  store::call(stage.connection, "purge_fill");
  CHECK(store::call_list(stage.connection, "purge_list", 10) == std::vector{removed.directories[2]});
  CHECK(left(stage) == "2");
  store::call(stage.connection, "purge_done", std::vector{removed.directories[2]});
  store::call(stage.connection, "purge_fill");
  CHECK(store::call_list(stage.connection, "purge_list", 10).empty());
  CHECK(left(stage) == "0");
}

TEST_CASE("a page of a removed month is not adopted while its files wait to be deleted") {
  Stage stage;
  const auto removed = remove_month(stage, stage.worker());
  const auto unknown = [&] {
    return stage.value("select count(*) from holdfast.directories_unknown($1::text[])",
                       pg::Params::of(removed.directories));
  };
  const auto place = [&] {
    const auto& lease = removed.pages[0].lease;
    return stage.value("select holdfast.page_place($1::uuid, $2::uuid, 'https://site.test/1', $3)",
                       pg::Params::of(lease.snapshot_id, lease.crawl_id, removed.directories[0]));
  };
  CHECK(unknown() == "0");
  CHECK(place() == "removed");
  store::call(stage.connection, "purge_fill");
  CHECK(unknown() == "0");
  store::call(stage.connection, "purge_done", removed.directories);
  CHECK(unknown() == "3");
  CHECK(place() == "new");
}

TEST_CASE("a month is not removed while a query reads its pages, and nothing is changed then") {
  Stage stage;
  const auto crawl = sealed_crawl(stage, stage.worker(), id_in(stage, 1), "goes");
  pg::Connection reader(stage.dsn());
  reader.transaction([&](pg::Transaction& transaction) {
    transaction.call("select count(*) from holdfast.v_snapshot");
    CHECK(refusal([&] {
            stage.run("select holdfast.partition_remove((holdfast.month_of(clock_timestamp(), 1) at time zone "
                      "'UTC')::date, 'ann')");
          }) == pg::kRefused);
  });
  CHECK(stage.value("select count(*) from holdfast.v_snapshot where crawl_id = $1::uuid", pg::Params::of(crawl)) ==
        "1");
}
