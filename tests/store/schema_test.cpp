// The schema as its own documentation, and the constraints that hold whoever writes.
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

std::string names(const pg::Result& result) {
  std::string all;
  for (std::size_t i = 0; i < result.size(); ++i)
    all += (all.empty() ? "" : ", ") + result.cell(i, 0).value_or("");
  return all;
}

} // namespace

TEST_CASE("every table, column, view and function has a comment") {
  Stage stage;
  CHECK(names(stage.connection.call(
            "select c.relname from pg_class c where c.relnamespace = 'holdfast'::regnamespace and "
            "c.relkind in ('r', 'p', 'v', 'm') and obj_description(c.oid, 'pg_class') is null")) == "");
  CHECK(names(stage.connection.call(
            "select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = "
            "c.oid where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p') and "
            // The migrator makes its own table, in lib/pg.
            "c.relname <> 'schema_migration' and "
            "a.attnum > 0 and not a.attisdropped and col_description(c.oid, a.attnum) is null")) == "");
  CHECK(
      names(stage.connection.call("select p.proname from pg_proc p where p.pronamespace = 'holdfast'::regnamespace and "
                                  "obj_description(p.oid, 'pg_proc') is null")) == "");
  CHECK(stage.value("select obj_description('holdfast'::regnamespace, 'pg_namespace') is not null") == "t");
}

TEST_CASE("every check has a name of its own, and every reference an index or none that is needed") {
  Stage stage;
  // A name that PostgreSQL made up would be table_column_check.
  CHECK(
      names(stage.connection.call("select conname from pg_constraint where connamespace = 'holdfast'::regnamespace and "
                                  "contype = 'c' and conname like '%\\_check'")) == "");
}

TEST_CASE("every table of crawls can be distributed by crawl: all its unique keys hold the crawl") {
  Stage stage;
  // The exceptions are records that may stay on one server (deploy/scaling.md).
  CHECK(names(stage.connection.call(
            "select x.relname from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on x.oid = "
            "i.indexrelid "
            "join pg_attribute a on a.attrelid = c.oid and a.attname = 'crawl_id' and not a.attisdropped "
            "where c.relnamespace = 'holdfast'::regnamespace and i.indisunique and not a.attnum = any (i.indkey) "
            "order by 1")) == "control_pkey, crawl_session_pkey, event_pkey");
}

