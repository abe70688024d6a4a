// The tables alone, as the numbered files make them, without functions and triggers: they document themselves, every
// constraint refuses its bad row, and the functions in their checks agree with lib/base.
#include "lib/base/text/facts.hpp"
#include "lib/base/text/url.hpp"
#include "lib/pg/migrator.hpp"
#include "lib/pg/sqlstate.hpp"
#include "migrations/migrations.hpp"
#include "tests/support/test_database.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <vector>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// One database with the numbered files, for all cases of this file.
class Tables {
  TestDatabase database_{false};

public:
  pg::Connection connection{database_.dsn()};

  Tables() {
    std::vector<pg::MigrationFile> files;
    for (const auto& file : migrations::numbered())
      files.push_back({file.name, file.text});
    pg::Migrator(files, {}).migrate(connection);
  }

  std::string names(const std::string& sql) { // the first column, in one line
    const auto result = connection.call(sql);
    std::string all;
    for (std::size_t i = 0; i < result.size(); ++i)
      all += (all.empty() ? "" : ", ") + result.cell(i, 0).value_or("");
    return all;
  }
};

// A worker, a runner, a started crawl with one claimed and two waiting snapshots, one seed.
constexpr const char* kRows = R"sql(
insert into holdfast.machine (id, hostname) values ('machine', 'host');
insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, heartbeat_at, lease_until)
  select ('00000000-0000-7000-8000-00000000000' || n)::uuid, 'machine', 'boot', n, n, type, now(),
         now() + interval '1 hour'
    from (values (1, 'worker'), (2, 'runner')) v(n, type);
insert into holdfast.crawl (id, status, snapshots_total, snapshots_open, seeds_left)
  values ('00000000-0000-7000-8000-0000000000c1', 'started', 3, 3, 1);
insert into holdfast.crawl_seed (crawl_id, position, url) select id, 1, 'https://site.test/seed' from holdfast.crawl;
insert into holdfast.crawl_queue (crawl_id) select id from holdfast.crawl;
insert into holdfast.snapshot (id, crawl_id, url, url_hash)
  select ('00000000-0000-7000-8000-0000000000e' || n)::uuid, c.id, 'https://site.test/' || n,
         sha256(convert_to('https://site.test/' || n, 'UTF8'))
    from holdfast.crawl c, generate_series(1, 3) n;
insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host) select id, crawl_id, host from holdfast.snapshot;
update holdfast.snapshot_queue set status = 'started', fence = 1, claimed_at = now(), due_at = retry_at,
    owner_id = '00000000-0000-7000-8000-000000000001'
  where snapshot_id = '00000000-0000-7000-8000-0000000000e1';
insert into holdfast.webhook (name, url, events) values ('hook', 'https://hooks.test/x', '{crawl.sealed}');
)sql";

struct BadRow {
  std::string constraint, sql;
};

