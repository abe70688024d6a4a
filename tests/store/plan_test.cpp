// The shape of the claim's plans on a large queue: index ranges only, whatever the table's size. No times are measured.
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// 200,000 due snapshots in 50 crawls, one of which holds half of them.
void fill(Stage& stage, const std::string& then = "analyze") {
  pg::ConnectionOptions patient; // all of it is one statement to the server, and the machine may be busy
  patient.statement_timeout = std::chrono::minutes(4);
  pg::Connection(stage.dsn(), patient).script(std::string(R"(
    insert into holdfast.crawl (id, status, retry_at, snapshots_total, snapshots_open)
      select ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'started', null, t, t
        from generate_series(1, 50) n, lateral (select case when n = 1 then 102000 else 2000 end as t) s;
    insert into holdfast.crawl_queue (crawl_id, ready_at) select id, now() from holdfast.crawl where id::text like 'c0000000-%'
      on conflict (crawl_id) do update set ready_at = excluded.ready_at;
    insert into holdfast.snapshot (id, crawl_id, url, url_hash, host)
      select holdfast.new_uuid(), c.id, u, sha256(convert_to(u, 'UTF8')), 'site.test'
        from holdfast.crawl c, generate_series(1, c.snapshots_total) n, lateral (select 'https://site.test/' || n as u) s
        where c.id::text like 'c0000000-%';
    insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at)
      select id, crawl_id, host, now() - random() * interval '1 hour' from holdfast.snapshot where crawl_id::text like 'c0000000-%';
    )") + then);
}

} // namespace

TEST_CASE("a claim on a queue of two hundred thousand reads index ranges and never a whole table") {
  Stage stage;
  fill(stage);
  const auto node = stage.node();
  const auto scans = [&](const std::string& what) {
    return std::stoll(stage.value("select coalesce(sum(" + what +
                                  "), 0) from pg_stat_xact_user_tables where schemaname = 'holdfast' and relname in "
                                  "('snapshot_queue', 'snapshot', 'snapshot_sealed')"));
  };
  // Counters of this transaction: what the claim's own statements read, as they were really planned.
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto read = [&] {
      return transaction.call(
          "select coalesce(sum(seq_scan), 0) as whole, coalesce(sum(idx_scan), 0) as ranges, coalesce(sum(seq_tup_read "
          "+ idx_tup_fetch), 0) as tuples from "
          "pg_stat_xact_user_tables where schemaname = 'holdfast' and relname in ('snapshot_queue', 'snapshot')");
    };
    const auto before = read();
    std::size_t claimed = 0;
    for (int i = 0; i < 20; ++i)
      claimed +=
          transaction.call("select * from holdfast.snapshot_claim($1::uuid, 16, '{}')", pg::Params::of(node)).size();
    const auto after = read();
    CHECK(claimed == 320);
    CHECK(after.one().integer("whole") == before.one().integer("whole"));
    CHECK(after.one().integer("ranges") > before.one().integer("ranges"));
    // Each claimed row is fetched a few times (found, locked, updated, read): nothing near the 200,000.
    CHECK(after.one().integer("tuples") - before.one().integer("tuples") < 20 * 16 * 20);
  });
  CHECK(scans("seq_scan") == 0);
}

TEST_CASE("a claim planned while the queue was empty does not read all of a large one, in whatever order it takes") {
  Stage stage;
  const auto node = stage.node();
  const std::vector<store::ClaimOrder> orders = {{"oldest", 0}, {"newest", 0}, {"oldest", 100}, {"newest", 100}};
  const auto claim = [&](pg::Transaction& transaction, const store::ClaimOrder& order) {
    return transaction
        .call("select * from holdfast.snapshot_take($1::uuid, 16, '{}', false, $2, $3::integer)",
              pg::Params::of(node, order.first, order.from_top_n))
        .size();
  };
  stage.start(stage.seeds(1, 100)); // so that every statement is planned
  stage.connection.transaction([&](pg::Transaction& transaction) {
    for (const auto& order : orders)
      CHECK(claim(transaction, order) == 16);
  });
  fill(stage, "");
  for (const auto& order : orders) {
    CAPTURE(order.first);
    CAPTURE(order.from_top_n);
    stage.connection.transaction([&](pg::Transaction& transaction) {
      const auto tuples = [&] {
        return transaction
            .call("select coalesce(sum(seq_tup_read + idx_tup_fetch), 0) as n from pg_stat_xact_user_tables where "
                  "schemaname = 'holdfast' and relname in ('snapshot_queue', 'snapshot')")
            .one()
            .integer("n");
      };
      const auto before = tuples();
      std::size_t claimed = 0;
      for (int i = 0; i < 5; ++i)
        claimed += claim(transaction, order);
      CHECK(claimed == 80);
      CHECK(tuples() - before < 80 * 40 + 5 * order.from_top_n * 4); // the pool is read besides
    });
  }
}