TEST_CASE("bad rows are refused by the constraint that is there for them") {
  struct BadRow {
    std::string constraint, sql;
  };
  const std::string session =
      "insert into holdfast.crawl_session (id, crawl_id, process_id, directory, status, ended_at) "
      "values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '/d', ";
  const std::string session_hook = "insert into holdfast.crawl_session_hook (session_id, plugin, hook_name, status, "
                                   "ended_at) values (gen_random_uuid(), 'p', 'h', ";
  const std::string sealed =
      "insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, fence, outcome, reason, directory, "
      "manifest_sha256) select snapshot_id, crawl_id, 1, ";
  const std::string result =
      "insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, process_id, "
      "status, ended_at, error) select snapshot_id, crawl_id, 1, 'p', 'h', gen_random_uuid(), ";
  const std::vector<BadRow> rows = {
      {"collection_pkey", "insert into holdfast.collection default values"},
      {"collection_is_one_row", "insert into holdfast.collection (singleton) values (false)"},
      {"lifecycle_edge_pkey", "insert into holdfast.lifecycle_edge select * from holdfast.lifecycle_edge"},
      {"process_status", "update holdfast.process set status = 'zombie'"},
      {"process_type_known", "update holdfast.process set process_type = 'thing'"},
      {"process_exited_has_end", "update holdfast.process set ended_at = now()"},
      {"process_exited_has_end", "update holdfast.process set status = 'exited'"},
      {"process_request_known", "update holdfast.process set request = 'jump'"},
      {"process_lease_has_beat", "update holdfast.process set beat_at = null"},
      {"process_machine_id_fkey", "update holdfast.process set machine_id = 'nowhere'"},
      {"crawl_status", "update holdfast.crawl set status = 'done'"},
      {"crawl_status", "insert into holdfast.crawl (id, status) values (gen_random_uuid(), 'done')"},
      {"crawl_pkey", "insert into holdfast.crawl (id) select id from holdfast.crawl"},
      {"crawl_depth", "update holdfast.crawl set max_depth = -1"},
      {"crawl_depth", "update holdfast.crawl set max_depth = 17"},
      {"crawl_max_urls", "update holdfast.crawl set max_urls = -1"},
      {"crawl_options_object", "update holdfast.crawl set options = '[]'"},
      {"crawl_sealed_is_final", "update holdfast.crawl set sealed_at = now()"},
      {"crawl_sealed_has_outcome", "update holdfast.crawl set outcome = 'failed'"},
      {"crawl_sealed_is_idle", "insert into holdfast.crawl (id, status, sealed_at, outcome) values (gen_random_uuid(), "
                               "'sealed', now(), 'empty')"},
      {"crawl_sealed_is_idle", "insert into holdfast.crawl (id, status, sealed_at, outcome, retry_at, seeds_left) "
                               "values (gen_random_uuid(), 'sealed', now(), 'empty', null, 1)"},
      {"crawl_paused_is_parked", "insert into holdfast.crawl (id, status) values (gen_random_uuid(), 'paused')"},
      {"crawl_open_adds_up", "update holdfast.crawl set snapshots_open = snapshots_open + 1"},
      {"crawl_open_adds_up", "update holdfast.crawl set snapshots_failed = snapshots_failed + 1"},
      {"crawl_open_adds_up", "update holdfast.crawl set seeds_left = -1"},
      {"crawl_cancelled_among_failed", "update holdfast.crawl set snapshots_cancelled = snapshots_failed + 1"},
      {"crawl_seed_pkey", "insert into holdfast.crawl_seed select * from holdfast.crawl_seed"},
      {"crawl_queue_crawl_id_fkey", "insert into holdfast.crawl_queue (crawl_id) values (gen_random_uuid())"},
      {"snapshot_url_once_per_crawl", "insert into holdfast.snapshot (id, crawl_id, url, url_hash, host) select "
                                      "gen_random_uuid(), crawl_id, url, url_hash, host from holdfast.snapshot"},
      {"snapshot_url_hash", "update holdfast.snapshot set url = url || 'x'"},
      {"snapshot_depth", "update holdfast.snapshot set depth = 17"},
      {"snapshot_found_on_or_parent", "update holdfast.snapshot set parent_id = id, found_on = url"},
      {"snapshot_queue_pkey", "insert into holdfast.snapshot_queue select * from holdfast.snapshot_queue"},
      {"snapshot_queue_status", "insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, status) select "
                                "snapshot_id, crawl_id, host, 'sealed' from holdfast.snapshot_queue"},
      {"snapshot_queue_owner_has_claim", "update holdfast.snapshot_queue set claimed_at = now()"},
      {"snapshot_queue_owner_has_claim",
       "update holdfast.snapshot_queue set owner_id = (select id from holdfast.process limit 1)"},
      {"snapshot_queue_started_has_owner", "update holdfast.snapshot_queue set status = 'started', started_at = now()"},
      {"snapshot_queue_paused_is_parked", "update holdfast.snapshot_queue set status = 'paused'"},
      {"snapshot_sealed_outcome",
       sealed + "'great', 'r', 'd', 'm' from holdfast.snapshot_queue where owner_id is not null"},
      {"snapshot_sealed_has_files",
       sealed + "'succeeded', null, 'd', null from holdfast.snapshot_queue where owner_id is not null"},
      {"snapshot_sealed_has_files",
       sealed + "'partial', null, null, 'm' from holdfast.snapshot_queue where owner_id is not null"},
      {"snapshot_sealed_has_reason",
       sealed + "'refused', null, null, null from holdfast.snapshot_queue where owner_id is not null"},
      {"event_has_object", "insert into holdfast.event (lifecycle, event, to_state) values ('crawl', 'add', 'queued')"},
      {"event_has_object", "insert into holdfast.event (lifecycle, object_id, objects, event, to_state) values "
                           "('crawl', gen_random_uuid(), '{}', 'add', 'queued')"},
      {"attempt_ending",
       "insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, ending) select "
       "snapshot_id, crawl_id, 1, gen_random_uuid(), now(), 'vanished' from holdfast.snapshot_queue"},
      {"archive_result_status", result + "'great', now(), '' from holdfast.snapshot_queue"},
      {"archive_result_final_has_end", result + "'started', now(), '' from holdfast.snapshot_queue"},
      {"archive_result_final_has_end", result + "'succeeded', null::timestamptz, '' from holdfast.snapshot_queue"},
      {"archive_result_failure_has_error", result + "'failed', now(), '' from holdfast.snapshot_queue"},
      {"crawl_session_status", session + "'lost', null)"},
      {"crawl_session_ended", session + "'closed', null)"},
      {"crawl_session_ended", session + "'ready', now())"},
      {"crawl_session_failure_has_reason", session + "'failed', now())"},
      {"crawl_session_hook_status", session_hook + "'lost', now())"},
      {"crawl_session_hook_ended", session_hook + "'started', now())"},
      {"binary_status", "insert into holdfast.binary (machine_id, name, status) values ('machine', 'x', 'lost')"},
      {"binary_installed_has_path",
       "insert into holdfast.binary (machine_id, name, status) values ('machine', 'x', 'installed')"},
      {"host_delay", "insert into holdfast.host (name, min_delay) values ('h', '-1 second')"},
      {"host_parallel", "insert into holdfast.host (name, max_parallel) values ('h', 0)"},
      {"schedule_has_urls",
       "insert into holdfast.schedule (id, every, urls) values (gen_random_uuid(), 'daily', '{}')"},
      {"schedule_hosts_match",
       "insert into holdfast.schedule (id, every, urls) values (gen_random_uuid(), 'daily', '{u}')"},
      {"duty_every", "update holdfast.duty set every = '0'"},
      {"duty_batch", "update holdfast.duty set batch = 0"},
      {"duty_keep", "update holdfast.duty set keep = '-1 day'"},
      {"duty_function_name", "update holdfast.duty set function = 'node_leave'"},
      {"runner_term_forwards", "insert into holdfast.runner_term (epoch, process_id, label, valid_until) values (1, "
                               "gen_random_uuid(), 'r', now() - interval '1 hour')"},
      {"runner_term_ended_has_ending",
       "insert into holdfast.runner_term (epoch, process_id, label, valid_until, "
       "ended_at) values (1, gen_random_uuid(), 'r', now() + interval '1 hour', now())"},
      {"crawl_max_bytes", "update holdfast.crawl set max_bytes = -1"},
      {"crawl_max_time", "update holdfast.crawl set max_time = '-1 second'"},
      {"crawl_max_snapshot_bytes", "update holdfast.crawl set max_snapshot_bytes = -1"},
      {"crawl_wanted_to_complete", "update holdfast.crawl set wanted = '{wget}'"},
      {"crawl_overwrites_or_skips", "update holdfast.crawl set overwrite = true, only_new = true"},
      {"robots_state",
       "insert into holdfast.robots (origin, state, fetched_at, expires_at) values ('o', 'x', now(), now())"},
      {"robots_known_has_age", "insert into holdfast.robots (origin, state) values ('o', 'known')"},
      {"robots_fetcher_has_time", "insert into holdfast.robots (origin, fetcher_id) values ('o', gen_random_uuid())"},
      {"crawl_max_parallel", "update holdfast.crawl set max_parallel = 0"},
      {"crawl_scope_object", "update holdfast.crawl set scope = '[]'"},
      {"crawl_host_delay", "update holdfast.crawl set host_delay = '-1 second'"},
      {"crawl_host_parallel", "update holdfast.crawl set host_parallel = 0"},
      {"crawl_bytes_within_limit", "update holdfast.crawl set max_bytes = 1, bytes = 2"},
      {"crawl_urls_within_limit", "update holdfast.crawl set max_urls = 1 where snapshots_total > 1"},
      {"crawl_seed_depth", "update holdfast.crawl_seed set depth = 17"},
      {"snapshot_queue_excluded_is_paused", "update holdfast.snapshot_queue set excluded = true"},
      {"control_kind", "insert into holdfast.control (action, kind, target) values ('pause', 'web', 'x')"},
      {"webhook_name",
       "insert into holdfast.webhook (name, url, events) values ('Ops!', 'https://hooks.test/x', '{crawl.sealed}')"},
      {"webhook_url",
       "insert into holdfast.webhook (name, url, events) values ('ops', 'ftp://hooks.test/x', '{crawl.sealed}')"},
      {"webhook_events",
       "insert into holdfast.webhook (name, url, events) values ('ops', 'https://hooks.test/x', '{}')"},
      {"delivery_status",
       "with w as (insert into holdfast.webhook (name, url, events) values ('ops', 'https://hooks.test/x', "
       "'{crawl.sealed}') returning name) insert into holdfast.delivery (webhook, event, payload, status, ended_at, "
       "retry_at) select name, 'crawl.sealed', '', 'lost', now(), null from w"},
      {"delivery_ended", "with w as (insert into holdfast.webhook (name, url, events) values ('ops', "
                         "'https://hooks.test/x', '{crawl.sealed}') returning name) insert into holdfast.delivery "
                         "(webhook, event, payload, ended_at) select name, 'crawl.sealed', '', now() from w"},
      {"delivery_due", "with w as (insert into holdfast.webhook (name, url, events) values ('ops', "
                       "'https://hooks.test/x', '{crawl.sealed}') returning name) insert into holdfast.delivery "
                       "(webhook, event, payload, retry_at) select name, 'crawl.sealed', '', null from w"},
      {"delivery_owner",
       "with w as (insert into holdfast.webhook (name, url, events) values ('ops', 'https://hooks.test/x', "
       "'{crawl.sealed}') returning name) insert into holdfast.delivery (webhook, event, payload, status, ended_at, "
       "retry_at, owner) select name, 'crawl.sealed', '', 'delivered', now(), null, 'x' from w"},
      {"collection_log_level", "update holdfast.collection set log_level = 'loud'"},
      {"process_log_level", "update holdfast.process set log_level = 'loud'"},
      {"process_single_runner", "update holdfast.process set worker_type = 'worker_runner'"},
  };
  Stage stage;
  stage.node();
  const auto node = stage.node();
  stage.start({stage.seed("1"), stage.seed("2")});
  stage.add({stage.seed("3")});
  stage.claim_and_start(node);
  for (const auto& row : rows) {
    CAPTURE(row.sql);
    try {
      // The lifecycle triggers would speak first.
      stage.connection.transaction([&](pg::Transaction& transaction) {
        if (row.constraint != "snapshot_sealed_outcome" && row.sql.find("snapshot_sealed") == std::string::npos)
          transaction.call("alter table holdfast.crawl disable trigger user");
        transaction.call("alter table holdfast.process disable trigger user");
        transaction.call("alter table holdfast.snapshot_queue disable trigger user");
        transaction.call(row.sql);
      });
      FAIL_CHECK("accepted; should be refused by " << row.constraint);
    } catch (const std::exception& error) {
      CHECK_MESSAGE(std::string(error.what()).find("\"" + row.constraint + "\"") != std::string::npos, error.what());
    }
  }
  // And every check constraint has its bad row above.
  std::set<std::string> tried;
  for (const auto& row : rows)
    tried.insert(row.constraint);
  const auto all = stage.connection.call("select conname as name from pg_constraint where connamespace = "
                                         "'holdfast'::regnamespace and contype = 'c'");
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK_MESSAGE(tried.count(all[i].text("name")) == 1, all[i].text("name"));
}