std::vector<BadRow> bad_rows() {
  const auto crawl = [](const std::string& change) { return "update holdfast.crawl set " + change; };
  const auto sign_in = [](const std::string& values) {
    return "with p as (insert into holdfast.persona (name) values ('p')) insert into holdfast.persona_sign_in "
           "(persona, "
           "key_hash, process_id, port, address, certificate, id, url, asked_by, deadline) select " +
           values + ", gen_random_uuid(), 'https://site.test/', 'me', now()";
  };
  const auto token = [](const std::string& values) {
    return "insert into holdfast.api_token (name, role, hash, revoked_at, revoked_by, created_by) select " + values +
           ", 'me'";
  };
  const auto shelf = [](const std::string& values) {
    return "insert into holdfast.shelf (id, name, description, rule, created_by, changed_by) select "
           "gen_random_uuid(), " +
           values + ", 'me', 'me'";
  };
  const auto share = [](const std::string& values) {
    return "insert into holdfast.share (id, hash, snapshot_id, url, expires_at, revoked_at, created_by) select 'a', " +
           values + ", 'me'";
  };
  const auto request = [](const std::string& values) {
    return "insert into holdfast.api_request (caller, key, body_hash, crawl_id) select 'anna', " + values +
           ", gen_random_uuid()";
  };
  const auto process = [](const std::string& change) { return "update holdfast.process set " + change; };
  const auto queue = [](const std::string& change) { return "update holdfast.snapshot_queue set " + change; };
  const auto sealed = [](const std::string& columns, const std::string& values) {
    return "insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, fence, " + columns +
           ") select snapshot_id, crawl_id, 1, " + values + " from holdfast.snapshot_queue where owner_id is not null";
  };
  const auto result = [](const std::string& columns, const std::string& values) {
    return "insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, process_id, "
           "started_at, ended_at, " +
           columns + ") select snapshot_id, crawl_id, 1, 'p', 'h', owner_id, now(), now(), " + values +
           " from holdfast.snapshot_queue where owner_id is not null";
  };
  const auto capture = [](const std::string& column, const std::string& value, int rows = 1) {
    return "insert into holdfast.capture select (jsonb_populate_record(null::holdfast.capture, jsonb_build_object("
           "'snapshot_id', q.snapshot_id, 'crawl_id', q.crawl_id, 'file', 'p/a.warc.gz', 'record_offset', 0, "
           "'record_length', 1, 'url_key', 'test,site)/', 'at', now(), 'url', 'https://site.test/', 'mime', 'unk', "
           "'digest', 'sha1:x') || jsonb_build_object('" +
           column + "', " + value + "))).* from holdfast.snapshot_queue q, generate_series(1, " + std::to_string(rows) +
           ") where q.owner_id is not null";
  };
  const char* const kept_twice =
      "insert into holdfast.kept_capture (snapshot_id, position, crawl_id, source_file, source_offset, record_length, "
      "url_key, at, url, mime, digest) select snapshot_id, 1, crawl_id, 'f', 0, 1, 'k', now(), 'u', 'unk', 'd' from "
      "holdfast.snapshot_queue, generate_series(1, 2) where owner_id is not null";
  const auto quality = [](const std::string& columns, const std::string& values, int rows = 1) {
    return "insert into holdfast.replay_quality (snapshot_id, crawl_id, " + columns +
           ") select snapshot_id, crawl_id, " + values + " from holdfast.snapshot_queue, generate_series(1, " +
           std::to_string(rows) + ") where owner_id is not null";
  };
  const auto session = [](const std::string& columns, const std::string& values) {
    return "insert into holdfast.session (id, crawl_id, process_id, directory, " + columns +
           ") select gen_random_uuid(), c.id, p.id, '/d', " + values + " from holdfast.crawl c, holdfast.process p";
  };
  const auto session_hook = [&](const std::string& values) {
    return "with s as (" + session("status", "'opening'") +
           " limit 1 returning id) insert into holdfast.session_hook (session_id, plugin, hook_name, status, ended_at) "
           "select id, 'p', 'h', " +
           values + " from s";
  };
  const auto delivery = [](const std::string& columns, const std::string& values) {
    return "insert into holdfast.delivery (webhook, event, payload, " + columns + ") values ('hook', 'test', '', " +
           values + ")";
  };
  return {
      // The collection, lifecycles, events.
      {"collection_pkey", "insert into holdfast.collection default values"},
      {"collection_is_one_row", "insert into holdfast.collection (singleton) values (false)"},
      {"collection_log_level", "update holdfast.collection set log_level = 'loud'"},
      {"collection_max_attempts", "update holdfast.collection set max_attempts = 0"},
      {"collection_max_lapses", "update holdfast.collection set max_lapses = 0"},
      {"collection_max_worker_errors", "update holdfast.collection set max_worker_errors = 0"},
      {"collection_retries", "update holdfast.collection set retry_base = '0'"},
      {"collection_retries", "update holdfast.collection set retry_max = '1 second'"},
      {"lifecycle_edge_pkey", "insert into holdfast.lifecycle_edge select * from holdfast.lifecycle_edge"},
      {"event_has_object", "insert into holdfast.event (lifecycle, event, to_state) values ('crawl', 'add', 'queued')"},
      {"event_has_object", "insert into holdfast.event (lifecycle, object_id, objects, event, to_state) values "
                           "('crawl', gen_random_uuid(), '{}', 'add', 'queued')"},
      // Processes.
      {"process_status", process("status = 'zombie'")},
      {"process_type_known", process("process_type = 'server'")},
      {"process_exited_has_end", process("ended_at = now()")},
      {"process_exited_has_end", process("status = 'exited'")},
      {"process_request_known", process("request = 'jump'")},
      {"process_lease_has_heartbeat", process("heartbeat_at = null")},
      {"process_slots", process("slots = -1")},
      {"process_log_level", process("log_level = 'loud'")},
      {"process_machine_id_fkey", process("machine_id = 'nowhere'")},
      {"process_parent_id_fkey", process("parent_id = gen_random_uuid()")},
      {"process_single_runner", process("worker_type = 'worker_runner'")},
      // Crawls.
      {"crawl_pkey", "insert into holdfast.crawl (id) select id from holdfast.crawl"},
      {"crawl_status", crawl("status = 'done'")},
      {"crawl_options_object", crawl("options = '[]'")},
      {"crawl_scope_object", crawl("scope = '[]'")},
      {"crawl_depth", crawl("max_depth = -1")},
      {"crawl_depth", crawl("max_depth = 17")},
      {"crawl_max_urls", crawl("max_urls = -1")},
      {"crawl_max_bytes", crawl("max_bytes = -1")},
      {"crawl_max_snapshot_bytes", crawl("max_snapshot_bytes = -1")},
      {"crawl_max_time", crawl("max_time = '-1 second'")},
      {"crawl_max_parallel", crawl("max_parallel = 0")},
      {"crawl_host_delay", crawl("host_delay = '-1 second'")},
      {"crawl_host_parallel", crawl("host_parallel = 0")},
      {"crawl_wanted_to_complete", crawl("wanted = '{wget}'")},
      {"crawl_overwrites_or_skips", crawl("overwrite = true, only_new = true")},
      {"crawl_sealed_is_final", crawl("sealed_at = now()")},
      {"crawl_sealed_has_outcome", crawl("outcome = 'failed'")},
      {"crawl_sealed_is_idle", "insert into holdfast.crawl (id, status, sealed_at, outcome) values (gen_random_uuid(), "
                               "'sealed', now(), 'empty')"},
      {"crawl_sealed_is_idle", "insert into holdfast.crawl (id, status, sealed_at, outcome, retry_at, seeds_left) "
                               "values (gen_random_uuid(), 'sealed', now(), 'empty', null, 1)"},
      {"crawl_paused_is_parked", crawl("status = 'paused'")},
      {"crawl_counts", crawl("seeds_left = -1")},
      {"crawl_counts", crawl("snapshots_open = 4, snapshots_failed = -1")},
      {"crawl_counts", crawl("snapshots_excluded = -1")},
      {"crawl_open_adds_up", crawl("snapshots_open = snapshots_open + 1")},
      {"crawl_open_adds_up", crawl("snapshots_failed = 1")},
      {"crawl_open_adds_up", crawl("snapshots_cancelled = 1")},
      {"crawl_bytes_within_limit", crawl("max_bytes = 1, bytes = 2")},
      {"crawl_urls_within_limit", crawl("max_urls = 2")},
      {"crawl_seed_pkey", "insert into holdfast.crawl_seed select * from holdfast.crawl_seed"},
      {"crawl_seed_depth", "update holdfast.crawl_seed set depth = 17"},
      {"crawl_seed_url_canonical", "update holdfast.crawl_seed set url = 'https://Site.test/'"},
      {"crawl_queue_crawl_id_fkey", "insert into holdfast.crawl_queue (crawl_id) values (gen_random_uuid())"},
      {"crawl_lane_crawl_id_fkey", "insert into holdfast.crawl_lane (crawl_id, host) values (gen_random_uuid(), 'h')"},
      {"schedule_has_urls",
       "insert into holdfast.schedule (id, every, urls) values (gen_random_uuid(), 'daily', '{}')"},
      {"schedule_pace_is_of_watch", "insert into holdfast.schedule (id, every, urls, pace) values "
                                    "(gen_random_uuid(), 'daily', '{u}', '1 day')"},
      {"notice_says_something", "insert into holdfast.notice (schedule_id, crawl_id, snapshot_id, said) values "
                                "(gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '{}')"},
      {"notice_schedule_id_fkey", "insert into holdfast.notice (schedule_id, crawl_id, snapshot_id, said) values "
                                  "(gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), '{a}')"},
      {"schedule_last_crawl_id_fkey", "insert into holdfast.schedule (id, every, urls, last_crawl_id) values "
                                      "(gen_random_uuid(), 'daily', '{u}', gen_random_uuid())"},
      // Shelves and links.
      {"shelf_name", shelf("' x', '', null")},
      {"shelf_name", shelf("E'a\\nb', '', null")},
      {"shelf_name", shelf("repeat('x', 201), '', null")},
      {"shelf_description", shelf("'x', repeat('x', 10001), null")},
      {"shelf_rule", shelf("'x', '', '{}'")},
      {"shelf_page_shelf_id_fkey", "insert into holdfast.shelf_page (shelf_id, snapshot_id, crawl_id, position, "
                                   "added_by) select gen_random_uuid(), id, crawl_id, 1, 'me' from holdfast.snapshot"},
      {"shelf_page_crawl_id_fkey", "with s as (" + shelf("'x', '', null") +
                                       " returning id) insert into "
                                       "holdfast.shelf_page (shelf_id, snapshot_id, crawl_id, position, added_by) "
                                       "select id, id, id, 1, 'me' from s"},
      {"share_hash", share("'x', gen_random_uuid(), null, now() + interval '1 day', null")},
      {"share_shows_one_thing", share("sha256('x'), gen_random_uuid(), 'u', now() + interval '1 day', null")},
      {"share_expires", share("sha256('x'), null, 'u', now() + interval '6 years', null")},
      {"share_revoked_by_someone", share("sha256('x'), null, 'u', now() + interval '1 day', now()")},
      {"share_shelf_id_fkey", "insert into holdfast.share (id, hash, shelf_id, created_by, expires_at) values "
                              "('a', sha256('x'), gen_random_uuid(), 'me', now() + interval '1 day')"},
      // Snapshots.
      {"snapshot_other_url_hash_crawl_id_key", "insert into holdfast.snapshot (id, crawl_id, url, url_hash) select "
                                               "gen_random_uuid(), crawl_id, url, url_hash from holdfast.snapshot"},
      {"snapshot_url_hash", "update holdfast.snapshot set url = url || 'x'"},
      {"host", "insert into holdfast.snapshot (id, crawl_id, url, url_hash) select gen_random_uuid(), id, u, "
               "sha256(convert_to(u, 'UTF8')) from holdfast.crawl, (values ('https://user@site.test/')) v(u)"},
      {"snapshot_depth", "update holdfast.snapshot set depth = 17"},
      {"snapshot_given_title", "update holdfast.snapshot set given_title = ''"},
      {"snapshot_found_on_or_parent", "update holdfast.snapshot set parent_id = id, found_on = url"},
      {"snapshot_queue_pkey", "insert into holdfast.snapshot_queue select * from holdfast.snapshot_queue"},
      {"snapshot_queue_status", queue("status = 'sealed' where owner_id is null")},
      {"snapshot_queue_started_has_owner", queue("status = 'started' where owner_id is null")},
      {"snapshot_queue_started_has_owner", queue("status = 'queued' where owner_id is not null")},
      {"snapshot_queue_owner_has_claim", queue("claimed_at = now() where owner_id is null")},
      {"snapshot_queue_owner_has_claim", queue("claimed_at = null where owner_id is not null")},
      {"snapshot_queue_owner_has_place", queue("due_at = now() where owner_id is null")},
      {"snapshot_queue_owner_has_place", queue("due_at = null where owner_id is not null")},
      {"snapshot_queue_paused_is_parked", queue("status = 'paused' where owner_id is null")},
      {"snapshot_queue_excluded_is_paused", queue("excluded = true")},
      {"snapshot_queue_numbers", queue("attempts = -1")},
      {"snapshot_queue_numbers", queue("lapses = -1")},
      {"snapshot_sealed_outcome", sealed("outcome, reason", "'great', 'r'")},
      {"snapshot_sealed_has_files", sealed("outcome, manifest_sha256", "'succeeded', 'm'")},
      {"snapshot_sealed_has_files",
       sealed("outcome, directory", "'partial', '2026/01/site.test/' || snapshot_id || '/a1'")},
      {"snapshot_sealed_has_reason", sealed("outcome", "'refused'")},
      {"snapshot_sealed_facts", sealed("outcome, facts", "'failed', '{\"http_status\": 99}'")},
      {"snapshot_sealed_error_is_failed",
       sealed("outcome, facts, directory, manifest_sha256",
              "'partial', '{\"http_status\": 404}', '2026/01/site.test/' || snapshot_id || '/a1', 'm'")},
      {"snapshot_sealed_directory", sealed("outcome, directory", "'failed', '2026/01/site.test/' || snapshot_id")},
      {"snapshot_sealed_directory",
       sealed("outcome, directory", "'failed', '2026/01/site.test/' || snapshot_id || '/a2'")},
      {"snapshot_sealed_numbers", sealed("outcome, bytes", "'failed', -1")},
      {"snapshot_sealed_numbers", sealed("outcome, files", "'failed', -1")},
      {"snapshot_sealed_snapshot", "insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, fence, outcome) "
                                   "select gen_random_uuid(), id, 1, 'failed' from holdfast.crawl"},
      {"attempt_ending", "insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, ending) "
                         "select id, crawl_id, 1, id, now(), 'sealed' from holdfast.snapshot"},
      {"attempt_snapshot", "insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, "
                           "ending) select gen_random_uuid(), id, 1, id, now(), 'lapsed' from holdfast.crawl"},
      // Results.
      {"capture_other_pkey", capture("status", "200", 2)},
      {"capture_sealed", capture("status", "200")},
      {"capture_file", capture("file", "'../a.warc'")},
      {"capture_file", capture("file", "'p/a.txt'")},
      {"capture_record", capture("record_offset", "-1")},
      {"capture_record", capture("record_length", "0")},
      {"capture_url_key", capture("url_key", "'a b'")},
      {"capture_url_key", capture("url_key", "repeat('a', 2001)")},
      {"capture_url", capture("url", "''")},
      {"capture_status", capture("status", "99")},
      {"capture_mime", capture("mime", "'text/html; charset=utf-8'")},
      {"capture_digest", capture("digest", "''")},
      {"capture_refers_to", capture("refers_to", "'test,site)/2'")},
      {"kept_capture_pkey", kept_twice},
      {"replay_quality_pkey", quality("missing", "0", 2)},
      {"replay_quality_sealed", quality("missing", "0")},
      {"replay_quality_screenshot", quality("screenshot", "1.1")},
      {"replay_quality_text", quality("text", "-0.1")},
      {"replay_quality_resources", quality("resources", "2")},
      {"replay_quality_missing", quality("missing", "-1")},
      {"archive_result_status", result("status", "'started'")},
      {"archive_result_failure_has_error", result("status", "'failed'")},
      {"archive_result_files_array", result("status, output_files", "'succeeded', '{}'")},
      {"archive_result_numbers", result("status, output_bytes", "'succeeded', -1")},
      {"archive_result_numbers", result("status, wall_ms", "'succeeded', -1")},
      {"archive_result_started_with", result("status, started_with", "'succeeded', '[]'")},
      {"archive_result_started_with",
       result("status, started_with", "'succeeded', jsonb_build_object('command', repeat('x', 20000))")},
      {"archive_result_snapshot",
       "insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, "
       "started_at, ended_at) select gen_random_uuid(), id, 1, 'p', 'h', 'succeeded', id, now(), now() from "
       "holdfast.crawl"},
      {"running_hook_ended", "insert into holdfast.running_hook (process_id, snapshot_id, crawl_id, fence, plugin, "
                             "hook_name, started_at, ended_at) select gen_random_uuid(), id, crawl_id, 1, 'p', 'h', "
                             "now(), now() from holdfast.snapshot limit 1"},
      {"running_hook_pkey", "insert into holdfast.running_hook (process_id, snapshot_id, crawl_id, fence, plugin, "
                            "hook_name, started_at) select id, id, id, 1, 'p', 'h', now() from holdfast.crawl, "
                            "generate_series(1, 2)"},
      // Hosts, binaries.
      {"host_delay", "insert into holdfast.host (name, min_delay) values ('h', '-1 second')"},
      {"host_robots_delay", "insert into holdfast.host (name, robots_delay) values ('h', '-1 second')"},
      {"host_parallel", "insert into holdfast.host (name, max_parallel) values ('h', -1)"},
      {"host_backoff_level", "insert into holdfast.host (name, backoff_level) values ('h', -1)"},
      {"robots_state",
       "insert into holdfast.robots (origin, state, fetched_at, expires_at) values ('o', 'x', now(), now())"},
      {"robots_known_has_age", "insert into holdfast.robots (origin, state) values ('o', 'known')"},
      {"robots_fetcher_has_time", "insert into holdfast.robots (origin, fetcher_id) values ('o', gen_random_uuid())"},
      {"binary_status", "insert into holdfast.binary (machine_id, name, status) values ('machine', 'x', 'lost')"},
      {"binary_installed_has_path",
       "insert into holdfast.binary (machine_id, name, status) values ('machine', 'x', 'installed')"},
      {"binary_machine_id_fkey", "insert into holdfast.binary (machine_id, name) values ('nowhere', 'x')"},
      {"binary_owner_id_fkey",
       "insert into holdfast.binary (machine_id, name, owner_id) values ('machine', 'x', gen_random_uuid())"},
      // The runner.
      {"runner_term_forwards", "insert into holdfast.runner_term (epoch, process_id, label, valid_until) values (1, "
                               "gen_random_uuid(), 'r', now() - interval '1 hour')"},
      {"runner_term_ended_has_ending",
       "insert into holdfast.runner_term (epoch, process_id, label, valid_until, ended_at) values (1, "
       "gen_random_uuid(), 'r', now() + interval '1 hour', now())"},
      {"maintenance_every", "update holdfast.maintenance_task set every = '0'"},
      {"maintenance_batch", "update holdfast.maintenance_task set batch = 0"},
      {"maintenance_keep", "update holdfast.maintenance_task set keep = '-1 day'"},
      {"maintenance_function_name", "update holdfast.maintenance_task set function = 'worker_leave'"},
      // Sessions.
      {"session_status", session("status", "'lost'")},
      {"session_ended", session("status", "'closed'")},
      {"session_ended", session("status, ended_at", "'ready', now()")},
      {"session_failure_has_reason", session("status, ended_at", "'failed', now()")},
      {"session_one_live", session("status", "'ready'") + ", generate_series(1, 2)"},
      {"session_crawl_id_fkey", "insert into holdfast.session (id, crawl_id, process_id, directory) "
                                "select gen_random_uuid(), id, id, '/d' from holdfast.process"},
      {"session_process_id_fkey", "insert into holdfast.session (id, crawl_id, process_id, directory) "
                                  "select gen_random_uuid(), id, id, '/d' from holdfast.crawl"},
      {"session_hook_status", session_hook("'lost', now()")},
      {"session_hook_ended", session_hook("'started', now()")},
      {"session_hook_session_id_fkey", "insert into holdfast.session_hook (session_id, plugin, hook_name, status) "
                                       "values (gen_random_uuid(), 'p', 'h', 'started')"},
      // Text.
      {"page_text_sealed", "insert into holdfast.page_text (snapshot_id, crawl_id, language, text, words) "
                           "values (gen_random_uuid(), gen_random_uuid(), 'simple', '', '')"},
      {"page_text_bounded", "insert into holdfast.page_text (snapshot_id, crawl_id, language, text, words) "
                            "values (gen_random_uuid(), gen_random_uuid(), 'simple', repeat('x', 1048577), '')"},
      // Tokens.
      {"api_token_name", token("'Anna', 'reader', sha256('x'), null, null")},
      {"api_token_role", token("'anna', 'owner', sha256('x'), null, null")},
      {"api_token_hash", token("'anna', 'reader', 'x', null, null")},
      {"api_token_revoked_by_someone", token("'anna', 'reader', sha256('x'), now(), null")},
      {"api_request_key", request("'', sha256('x')")},
      {"api_request_body_hash", request("'k', 'x'")},
      {"account_name", "insert into holdfast.account select 'Anna', 'reader', '$y$' || repeat('a', 40), now(), 'me'"},
      {"account_role", "insert into holdfast.account select 'anna', 'owner', '$y$' || repeat('a', 40), now(), 'me'"},
      {"account_hash", "insert into holdfast.account select 'anna', 'reader', 'secret', now(), 'me'"},
      {"api_token_account_fkey", "insert into holdfast.api_token (name, role, hash, created_by, account) "
                                 "select 'anna', 'reader', sha256('x'), 'me', 'nobody'"},
      {"api_token_files_key", "insert into holdfast.api_token (name, role, hash, created_by, files_key) "
                              "values ('anna', 'reader', sha256('x'), 'me', '../')"},
      // Personas.
      {"persona_name", "insert into holdfast.persona (name) values ('none')"},
      {"persona_sealed", "insert into holdfast.persona (name, state) values ('p', 'x')"},
      {"persona_state_size", "insert into holdfast.persona (name, version, key_id, state) "
                             "values ('p', 1, 'k', convert_to(repeat('x', 67108865), 'UTF8'))"},
      {"persona_options", "insert into holdfast.persona (name, options) values ('p', '[]')"},
      {"persona_checks", "insert into holdfast.persona (name, checks) values ('p', '{}')"},
      {"persona_sign_in_key_hash", sign_in("'p', 'x', null, null, null, null")},
      {"persona_sign_in_certificate", sign_in("'p', null, null, 1, '::1', 'x'")},
      {"persona_sign_in_port", sign_in("'p', null, null, 1, null, null")},
      {"persona_sign_in_persona_fkey", sign_in("'nowhere', null, null, null, null, null")},
      {"persona_sign_in_process_id_fkey", sign_in("'p', null, gen_random_uuid(), 1, '::1', sha256('x')")},
      {"persona_signed_out_for_a_reason", "insert into holdfast.persona (name, signed_out_at) values ('p', now())"},
      {"counted_what", "insert into holdfast.counted (what) values ('hours')"},
      {"site_numbers",
       "insert into holdfast.site (host, pages, captures, failed, bytes, last_at) values ('h', 0, 0, 0, "
       "0, now())"},
      {"period_grain", "insert into holdfast.period values ('week', now(), 0, 0, 0, 0, 0, 0, 0)"},
      // Webhooks and commands.
      {"webhook_name",
       "insert into holdfast.webhook (name, url, events) values ('Ops!', 'https://hooks.test/x', '{crawl.sealed}')"},
      {"webhook_url",
       "insert into holdfast.webhook (name, url, events) values ('ops', 'ftp://hooks.test/x', '{crawl.sealed}')"},
      {"webhook_events",
       "insert into holdfast.webhook (name, url, events) values ('ops', 'https://hooks.test/x', '{}')"},
      {"delivery_status", delivery("status, ended_at, retry_at", "'lost', now(), null")},
      {"delivery_ended", delivery("ended_at", "now()")},
      {"delivery_due", delivery("retry_at", "null")},
      {"delivery_owner", delivery("status, ended_at, retry_at, owner", "'delivered', now(), null, 'x'")},
      {"delivery_webhook_fkey",
       "insert into holdfast.delivery (webhook, event, payload) values ('nowhere', 'test', '')"},
      {"control_kind", "insert into holdfast.control (action, kind, target) values ('pause', 'planet', 'x')"},
  };
}

} // namespace

