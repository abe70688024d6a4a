// The shape of the plans on a large queue: index ranges only, whatever the table's size and whatever the statistics
// say. No times are measured; counters of the transaction tell what the statements really read.
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// 24,000 due snapshots in 50 crawls, one of which holds half of them.
void fill(Stage& stage, const std::string& then = "analyze") {
  pg::ConnectionOptions patient; // all of it is one statement to the server, and the machine may be busy
  patient.statement_timeout = std::chrono::minutes(4);
  pg::Connection(stage.dsn(), patient).script(std::string(R"(
    insert into holdfast.crawl (id, status, retry_at, snapshots_total, snapshots_open)
      select ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'started', null, t, t
        from generate_series(1, 50) n, lateral (select case when n = 1 then 12000 else 240 end as t) s;
    insert into holdfast.crawl_queue (crawl_id, ready_at) select id, now() from holdfast.crawl where id::text like 'c0000000-%'
      on conflict (crawl_id) do update set ready_at = excluded.ready_at;
    insert into holdfast.snapshot (id, crawl_id, url, url_hash)
      select holdfast.new_uuid(), c.id, u, sha256(convert_to(u, 'UTF8'))
        from holdfast.crawl c, generate_series(1, c.snapshots_total) n, lateral (select 'https://site.test/' || n as u) s
        where c.id::text like 'c0000000-%';
    insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at)
      select id, crawl_id, host, now() - random() * interval '1 hour' from holdfast.snapshot where crawl_id::text like 'c0000000-%';
    insert into holdfast.crawl_lane (crawl_id, host) select distinct crawl_id, host from holdfast.snapshot_queue
      on conflict (crawl_id, host) do update set next_at = clock_timestamp(), low_at = '-infinity';
    )") + then);
}

// What the transaction has read so far, of the tables of which each row belongs to one snapshot.
struct Reads {
  std::int64_t whole, ranges, tuples; // scans of whole tables, of index ranges; rows
};
Reads reads_of(pg::Transaction& transaction,
               const std::string& tables = "archive_result snapshot snapshot_queue snapshot_sealed attempt") {
  const auto row = transaction.call(
      "select coalesce(sum(seq_scan), 0) as whole, coalesce(sum(idx_scan), 0) as ranges, "
      "coalesce(sum(seq_tup_read + idx_tup_fetch), 0) as tuples from pg_stat_xact_user_tables t join pg_class c on "
      "c.oid = coalesce(pg_partition_root(t.relid), t.relid) where t.schemaname = 'holdfast' and c.relname = any "
      "(string_to_array($1, ' '))",
      pg::Params::of(tables));
  return {row.one().integer("whole"), row.one().integer("ranges"), row.one().integer("tuples")};
}

// Parameters of what a worker says of these claims: worker, snapshots, crawls. Their fence is the first.
pg::Params of_claims(const std::string& worker, const pg::Result& claims) {
  std::vector<std::string> snapshots, crawls;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    snapshots.push_back(claims[i].text("snapshot_id"));
    crawls.push_back(claims[i].text("crawl_id"));
  }
  return pg::Params::of(worker, snapshots, crawls);
}

// worker, room, newest first, from top n, seeds
const std::string kClaim = "select snapshot_id, crawl_id, (claim ->> 'attempts')::integer as attempts from "
                           "holdfast.worker_turn($1::uuid, '[]', $2::integer, '{}', false, $3::boolean, $4::integer, "
                           "$5::integer) where what = 'claimed'";

pg::Result claim(pg::Transaction& transaction, const std::string& worker, int room) {
  return transaction.call(kClaim, pg::Params::of(worker, room, false, 0, 0));
}

// A turn without room, which finishes pages in this way; each has two results and two links.
std::string turn_with(const std::string& ending) {
  return "select * from holdfast.worker_turn($1::uuid, (select jsonb_agg(jsonb_build_object('snapshot', s, 'crawl', c, "
         "'fence', 1, 'results', '[{\"plugin\": \"p\", \"hook\": \"a\", \"status\": \"succeeded\"}, {\"plugin\": "
         "\"p\", \"hook\": \"b\", \"status\": \"skipped\", \"error\": \"e\"}]'::jsonb, 'links', '[{\"url\": "
         "\"https://site.test/a\"}, {\"url\": \"https://site.test/1\"}]'::jsonb) || " +
         ending + ") from unnest($2::uuid[], $3::uuid[]) u(s, c)), 0, '{}', false, false, 0, 0)";
}
const std::string kSeal = turn_with("jsonb_build_object('ending', 'sealed', 'outcome', 'succeeded', 'directory', "
                                    "'2026/01/site.test/' || s || '/a1', 'manifest', 'm', 'bytes', 1, 'files', 1)");
