// Partitioned tables: what was there stays as it was, what comes finds its month, a month goes at once.
#include "lib/store/schema.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

pg::MigrationReport partition(Stage& stage) { return store::migrator().migrate(stage.connection, {.partition = true}); }

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

TEST_CASE("tables are partitioned once, with all that was in them, and work goes on") {
  Stage stage;
  if (stage.value("select holdfast.is_partitioned()") == "t") return; // this run has it from the beginning
  const auto worker = stage.worker();
  stage.start(Stage::seeds(1, 3));
  stage.seal(worker, stage.claim(worker));
  const auto open = stage.claim(worker);
  const auto before = stage.value("select jsonb_agg(v order by v.id)::text from holdfast.v_snapshot v");
  const auto indexes = stage.value("select string_agg(relname, ' ' order by relname) from pg_class "
                                   "where relnamespace = 'holdfast'::regnamespace and relkind = 'i'");

  CHECK(partition(stage).partitioned);
  CHECK_FALSE(partition(stage).partitioned);

  CHECK(stage.value("select jsonb_agg(v order by v.id)::text from holdfast.v_snapshot v") == before);
  CHECK(stage.value("select count(distinct name) from holdfast.v_partition where table_name = 'snapshot'") == "5");
  // No constraint, index or trigger was lost on the way.
  CHECK(stage.value("select string_agg(relname, ' ' order by relname) from pg_class "
                    "where relnamespace = 'holdfast'::regnamespace and relname = any (string_to_array($1, ' '))",
                    pg::Params::of(indexes)) == indexes);
  CHECK(refusal([&] { stage.run("delete from holdfast.snapshot_sealed"); }) == pg::kBrokenInvariant);
  CHECK(refusal([&] { stage.run("delete from holdfast.snapshot_sealed_first"); }) == pg::kBrokenInvariant);
  CHECK(refusal([&] { stage.run("truncate holdfast.archive_result"); }) == pg::kBrokenInvariant);

  stage.seal(worker, open);
  stage.seal(worker, stage.claim(worker));
  CHECK(stage.value("select count(*) from holdfast.v_snapshot where status = 'sealed'") == "3");
}

TEST_CASE("the crawls of a month are in its partition, and ids of no month are kept as well") {
  Stage stage;
  partition(stage);
  const auto worker = stage.worker();
  sealed_crawl(stage, worker, stage.value("select holdfast.new_uuid()"), "now");
  sealed_crawl(stage, worker, id_in(stage, 1), "next");
  sealed_crawl(stage, worker, id_in(stage, 40), "later");
  CHECK(stage.value("select count(*) from holdfast.snapshot_sealed_first") == "1");
  CHECK(stage.value("select count(*) from holdfast.snapshot_sealed_other") == "1");
  CHECK(stage.value("select count(*) from holdfast.snapshot_sealed") == "3");
  CHECK(stage.value("select count(*) from holdfast.v_snapshot where status = 'sealed'") == "3");
}

TEST_CASE("partitions are made ahead of time, but for a month whose crawls are elsewhere already") {
  Stage stage;
  partition(stage);
  CHECK(stage.value("select holdfast.partitions_ahead()") == "0");
  stage.run(
      "select holdfast.partition_remove((holdfast.month_of(clock_timestamp(), 3) at time zone 'UTC')::date, 'ann')");
  const auto early = id_in(stage, 3); // a month that has no partition
  sealed_crawl(stage, stage.worker(), early, "early");
  CHECK(stage.value("select holdfast.partitions_ahead()") == "0");
  CHECK(stage.value("select count(*) from holdfast.snapshot_other") == "1");
  stage.run("select holdfast.crawl_remove($1::uuid, 'test')", pg::Params::of(early));
  CHECK(stage.value("select holdfast.partitions_ahead()") == "6");
}

TEST_CASE("the crawls of a month are removed at once, if none of them is open or kept") {
  Stage stage;
  partition(stage);
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
  CHECK(stage.value("select directory from holdfast.purge") == directory);
  CHECK(stage.value("select count(*) from holdfast.v_control where action = 'remove'") == "1");
  CHECK(refusal([&] { remove(); }) == pg::kRefused); // there is no such partition any more
}

TEST_CASE("a crawl whose id lies in a later month is named, and nothing is changed") {
  Stage stage;
  if (stage.value("select holdfast.is_partitioned()") == "t") return;
  const auto crawl = sealed_crawl(stage, stage.worker(), id_in(stage, 2), "early");
  try {
    partition(stage);
    FAIL("it was partitioned");
  } catch (const pg::DatabaseError& error) {
    CHECK(error.sqlstate() == pg::kRefused);
    CHECK(std::string(error.what()).find(crawl) != std::string::npos);
  }
  CHECK(stage.value("select holdfast.is_partitioned()") == "f");
}