TEST_CASE("every table, column and index says what it is") {
  Tables tables;
  CHECK(tables.names(
            "select relname from pg_class where relnamespace = 'holdfast'::regnamespace and relkind in ('r', 'p') and "
            "not relispartition and obj_description(oid, 'pg_class') is null") == "");
  CHECK(tables.names("select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid "
                     "where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p') and not "
                     "c.relispartition and a.attnum > 0 and "
                     "not a.attisdropped and col_description(c.oid, a.attnum) is null") == "");
  CHECK(tables.names("select c.relname from pg_class c where c.relnamespace = 'holdfast'::regnamespace and "
                     "c.relkind in ('i', 'I') and not c.relispartition and not exists (select from pg_constraint k "
                     "where k.conindid = c.oid) and "
                     "obj_description(c.oid, 'pg_class') is null") == "");
}

TEST_CASE("a reference without a foreign key says why") {
  Tables tables;
  CHECK(tables.names("select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid "
                     "where c.relnamespace = 'holdfast'::regnamespace and c.relkind in ('r', 'p') and not "
                     "c.relispartition and a.attname like '%\\_id' "
                     "and not exists (select from pg_constraint k where k.contype = 'f' and (k.conrelid = c.oid or "
                     "k.conrelid in (select inhrelid from pg_inherits where inhparent = c.oid)) and "
                     "a.attnum = any (k.conkey)) and a.atttypid = 'uuid'::regtype and "
                     "coalesce(col_description(c.oid, a.attnum), '') || obj_description(c.oid, 'pg_class') "
                     "not like '%No foreign key%'") == "");
}