const std::string kRelease = turn_with("jsonb_build_object('ending', 'released', 'spend', true)");
const std::string kHooks = "select holdfast.worker_hooks($1::uuid, (select jsonb_agg(jsonb_build_object('snapshot', s, "
                           "'crawl', c, 'fence', 1, 'plugin', 'p', 'hook', 'h')) from unnest($2::uuid[], $3::uuid[]) "
                           "u(s, c)))";

} // namespace

TEST_CASE("a claim on a queue of many thousands reads index ranges and never a whole table") {
  Stage stage;
  fill(stage);
  const auto worker = stage.worker();
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto before = reads_of(transaction);
    std::size_t claimed = 0;
    for (int i = 0; i < 20; ++i)
      claimed += claim(transaction, worker, 16).size();
    const auto after = reads_of(transaction);
    CHECK(claimed == 320);
    CHECK(after.whole == before.whole);
    CHECK(after.ranges > before.ranges);
    // Each claimed row is fetched a few times (found, locked, updated, read): nothing near all of them.
    CHECK(after.tuples - before.tuples < 20 * 16 * 20);
  });
}

TEST_CASE("a claim planned while the queue was empty does not read all of a large one, in whatever order it takes") {
  Stage stage;
  const auto worker = stage.worker();
  const std::vector<store::ClaimOrder> orders = {{false, 0}, {true, 0}, {false, 100}, {true, 100}};
  const auto claim_in = [&](pg::Transaction& transaction, const store::ClaimOrder& order) {
    return transaction.call(kClaim, pg::Params::of(worker, 16, order.newest, order.from_top_n, 0)).size();
  };
  stage.start(stage.seeds(1, 100)); // so that every statement is planned
  stage.connection.transaction([&](pg::Transaction& transaction) {
    for (const auto& order : orders)
      CHECK(claim_in(transaction, order) == 16);
  });
  fill(stage, "");
  for (const auto& order : orders) {
    CAPTURE(order.newest);
    CAPTURE(order.from_top_n);
    stage.connection.transaction([&](pg::Transaction& transaction) {
      const auto before = reads_of(transaction);
      std::size_t claimed = 0;
      for (int i = 0; i < 5; ++i)
        claimed += claim_in(transaction, order);
      CHECK(claimed == 80);
      CHECK(reads_of(transaction).tuples - before.tuples <
            80 * 40 + 5 * order.from_top_n * 4); // the pool is read besides
    });
  }
}

TEST_CASE("crawls that a worker cannot take cost its claims nothing, however many are ready") {
  Stage stage;
  stage.broken_on_purpose = true; // crawls without pages
  stage.start(Stage::seeds(1, 1000));
  const auto worker = stage.worker();
  const auto reads = [&] {
    Reads all{};
    stage.connection.transaction([&](pg::Transaction& transaction) {
      const auto before = reads_of(transaction, "crawl_queue crawl_lane crawl");
      for (int i = 0; i < 10; ++i)
        CHECK(claim(transaction, worker, 8).size() == 8);
      const auto after = reads_of(transaction, "crawl_queue crawl_lane crawl");
      all = {after.whole - before.whole, after.ranges - before.ranges, after.tuples - before.tuples};
    });
    return all;
  };
  reads(); // plans
  const auto alone = reads();
  stage.run(R"(insert into holdfast.crawl (id, status, retry_at, persona)
                 select holdfast.new_uuid(), 'started', null, 'no persona ' || n % 3 from generate_series(1, 3000) n)");
  stage.run(R"(insert into holdfast.crawl_queue (crawl_id, persona, priority, ready_at)
                 select id, persona, case when random() < 0.3 then 5 else 0 end, now() from holdfast.crawl
                   where persona like 'no persona%'
                 on conflict (crawl_id) do update set persona = excluded.persona, priority = excluded.priority,
                   ready_at = excluded.ready_at)");
  REQUIRE(stage.value("select count(*) from holdfast.crawl_queue where ready_at <= now()") >= "3001");
  const auto beside = reads();
  CHECK(beside.whole == alone.whole);
  CHECK(beside.tuples - alone.tuples <= 10 * 3 * 2); // one row of each kind, in each claim
  CHECK(beside.tuples < 10 * 40);
  stage.run("analyze");
  CHECK(reads().tuples - alone.tuples <= 10 * 3 * 2);
  stage.run("update holdfast.crawl_queue set ready_at = now() + interval '20 seconds' where persona = ''");
  CHECK(stage.value("select holdfast.claim_wait($1::uuid) between '10 s' and '20 s'", pg::Params::of(worker)) == "t");
}