TEST_CASE("a beat, a seal and a lapse on a large queue touch only what the node holds") {
  Stage stage;
  fill(stage);
  const auto node = stage.node(), dead = stage.node(), other = stage.node();
  const auto claim = stage.claim_and_start(node);
  store::snapshot_claim(stage.connection, dead, 8, {});
  stage.expire(dead);
  // The other tables are empty here, and an empty table is best read whole.
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto whole = [&] {
      return transaction
          .call("select coalesce(sum(seq_scan), 0) as n from pg_stat_xact_user_tables where schemaname = 'holdfast' "
                "and relname in "
                "('snapshot_queue', 'snapshot')")
          .one()
          .integer("n");
    };
    const auto before = whole();
    transaction.call("select * from holdfast.node_beat($1::uuid, '1 hour', array[$2::uuid], array[1], '{}')",
                     pg::Params::of(node, claim.lease.snapshot_id));
    CHECK(whole() == before);
    transaction.call("select * from holdfast.snapshot_seal($1::uuid, $2::uuid, $3::uuid, 1, 'succeeded', null, 'd', "
                     "'m', 1, 1, '', '{}', '{}', '{}', '{}')",
                     pg::Params::of(node, claim.lease.snapshot_id, claim.lease.crawl_id));
    CHECK(whole() == before);
    CHECK(transaction.call("select holdfast.lapse_nodes() as n").one().integer("n") == 8);
    CHECK(whole() == before);
  });
}

TEST_CASE("statistics from when the tables were empty do not make claims, results and seals read whole tables") {
  Stage stage;
  stage.run("analyze"); // as after an upgrade of the server, or a purge: each table is known to be empty
  stage.start(Stage::seeds(1, 40));
  const auto node = stage.node();
  // All in one session, as a node works: what is planned with the first snapshot serves the last.
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto own = [&] {
      return transaction
          .call("select coalesce(sum(seq_scan), 0) as n from pg_stat_xact_user_tables where schemaname = 'holdfast' "
                "and relname in "
                "('archive_result', 'snapshot', 'snapshot_queue', 'snapshot_sealed', 'attempt')")
          .one()
          .integer("n");
    };
    const auto before = own();
    const auto claims =
        transaction.call("select * from holdfast.snapshot_take($1::uuid, 40, '{}', false)", pg::Params::of(node));
    REQUIRE(claims.size() == 40);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      const auto lease = pg::Params::of(node, claims[i].text("snapshot_id"), claims[i].text("crawl_id"));
      transaction.call("select holdfast.result_start($1::uuid, $2::uuid, $3::uuid, 1, 'p', 'h', 1, 1, 1, false)",
                       lease);
      transaction.call("select holdfast.result_finish($1::uuid, $2::uuid, $3::uuid, 1, 'p', 'h', 'succeeded', '{}')",
                       lease);
      transaction.call("select * from holdfast.snapshot_seal($1::uuid, $2::uuid, $3::uuid, 1, 'succeeded', null, 'd', "
                       "'m', 1, 1, '', '{}', '{}', "
                       "'{}', '{}')",
                       lease);
    }
    CHECK(own() == before);
  });
}