TEST_CASE("every constraint has a name that was chosen for it") {
  Tables tables;
  CHECK(tables.names("select conname from pg_constraint where connamespace = 'holdfast'::regnamespace and "
                     "contype = 'c' and conname like '%\\_check'") == "");
}

TEST_CASE("every table of crawls can be distributed by crawl: all its unique keys hold the crawl") {
  Tables tables;
  // The exceptions are records that may stay on one server (deploy/scaling.md), live state, and the latest capture of
  // each URL, whatever its crawl, notices, and shelves.
  CHECK(
      tables.names("select x.relname from pg_index i join pg_class c on c.oid = i.indrelid join pg_class x on "
                   "x.oid = i.indexrelid join pg_attribute a on a.attrelid = c.oid and a.attname = 'crawl_id' and "
                   "not a.attisdropped where c.relnamespace = 'holdfast'::regnamespace and not c.relispartition and "
                   "i.indisunique and "
                   "not a.attnum = any (i.indkey) order by 1") ==
      "control_pkey, event_pkey, fingerprint_pkey, notice_pkey, running_hook_pkey, session_pkey, shelf_page_in_order, "
      "shelf_page_pkey");
}

TEST_CASE("bad rows are refused by the constraint that is there for them") {
  Tables tables;
  tables.connection.script(kRows);
  std::set<std::string> tried;
  for (const auto& row : bad_rows()) {
    CAPTURE(row.sql);
    tried.insert(row.constraint);
    try {
      tables.connection.call(row.sql);
      FAIL_CHECK("accepted; should be refused by " << row.constraint);
    } catch (const pg::DatabaseError& error) {
      CHECK_MESSAGE(std::string(error.what()).find("\"" + row.constraint + "\"") != std::string::npos, error.what());
    }
  }
  const auto all = tables.connection.call("select conname as name from pg_constraint where connamespace = "
                                          "'holdfast'::regnamespace and contype in ('c', 'f') and conparentid = 0");
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK_MESSAGE(tried.contains(all[i].text("name")), all[i].text("name") << " has no bad row");
}