TEST_CASE("a heartbeat, a finished page and a lapse on a large queue touch only what the worker holds") {
  Stage stage;
  fill(stage);
  const auto worker = stage.worker(), dead = stage.worker();
  const auto held = stage.connection.call(kClaim, pg::Params::of(worker, 2, false, 0, 0));
  REQUIRE(held.size() == 2);
  stage.claim_many(dead, 8);
  stage.expire(dead);
  // The other tables are empty here, and an empty table is best read whole.
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto whole = [&] { return reads_of(transaction, "snapshot snapshot_queue").whole; };
    const auto before = whole();
    transaction.call("select * from holdfast.worker_heartbeat($1::uuid, '1 hour', array[$2::uuid], array[1], '{}')",
                     pg::Params::of(worker, held[0].text("snapshot_id")));
    CHECK(whole() == before);
    CHECK(transaction.call(kSeal, of_claims(worker, held)).size() >= 2);
    CHECK(whole() == before);
    CHECK(transaction.call("select holdfast.lapse_process() as n").one().integer("n") == 8);
    CHECK(whole() == before);
  });
}

TEST_CASE("statistics from when the tables were empty do not make claims, finished pages and hooks read whole tables") {
  Stage stage;
  stage.run("analyze"); // as after an upgrade of the server, or a purge: each table is known to be empty
  store::NewCrawl deep;
  deep["max_depth"] = 1;
  stage.start(Stage::seeds(1, 60), deep);
  const auto worker = stage.worker();
  // All in one session, as a worker works: what is planned with the first snapshot serves the last.
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto before = reads_of(transaction).whole;
    for (int i = 0; i < 60; ++i) {
      const auto one = claim(transaction, worker, 1);
      REQUIRE(one.size() == 1);
      const auto params = of_claims(worker, one);
      transaction.call(kHooks, params);
      transaction.call(one[0].integer("attempts") == 1 && i % 3 == 0 ? kRelease : kSeal, params);
      CHECK(reads_of(transaction).whole == before);
    }
  });
}

namespace {

// What the turns by which many snapshots are finished read.
void finish_many(Stage& stage, const std::string& worker, int count) {
  for (const auto& [turn, table] :
       {std::pair{kSeal, "snapshot_sealed where owner_id"}, std::pair{kRelease, "attempt where process_id"}})
    stage.connection.transaction([&](pg::Transaction& transaction) {
      CAPTURE(table);
      CAPTURE(count);
      const auto before = reads_of(transaction);
      const auto claims = claim(transaction, worker, count);
      REQUIRE(claims.size() == static_cast<std::size_t>(count));
      const auto params = of_claims(worker, claims);
      transaction.call(kHooks, params);
      transaction.call(turn, params);
      const auto after = reads_of(transaction);
      CHECK(after.whole == before.whole);
      // Each row is found, locked and updated a few times, however many others there are.
      CHECK(after.tuples - before.tuples < count * 20 + 40);
      CHECK(transaction
                .call("select count(*) as n from holdfast." + std::string(table) +
                          " = $1::uuid and snapshot_id = any ($2::uuid[]) and crawl_id = any ($3::uuid[])",
                      params)
                .one()
                .integer("n") == count);
    });
}

} // namespace

TEST_CASE("finishing many reads only their rows, with statistics that are empty, stale or of one large crawl") {
  Stage stage;
  stage.broken_on_purpose = true; // rows that no function made
  stage.run("analyze");           // each table is known to be empty
  stage.run(
      "update holdfast.collection set retry_base = '1 hour', retry_max = '1 hour'"); // what is released stays away
  stage.start(Stage::seeds(1, 400));
  const auto worker = stage.worker();
  for (const int count : {1, 40, 100})
    finish_many(stage, worker, count);
  // The plans of this session are from then. Now there is a lot, most of it in one crawl, and many results and hooks.
  fill(stage, R"(
    insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id,
        started_at, ended_at)
      select snapshot_id, crawl_id, 0, 'other', 'hook', 'succeeded', gen_random_uuid(), now(), now()
        from holdfast.snapshot_queue limit 20000;
    insert into holdfast.running_hook (process_id, snapshot_id, crawl_id, fence, plugin, hook_name, started_at)
      select gen_random_uuid(), snapshot_id, crawl_id, 0, 'other', 'hook', now()
        from holdfast.snapshot_queue limit 20000;)");
  for (const int count : {1, 100})
    finish_many(stage, worker, count);
  stage.run("analyze");
  for (const int count : {1, 100})
    finish_many(stage, worker, count);
  stage.expire(worker);
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto before = reads_of(transaction, "running_hook").whole;
    transaction.call("select holdfast.lapse_process()");
    CHECK(reads_of(transaction, "running_hook").whole == before);
  });
}