namespace {

// What the calls by which many snapshots are settled read, of the tables of which each row belongs to one snapshot.
void settle_many(Stage& stage, const std::string& node, int count) {
  stage.connection.transaction([&](pg::Transaction& transaction) {
    const auto read = [&](const std::string& what) {
      return transaction
          .call("select coalesce(sum(" + what +
                "), 0) as n from pg_stat_xact_user_tables where schemaname = 'holdfast' and relname in "
                "('archive_result', 'snapshot', 'snapshot_queue', 'snapshot_sealed', 'attempt')")
          .one()
          .integer("n");
    };
    const auto whole = read("seq_scan"), tuples = read("seq_tup_read + idx_tup_fetch");
    const auto claims = transaction.call("select * from holdfast.snapshot_take($1::uuid, $2::integer, '{}', false)",
                                         pg::Params::of(node, count));
    REQUIRE(claims.size() == static_cast<std::size_t>(count));
    std::vector<std::string> snapshots, crawls;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      snapshots.push_back(claims[i].text("snapshot_id"));
      crawls.push_back(claims[i].text("crawl_id"));
    }
    const auto params = pg::Params::of(node, snapshots, crawls);
    for (const std::string call :
         {"result_start_many($1::uuid, $2::uuid[], $3::uuid[], n, t, t, n, n, n, null)",
          "result_finish_many($1::uuid, $2::uuid[], $3::uuid[], n, t, t, s, r)",
          "snapshot_seal_many($1::uuid, $2::uuid[], $3::uuid[], n, s, t, t, t, n, n, t, '[]')"})
      transaction.call("select * from (select array_agg(1) as n, array_agg(text 'p') as t, array_agg(text 'succeeded') "
                       "as s, jsonb_agg('{}'::jsonb) as r from unnest($2::uuid[])) v cross join lateral holdfast." +
                           call,
                       params);
    CHECK(read("seq_scan") == whole);
    // Each row is found, locked and updated a few times, however many others there are.
    CHECK(read("seq_tup_read + idx_tup_fetch") - tuples < count * 40);
    CHECK(transaction
              .call("select count(*) as n from holdfast.snapshot_sealed where snapshot_id = any ($1::uuid[])",
                    pg::Params::of(snapshots))
              .one()
              .integer("n") == count);
  });
}

} // namespace

TEST_CASE(
    "taking and settling many reads only their rows, with statistics that are empty, stale or of one large crawl") {
  Stage stage;
  stage.broken_on_purpose = true; // rows that no function made
  stage.run("analyze");           // each table is known to be empty
  stage.start(Stage::seeds(1, 200));
  const auto node = stage.node();
  for (const int count : {1, 40, 100})
    settle_many(stage, node, count);
  // The plans of this session are from then. Now there is a lot, most of it in one crawl, and of results that run.
  fill(stage, R"(
    insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, process_id)
      select snapshot_id, crawl_id, 0, 'other', 'hook', gen_random_uuid() from holdfast.snapshot_queue limit 50000;)");
  for (const int count : {1, 100})
    settle_many(stage, node, count);
  stage.run("analyze");
  for (const int count : {1, 100})
    settle_many(stage, node, count);
}

TEST_CASE("opening and expanding read each seed a few times and nothing else, with plans from when there was nothing") {
  Stage stage;
  stage.run("analyze");
  const auto node = stage.node();
  const auto take = [&](pg::Transaction& transaction) {
    return transaction
        .call("select * from holdfast.work_take($1::uuid, 8, '{}', false, 'oldest', 0, 200)", pg::Params::of(node))
        .size();
  };
  const auto expand = [&](pg::Transaction& transaction) {
    return transaction
        .call("select e.seeds_left from holdfast.crawl c, holdfast.crawl_expand($1::uuid, c.id, c.fence, 500) e where "
              "c.owner_id = $1::uuid",
              pg::Params::of(node))
        .one()
        .integer("seeds_left");
  };
  for (const int seeds : {1000, 5000}) { // the plans are from the first round
    CAPTURE(seeds);
    stage.add(Stage::seeds(1, 5));
    stage.add(Stage::seeds(1, seeds));
    stage.connection.transaction([&](pg::Transaction& transaction) {
      const auto read = [&](const std::string& what, const std::string& table) {
        return transaction
            .call("select coalesce(sum(" + what +
                  "), 0) as n from pg_stat_xact_user_tables where schemaname = 'holdfast' and relname = '" + table +
                  "'")
            .one()
            .integer("n");
      };
      const std::string tuples = "seq_tup_read + idx_tup_fetch";
      const auto of_seeds = read(tuples, "crawl_seed"), of_snapshots = read(tuples, "snapshot"),
                 whole = read("seq_scan", "snapshot") + read("seq_scan", "crawl_seed");
      CHECK(take(transaction) >= 5);
      CHECK(transaction.call("select from holdfast.crawl_claim($1::uuid, '1 minute')", pg::Params::of(node)).size() ==
            1);
      while (expand(transaction) > 0) {
      }
      CHECK(read(tuples, "crawl_seed") - of_seeds < seeds * 5);
      CHECK(read(tuples, "snapshot") - of_snapshots < 1000);
      CHECK(read("seq_scan", "snapshot") + read("seq_scan", "crawl_seed") == whole);
    });
  }
}