TEST_CASE("host_of gives the host that lib/base reads in a canonical URL, and nothing for any other") {
  Tables tables;
  const auto host_of = [&](const std::string& url) {
    const auto answer = tables.connection.call("select holdfast.host_of($1) as host", pg::Params::of(url));
    return answer.one()["host"].value_or("-");
  };
  for (const std::string written :
       {"https://example.com", "http://Example.COM:80/", "https://example.com:8443/a?b=http://c/",
        "http://a-b_c.test./", "http://localhost/x", "http://127.1/", "http://0x7f.0.0.1:8080/",
        "https://[2001:DB8:0:0::1]/a:b@c", "http://[::ffff:1.2.3.4]:81/", "https://bücher.example/ü?ü",
        "https://example.com?q=1", "https://e.test/[x]/y]"}) {
    const auto url = base::parse_url(written);
    CAPTURE(url.text);
    CHECK(host_of(url.text) == url.host);
  }
  for (const std::string url :
       {"", "example.com", "https://example.com", "HTTPS://example.com/", "https://Example.com/", "ftp://example.com/",
        "https:///", "https://user@example.com/", "https://u:1@e.test/", "https://e.test:port/", "https://[::1/",
        "https://::1/", "https://e.test\n/", " https://e.test/"}) {
    CAPTURE(url);
    CHECK(host_of(url) == "-");
  }
}