TEST_CASE("opening and expanding read each seed a few times and nothing else, with plans from when there was nothing") {
  Stage stage;
  stage.run("analyze");
  const auto worker = stage.worker();
  const auto open = [&](pg::Transaction& transaction) {
    return transaction.call(kClaim, pg::Params::of(worker, 8, false, 0, 200)).size();
  };
  const auto expand = [&](pg::Transaction& transaction) {
    return transaction
        .call("select e.seeds_left from holdfast.crawl c, holdfast.crawl_expand($1::uuid, c.id, c.fence, 500) e where "
              "c.owner_id = $1::uuid",
              pg::Params::of(worker))
        .one()
        .integer("seeds_left");
  };
  for (int round = 1; round <= 7; ++round) { // the plans are from the first six
    const int seeds = round <= 6 ? 300 : 5000;
    CAPTURE(seeds);
    stage.add(Stage::seeds(1, 5));
    stage.add(Stage::seeds(10000 * round, 10000 * round + seeds - 1)); // URLs that no other crawl has
    stage.connection.transaction([&](pg::Transaction& transaction) {
      const auto of_seeds = reads_of(transaction, "crawl_seed"), of_snapshots = reads_of(transaction, "snapshot");
      CHECK(open(transaction) >= 5);
      CHECK(transaction.call("select from holdfast.crawl_claim($1::uuid, '1 minute')", pg::Params::of(worker)).size() ==
            1);
      while (expand(transaction) > 0) {
      }
      CHECK(reads_of(transaction, "crawl_seed").tuples - of_seeds.tuples < seeds * 5);
      CHECK(reads_of(transaction, "snapshot").tuples - of_snapshots.tuples < 1000);
      CHECK(reads_of(transaction, "crawl_seed").whole == of_seeds.whole);
      CHECK(reads_of(transaction, "snapshot").whole == of_snapshots.whole);
    });
  }
}

namespace {

// Two crawls that have ended, of 12,000 pages and of 240, and one of a month that was removed; with results, texts and
// captures. All captures are of one URL, and each second refers to one payload.
const std::string kEnded = R"(;
    create table public.ended as
      select 'd0000000-0000-7000-8000-000000000001'::uuid as id, 12000 as pages
      union all select 'd0000000-0000-7000-8000-000000000002', 240
      union all select holdfast.first_id(holdfast.month_of(clock_timestamp(), 1)), 12000;
    set session_replication_role = replica;
    insert into holdfast.crawl (id, status, retry_at, sealed_at, outcome, snapshots_total, snapshots_succeeded)
      select id, 'sealed', null, clock_timestamp(), 'succeeded', pages, pages from public.ended;
    insert into holdfast.snapshot (id, crawl_id, url, url_hash)
      select holdfast.new_uuid(), id, u, sha256(convert_to(u, 'UTF8'))
        from public.ended, generate_series(1, pages) n, lateral (select 'https://ended.test/' || id || n as u) s;
    insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, directory, manifest_sha256, sealed_at)
      select id, crawl_id, 'succeeded', 1, '2026/01/ended.test/' || id || '/a1', 'm', clock_timestamp()
        from holdfast.snapshot where crawl_id in (select id from public.ended);
    insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, ending)
      select snapshot_id, crawl_id, 0, gen_random_uuid(), clock_timestamp(), 'lapsed' from holdfast.snapshot_sealed;
    insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id,
        started_at, ended_at)
      select snapshot_id, crawl_id, 1, 'p', 'h', 'succeeded', gen_random_uuid(), clock_timestamp(), clock_timestamp()
        from holdfast.snapshot_sealed;
    insert into holdfast.page_text (snapshot_id, crawl_id, language, text, words)
      select snapshot_id, crawl_id, 'simple', '', '' from holdfast.snapshot_sealed;
    insert into holdfast.capture (snapshot_id, crawl_id, file, record_offset, record_length, url_key, at, url, status,
        mime, digest)
      select snapshot_id, crawl_id, 'p/a.warc.gz', 0, 2000, 'test,site)/', clock_timestamp(), 'https://site.test/', 200,
             case when n % 2 = 0 then 'warc/revisit' else 'text/html' end,
             case when n % 2 = 0 then 'sha1:1' else 'sha1:' || n end
        from (select snapshot_id, crawl_id, row_number() over (order by crawl_id desc) as n
                from holdfast.snapshot_sealed) s;
    set session_replication_role = origin;
    select holdfast.partition_remove((holdfast.month_of(clock_timestamp(), 1) at time zone 'UTC')::date, 'ann');)";

} // namespace