TEST_CASE("is_facts takes what read_facts makes, and has a shape for facts that queries compute with") {
  Tables tables;
  const auto is = [&](const std::string& facts) {
    return tables.connection
        .call("select coalesce(holdfast.is_facts($1::jsonb), false) as it_is", pg::Params::of(facts))
        .one()
        .boolean("it_is");
  };
  const std::string missing = R"("resources": 3, "resources_missing": 2, "missing_reasons")";
  for (const auto& facts : std::vector<std::string>{
           "{}", R"({"http_status": 200, "mime": "text/html", "requests": 0})", "{" + missing + R"(: {"refused": 2}})",
           R"({"a": null, "b_2": ["x", {"Y": 1e15}], "c": -9007199254740992, "d": 0.5})"}) {
    CAPTURE(facts);
    CHECK(is(facts));
    CHECK(base::read_facts(nlohmann::json::parse(facts)));
  }
  for (const auto& facts : std::vector<std::string>{"[]", "7", R"({"": 1})", R"({"A": 1})", R"({"1a": 1})",
                                                    R"({"a b": 1})", R"({"a": 9007199254740994})", R"({"a": -1e16})"}) {
    CAPTURE(facts);
    CHECK(!is(facts));
    CHECK(!base::read_facts(nlohmann::json::parse(facts)));
  }
  const std::string id = R"("01a22080-9b2e-7db6-803b-5790f1baccff")";
  const std::vector<std::pair<std::string, std::string>> fitting{
      {"http_status", "200"}, {"mime", R"("text/html")"}, {"unrecorded", "{}"},      {"number", "-1.5"},
      {"found", "[]"},        {"change_from", id},        {"files_from", id},        {"change_share", "0.5"},
      {"look_share", "0.5"},  {"requests", "0"},          {"requests_refused", "0"}, {"received_bytes", "0"},
      {"bytes_saved", "0"},   {"words_added", "0"},       {"words_removed", "0"},    {"words_moved", "0"},
      {"links_added", "0"},   {"links_removed", "0"}};
  for (const auto& [name, value] : fitting) {
    CAPTURE(name);
    const auto fact = [&](const std::string& given) { return "{\"" + name + "\": " + given + "}"; };
    CHECK(is(fact(value)));
    CHECK(base::read_facts(nlohmann::json::parse(fact(value))));
    for (const auto* const strange : {"null", "true", R"("x")", "-99", "[1]", R"({"a": 1})"}) {
      const auto other = nlohmann::json::parse(strange);
      if (other.type_name() == std::string(nlohmann::json::parse(value).type_name()) &&
          (name == "number" || !other.is_number()) && !other.is_string())
        continue; // fits, too
      CAPTURE(std::string(strange));
      CHECK(!is(fact(strange)));
      if (name != "mime" || !other.is_string()) CHECK(!base::read_facts(nlohmann::json::parse(fact(strange))));
    }
  }
  for (const auto& facts :
       std::vector<std::string>{R"({"mime": "text/html; charset=utf-8"})", R"({"resources": 1})",
                                R"({"resources": 1, "resources_missing": 2, "missing_reasons": {}})",
                                "{" + missing + ": []}", R"({"a": ")" + std::string(140'000, 'a') + R"("})"})
    CHECK_MESSAGE(!is(facts), facts.substr(0, 100));
  // The database writes some values longer than they are in a record.
  for (const std::string piece :
       {"0", "[]", "1e-6", "1e300", "1e-300", "-1e15", R"({"a":1})", R"("\u0001")", "\"ä\""}) {
    base::Facts all;
    for (int i = 0; i < 64; ++i) {
      std::string list = "{\"f" + std::to_string(i) + "\":[" + piece;
      while (list.size() < 8100)
        list += "," + piece;
      base::merge_facts(all, base::read_facts(nlohmann::json::parse(list + "]}")).value_or(base::Facts()));
    }
    CHECK_MESSAGE(is(base::facts_json(all).dump()), piece);
  }
}

TEST_CASE("is_attempt_directory takes the directory of that attempt and no other") {
  Tables tables;
  const std::string id = "00000000-0000-7000-8000-0000000000e1";
  const auto is = [&](const std::string& directory) {
    return tables.connection
        .call("select holdfast.is_attempt_directory($1, $2::uuid, 7) as it_is", pg::Params::of(directory, id))
        .one()
        .boolean("it_is");
  };
  for (const std::string url : {"https://example.com/", "http://a_b.test.:8080/", "https://[2001:db8::1]/"})
    CHECK(is("2026/01/" + base::host_directory(base::parse_url(url)) + "/" + id + "/a7"));
  for (const auto& directory : std::vector<std::string>{
           "2026/01/h/" + id + "/a8", "2026/01/h/" + id + "/a7/", "2026/01/h/" + id, "/2026/01/h/" + id + "/a7",
           "2026/1/h/" + id + "/a7", "2026/01/../" + id + "/a7", "2026/01/./" + id + "/a7", "2026/01//" + id + "/a7",
           "2026/01/h/h/" + id + "/a7", "2026/01/h/00000000-0000-7000-8000-0000000000e2/a7",
           "2026/01/h/../h/" + id + "/a7", "x/2026/01/h/" + id + "/a7", std::string()})
    CHECK_MESSAGE(!is(directory), directory);
}