TEST_CASE("a session that has planned its statements while all was empty reads little of large tables") {
  Stage stage;
  stage.broken_on_purpose = true; // rows that no function made
  const auto worker = stage.worker();
  stage.run("analyze");
  struct Use {
    std::string name, arguments; // p: the worker, a page that was sealed, and the pages that the worker holds
    int reads;                   // at most so many rows
  };
  const std::vector<Use> uses = {
      {"worker_turn", "p.worker, '[]', 3, '{}', false, false, 0, 0", 1000},
      {"worker_heartbeat", "p.worker, '1 hour', p.held, array_fill(1, array[cardinality(p.held)]), '{}'", 1000},
      {"worker_hooks",
       "p.worker, (select jsonb_agg(jsonb_build_object('snapshot', s, 'crawl', c, 'fence', 1, 'plugin', 'p', 'hook', "
       "'h')) from unnest(p.held, p.crawls) u(s, c))",
       50},
      {"captures_stored",
       "'{\"test,site)/\", \"test,site)/\", \"test,site)/\"}', '{sha1:1, sha1:501, sha1:none}', null, 1", 4},
      {"text_keep", "p.page, 'd0000000-0000-7000-8000-000000000002', 1, 'words'", 10},
      {"snapshot_remove", "p.page, 'ann'", 1000}, // its crawl has 240
      {"crawl_remove", "'d0000000-0000-7000-8000-000000000002', 'ann'", 240 * 20},
      {"crawl_stop_step", "'c0000000-0000-7000-8000-000000000001', 500", 500 * 20},
  };
  std::vector<std::string> held, crawls;
  std::string page = "00000000-0000-0000-0000-000000000000";
  const auto call = [&](const Use& use) {
    INFO(use.name);
    stage.connection.transaction([&](pg::Transaction& transaction) {
      const std::string tables = "archive_result snapshot snapshot_queue snapshot_sealed attempt capture page_text "
                                 "removed_page removed_capture crawl_seed running_hook crawl_lane";
      const auto before = reads_of(transaction, tables);
      transaction.call(
          "select f.* from (select $1::uuid as worker, $2::uuid as page, $3::uuid[] as held, $4::uuid[] as "
          "crawls) p, lateral holdfast." +
              use.name + '(' + use.arguments + ") f",
          pg::Params::of(worker, page, held, crawls));
      CHECK(reads_of(transaction, tables).tuples - before.tuples <= use.reads);
    });
  };
  pg::Connection runner(stage.dsn()); // whose session claims nothing
  const auto lapse = [&](int reads) {
    const auto dead = stage.worker();
    stage.claim_many(dead, 3);
    stage.expire(dead);
    runner.transaction([&](pg::Transaction& transaction) {
      const auto before = reads_of(transaction);
      CHECK(transaction.call("select holdfast.lapse_process() as n").one().integer("n") == 3);
      CHECK(reads_of(transaction).tuples - before.tuples <= reads);
    });
  };
  stage.start(Stage::seeds(1, 30));
  // PostgreSQL keeps a plan from the sixth call on.
  for (int i = 0; i < 6; ++i) {
    lapse(1000);
    for (const auto& use : uses)
      call(use);
  }
  fill(stage, kEnded);
  page = stage.value("select snapshot_id from holdfast.snapshot_sealed where crawl_id::text like 'd0%2' limit 1");
  for (const auto& claim : stage.claim_many(worker, 3)) {
    held.push_back(claim.lease.snapshot_id);
    crawls.push_back(claim.lease.crawl_id);
  }
  stage.run("update holdfast.crawl set stopping_at = now() where id::text like 'c0%1'");
  lapse(100);
  std::string names = "lapse_process crawl_expand"; // the latter: see above
  for (const auto& use : uses) {
    names += ' ' + use.name;
    call(use);
  }
  CHECK(stage.value("select string_agg(proname, ' ' order by array_position(string_to_array($1, ' '), proname::text)) "
                    "from pg_proc where proconfig @> '{enable_bitmapscan=off}'",
                    pg::Params::of(names)) == names);
  stage.run("analyze"); // a payload is found by its hash whatever is known of the captures
  for (const auto& use : uses)
    if (use.name == "captures_stored") call(use);
}
