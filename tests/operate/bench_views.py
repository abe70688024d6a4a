#!/usr/bin/env python3
"""What the views, verbs and pages for people cost in a large collection.

bench_views.py [SNAPSHOTS] [--program FILE] [--markdown] [--months N] [--hooks N] [--data DIRECTORY]
               [--only PATTERN]
    Starts a PostgreSQL of its own, fills a collection with SNAPSHOTS (default 1,000,000) and prints the median time of
    each view and function; with a built program also of each verb (the whole process) and each page. Numbers depend
    on the machine.
    --months N: the crawls are of N months (default 1), so in as many partitions.
    --hooks N: each sealed snapshot has N results, up to ten (default 3).
    --data DIRECTORY: the server's files stay there, and the next run measures the collection that it finds.
    --only PATTERN: of the views, verbs and pages only those whose name matches the regular expression.
bench_views.py --budget
    For ctest: no times. In two collections, one four times as large as the other, each view and function reads about
    as many pages of the database: none looks at everything. Nor does it where the crawls are of four months. Says as
    well which view is not asked for here.
"""

import argparse
import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tests")]
from harness.case import Database  # noqa: E402

FILL = """
set session_replication_role = replica;
-- What a transaction adds to a table that it has truncated is not written to the log, at wal_level minimal.
begin;
select format('truncate %s cascade', string_agg('holdfast.' || t, ', ')) from unnest(holdfast.growing_tables()) t \\gexec
-- Indexes are made at the end, but for those that foreign keys need.
create temporary table later as
  select i.relname as name, t.relname as on_table, c.conname is not null as is_constraint,
         case when c.conname is null then replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ')
              else format('alter table holdfast.%I add constraint %I %s', t.relname, c.conname, pg_get_constraintdef(c.oid)) end as makes
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
    left join pg_constraint c on c.conindid = i.oid and c.conrelid = t.oid and c.contype in ('p', 'u')
   where t.relnamespace = 'holdfast'::regnamespace and t.relname = any (holdfast.growing_tables())
     and not exists (select from pg_constraint f
                       where f.contype = 'f' and (f.conindid = i.oid or f.conindid in (select relid from pg_partition_tree(i.oid))));
select format(case when is_constraint then 'alter table holdfast.%1$I drop constraint %2$I' else 'drop index holdfast.%2$I' end,
              on_table, name) from later \\gexec
insert into holdfast.machine (id, hostname) select 'm' || i, 'host' || i from generate_series(1, 20) i;
insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, worker_type, label, slots, heartbeat_at, lease_until, started_at)
  select holdfast.new_uuid(), 'm' || (i % 20 + 1), 'boot', i, i, 'worker', 'snapshot', 'worker ' || i, 8, clock_timestamp(),
         clock_timestamp() + interval '1 day', clock_timestamp() - i * interval '1 minute' from generate_series(1, 20) i;
insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, worker_type, label, slots, heartbeat_at, status, ended_at, exit_reason, started_at)
  select holdfast.new_uuid(), 'm' || (i % 20 + 1), 'boot', i, i, 'worker', 'snapshot', 'old worker ' || i, 8, clock_timestamp(), 'exited',
         clock_timestamp() - i * interval '1 hour', 'done', clock_timestamp() - i * interval '2 hours' from generate_series(1, 5000) i;
select holdfast.partition_month(holdfast.month_of(clock_timestamp(), i)) from generate_series(1, :months - 1) i;
-- Crawls: one of half of all, one of a tenth, and many small ones.
create temporary table c as
  select case i % :months when 0 then holdfast.new_uuid()
              else overlay(holdfast.new_uuid()::text placing
                     left(holdfast.first_id(holdfast.month_of(clock_timestamp(), i % :months))::text, 13) from 1)::uuid
         end as id,
         i, case i when 1 then :n / 2 when 2 then :n / 10 else (:n * 4 / 10) / 2000 end as size
  from generate_series(1, 2002) i;
create temporary table s as
  select p.*, case when i = 1 then k % 5 = 0 else i % 20 = 0 end as open
    from (select holdfast.new_uuid() as id, c.id as crawl_id, c.i, k, row_number() over () as no,
                 'https://site' || (k % 500) || '.example/' || c.i || '/page/' || k as url, 'site' || (k % 500) || '.example' as host
            from c cross join lateral generate_series(1, c.size) k) p;
-- Tags: all of the second crawl have one, one small crawl has another, some have one that was found.
insert into holdfast.snapshot (id, crawl_id, url, url_hash, depth, title, created_at, tags)
  select id, crawl_id, url, sha256(convert_to(url, 'UTF8')), least(k, 2), 'Page ' || k, clock_timestamp() - interval '1 hour',
         case i when 2 then '{common}' when 1777 then '{rare}' else '{}' end::text[]
         || case when not open and get_byte(uuid_send(id), 15) = 7 then '{found}' else '{}' end::text[]
    from s;
insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at) select id, crawl_id, host, clock_timestamp() - interval '1 hour' from s where open;
insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, directory, manifest_sha256, bytes, files, title, sealed_at)
  select id, crawl_id, case when no % 50 = 0 then 'partial' else 'succeeded' end, 1, '2025/11/' || host || '/' || id || '/a1', 'd', 1000, 3, 'Title of ' || k,
         clock_timestamp() - no * :gap * interval '1 millisecond' from s where not open;
insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, started_at, ended_at, error, wall_ms, user_ms, system_ms)
  select s.id, s.crawl_id, 1, h, 'on_Snapshot__' || h, case when no % 50 = 0 and h = 'wget' then 'failed' else 'succeeded' end,
         (select id from holdfast.process where status = 'running' limit 1), clock_timestamp() - no * :gap * interval '1 millisecond',
         clock_timestamp() - no * :gap * interval '1 millisecond', case when no % 50 = 0 and h = 'wget' then 'no route to host' else '' end, 100, 50, 5
    from s cross join unnest(('{wget,title,screenshot,dom,text,favicon,headers,outlinks,hashes,readability}'::text[])[1 : :hooks]) h where not open;
insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, started_at, ended_at)
  select s.id, s.crawl_id, 1, 'pdf', 'on_Snapshot__52_pdf', 'skipped', (select id from holdfast.process where status = 'running' limit 1), clock_timestamp(), clock_timestamp()
    from s where not open and no % 100 = 0;
insert into holdfast.event (lifecycle, objects, crawl_id, from_state, event, to_state)
  select 'snapshot', array_agg(id), crawl_id, 'started', 'seal', 'sealed' from s where not open group by crawl_id, no / 8;
insert into holdfast.crawl (id, label, max_depth, first_url, status, retry_at, started_at, snapshots_total, snapshots_open, snapshots_succeeded, snapshots_partial, outcome, sealed_at, bytes)
  select c.id, 'crawl ' || c.i, 2, 'https://site.example/' || c.i, case when n.open > 0 then 'started' else 'sealed' end, null, now(), n.total, n.open,
         n.good, n.partial, case when n.open = 0 then 'partial' end, case when n.open = 0 then now() end, n.bytes
    from c join (select s.crawl_id, count(*) as total, count(*) filter (where s.open) as open, count(*) filter (where not s.open and s.no % 50 <> 0) as good,
                        count(*) filter (where not s.open and s.no % 50 = 0) as partial, 1000 * count(*) filter (where not s.open) as bytes
                   from s group by 1) n on n.crawl_id = c.id;
insert into holdfast.crawl_queue (crawl_id, ready_at) select id, clock_timestamp() from holdfast.crawl where status = 'started';
-- Some are in work, with hooks that run.
update holdfast.snapshot_queue q set owner_id = o.owner, claimed_at = now(), due_at = retry_at, status = 'started', fence = 1
  from (select x.snapshot_id, (array(select id from holdfast.process where status = 'running'))[x.r % 20 + 1] as owner
          from (select snapshot_id, row_number() over () as r from holdfast.snapshot_queue limit 150) x) o where o.snapshot_id = q.snapshot_id;
insert into holdfast.running_hook (snapshot_id, crawl_id, fence, plugin, hook_name, process_id, started_at, timeout_ms)
  select q.snapshot_id, q.crawl_id, 1, 'wget', 'on_Snapshot__35_wget', q.owner_id, now(), 60000 from holdfast.snapshot_queue q where owner_id is not null;
-- A fifth of the hosts has limits.
insert into holdfast.host (name, min_delay) select 'site' || i || '.example', '1 second' from generate_series(1, 100) i;
insert into holdfast.crawl_lane (crawl_id, host, next_at) select distinct q.crawl_id, q.host, now() from holdfast.snapshot_queue q;
-- What a year of use leaves besides.
insert into holdfast.session (id, crawl_id, process_id, status, directory, opened_at, ready_at, draining_at, ended_at)
  select holdfast.new_uuid(), c.id, (select id from holdfast.process where status = 'running' limit 1), 'closed', '/tmp', clock_timestamp() - k * interval '1 minute',
         clock_timestamp(), clock_timestamp(), clock_timestamp() from (select id from holdfast.crawl limit 2000) c cross join generate_series(1, 2) k;
insert into holdfast.session (id, crawl_id, process_id, status, directory, ready_at)
  select holdfast.new_uuid(), q.crawl_id, q.owner_id, 'ready', '/tmp', clock_timestamp() from (select distinct crawl_id, owner_id from holdfast.snapshot_queue where owner_id is not null) q;
insert into holdfast.control (action, kind, target, crawl_id, by_whom) select 'pause', 'crawl', id::text, id, 'ann' from holdfast.crawl;
insert into holdfast.schedule (id, label, every, urls, next_run_at) select holdfast.new_uuid(), 'schedule ' || i, 'daily', '{https://site.example/}', clock_timestamp()
  from generate_series(1, 200) i;
insert into holdfast.maintenance_run (task, epoch, process_id, began_at, ended_at, count)
  select 'lapsed', 1, holdfast.new_uuid(), clock_timestamp() - i * interval '2 seconds', clock_timestamp() - i * interval '2 seconds', 0 from generate_series(1, least(40000, :n / 4)) i;
insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, ending)
  select s.id, s.crawl_id, 0, (select id from holdfast.process where status = 'running' limit 1), clock_timestamp(), 'lapsed' from s where not open and no % 10 = 0;
insert into holdfast.webhook (name, url, events) select 'hook' || i, 'https://hooks.example/', '{crawl.sealed}' from generate_series(1, 5) i;
insert into holdfast.delivery (webhook, event, payload, status, retry_at, ended_at)
  select 'hook' || (i % 5 + 1), 'crawl.sealed', '{}', case when i % 4 = 0 then 'waiting' else 'delivered' end, case when i % 4 = 0 then clock_timestamp() end,
         case when i % 4 <> 0 then clock_timestamp() end from generate_series(1, greatest(1000, :n / 10)) i;
set session_replication_role = origin;
select makes from later \\gexec
commit;
vacuum analyze;
"""

ASKS = [
    ("v_delivery", "select * from holdfast.v_delivery order by id desc limit 50"),
    ("v_webhook", "select * from holdfast.v_webhook"),
    ("v_token", "select * from holdfast.v_token"),
    ("v_account", "select * from holdfast.v_account"),
    ("v_persona", "select * from holdfast.v_persona"),
    ("v_control", "select * from holdfast.v_control order by id desc limit 50"),
    ("v_hook_cost", "select * from holdfast.v_hook_cost order by cpu_ms_total desc"),
    ("hook_cost() of a large crawl", "select * from holdfast.hook_cost(:'large')"),
    (
        "v_crawl, open ones (top)",
        "select * from holdfast.v_crawl where status <> 'sealed' order by created_at desc limit 20",
    ),
    ("v_running, longest (top)", "select * from holdfast.v_running order by running_for desc limit 50"),
    ("list_events_after (events --follow)", "select * from holdfast.list_events_after(0, 2000, null)"),
    ("v_attempt", "select * from holdfast.v_attempt limit 50"),
    (
        "v_attempt of a snapshot",
        "select * from holdfast.v_attempt where snapshot_id = (select snapshot_id from holdfast.snapshot_sealed limit 1)",
    ),
    ("v_capture of a URL", "select * from holdfast.v_capture where url_key = 'test,site)/' order by at limit 50"),
    ("v_replay_quality, the worst", "select * from holdfast.v_replay_quality order by score limit 50"),
    (
        "v_capture_quality, incomplete",
        "select * from holdfast.v_capture_quality where resources_missing > 0 order by sealed_at desc limit 50",
    ),
    ("v_status", "select * from holdfast.v_status"),
    ("v_crawl", "select * from holdfast.v_crawl order by created_at desc limit 50"),
    ("v_snapshot", "select * from holdfast.v_snapshot order by id desc limit 50"),
    ("v_snapshot, one", "select * from holdfast.v_snapshot where id = :'snapshot'"),
    ("v_queue", "select * from holdfast.v_queue limit 50"),
    ("v_queue, in the order of due times", "select * from holdfast.v_queue order by retry_at limit 50"),
    ("v_running", "select * from holdfast.v_running"),
    ("v_result, one snapshot", "select * from holdfast.v_result where snapshot_id = :'snapshot'"),
    ("list_sites()", "select * from holdfast.list_sites(null, 200)"),
    ("v_site", "select * from holdfast.v_site order by last_at desc limit 50"),
    ("v_period", "select * from holdfast.v_period order by at desc, grain limit 50"),
    ("v_change", "select * from holdfast.v_change order by sealed_at desc, id desc limit 50"),
    ("v_failure", "select * from holdfast.v_failure order by ended_at desc limit 50"),
    ("v_worker", "select * from holdfast.v_worker where status = 'running'"),
    ("v_event", "select * from holdfast.v_event order by id desc limit 50"),
    ("v_host", "select * from holdfast.v_host order by name limit 50"),
    ("v_session", "select * from holdfast.v_session where ended_at is null"),
    ("v_runner", "select * from holdfast.v_runner"),
    ("v_term", "select * from holdfast.v_term limit 50"),
    ("v_maintenance", "select * from holdfast.v_maintenance"),
    ("v_schedule", "select * from holdfast.v_schedule"),
    ("v_watch", "select * from holdfast.v_watch"),
    ("v_notice", "select * from holdfast.v_notice order by id desc limit 50"),
    ("v_shelf", "select * from holdfast.v_shelf order by lower(name), id limit 50"),
    ("v_share", "select * from holdfast.v_share order by created_at desc limit 50"),
    ("v_backlog", "select * from holdfast.v_backlog"),
    ("v_stuck", "select * from holdfast.v_stuck"),
    ("v_process", "select * from holdfast.v_process"),
    ("v_total", "select * from holdfast.v_total"),
    ("v_state", "select * from holdfast.v_state"),
    ("v_throughput", "select * from holdfast.v_throughput"),
    ("metrics()", "select * from holdfast.metrics()"),
    ("why(), sealed snapshot", "select * from holdfast.why(:'snapshot')"),
    ("why(), open snapshot", "select * from holdfast.why(:'waiting')"),
    ("why(), a webhook", "select * from holdfast.why('hook1')"),
    ("why(), large crawl", "select * from holdfast.why(:'large')"),
    ("why(), short id", "select * from holdfast.why(right(:'large', 8))"),
    ("list crawls", "select * from holdfast.v_crawl order by id desc limit 50"),
    ("list snapshots", "select * from holdfast.list_snapshots(null, null, null, null, null, 50)"),
    ("list snapshots of a large crawl", "select * from holdfast.list_snapshots(:'large', null, null, null, null, 50)"),
    ("list snapshots of a small crawl", "select * from holdfast.list_snapshots(:'small', null, null, null, null, 50)"),
    ("list results", "select * from holdfast.list_results(null, null, null, null, 50)"),
    ("list results of a large crawl", "select * from holdfast.list_results(:'large', null, null, null, 50)"),
    ("list queue", "select * from holdfast.list_queue(null, null, null, null, 50)"),
    ("list snapshots --status queued", "select * from holdfast.list_snapshots(null, null, 'queued', null, null, 50)"),
    ("list snapshots --status started", "select * from holdfast.list_snapshots(null, null, 'started', null, null, 50)"),
    (
        "list snapshots --status paused (none)",
        "select * from holdfast.list_snapshots(null, null, 'paused', null, null, 50)",
    ),
    ("list snapshots --status sealed", "select * from holdfast.list_snapshots(null, null, 'sealed', null, null, 50)"),
    (
        "list snapshots --outcome partial",
        "select * from holdfast.list_snapshots(null, null, null, null, null, 50, 'partial')",
    ),
    (
        "list snapshots --outcome partial of a large crawl",
        "select * from holdfast.list_snapshots(:'large', null, null, null, null, 50, 'partial')",
    ),
    (
        "list snapshots --outcome failed (none)",
        "select * from holdfast.list_snapshots(null, null, null, null, null, 50, 'failed')",
    ),
    (
        "list snapshots --status sealed of a small crawl",
        "select * from holdfast.list_snapshots(:'small', null, 'sealed', null, null, 50)",
    ),
    ("snapshot_number(), far", "select holdfast.snapshot_number(5000, null, null, null, null)"),
    ("snapshot_number(), sealed", "select holdfast.snapshot_number(5000, 'sealed', null, null, null)"),
    (
        "list snapshots --status started of a large crawl",
        "select * from holdfast.list_snapshots(:'large', null, 'started', null, null, 50)",
    ),
    ("list snapshots --tag, many", "select * from holdfast.list_snapshots(null, null, null, null, 'common', 50)"),
    ("list snapshots --tag, few", "select * from holdfast.list_snapshots(null, null, null, null, 'rare', 50)"),
    ("list snapshots --tag, found", "select * from holdfast.list_snapshots(null, null, null, null, 'found', 50)"),
    ("list snapshots --tag, none", "select * from holdfast.list_snapshots(null, null, null, null, 'none', 50)"),
    (
        "list snapshots --tag of a large crawl, none",
        "select * from holdfast.list_snapshots(:'large', null, null, null, 'rare', 50)",
    ),
    (
        "list snapshots --url, many",
        "select * from holdfast.list_snapshots(null, null, null, 'site77.example', null, 50)",
    ),
    ("list snapshots --url, few", "select * from holdfast.list_snapshots(null, null, null, '/1777/page/7', null, 50)"),
    (
        "list snapshots --url, none",
        "select * from holdfast.list_snapshots(null, null, null, 'no such thing', null, 50)",
    ),
    (
        "list snapshots --url of a large crawl, none",
        "select * from holdfast.list_snapshots(:'large', null, null, 'no such thing', null, 50)",
    ),
    ("list results --status failed", "select * from holdfast.list_results(null, null, 'failed', null, 50)"),
    ("list results --status skipped", "select * from holdfast.list_results(null, null, 'skipped', null, 50)"),
    (
        "list results --status noresults (none)",
        "select * from holdfast.list_results(null, null, 'noresults', null, 50)",
    ),
    ("list results --status started", "select * from holdfast.list_results(null, null, 'started', null, 50)"),
    (
        "list results --status failed of a large crawl",
        "select * from holdfast.list_results(:'large', null, 'failed', null, 50)",
    ),
    (
        "list results --status noresults of a large crawl (none)",
        "select * from holdfast.list_results(:'large', null, 'noresults', null, 50)",
    ),
    ("list results --url, few", "select * from holdfast.list_results(null, null, null, '/1777/page/7', 50)"),
    ("list results --url, none", "select * from holdfast.list_results(null, null, null, 'no such thing', 50)"),
    (
        "list results --url of a large crawl, none",
        "select * from holdfast.list_results(:'large', null, null, 'no such thing', 50)",
    ),
    ("list queue --status started", "select * from holdfast.list_queue(null, null, 'started', null, 50)"),
    ("list queue --status paused (none)", "select * from holdfast.list_queue(null, null, 'paused', null, 50)"),
    ("list queue --url, none", "select * from holdfast.list_queue(null, null, null, 'no such thing', 50)"),
    ("list failures --url, none", "select * from holdfast.list_failures(null, null, 'no such thing', 50)"),
    ("list failures --host", "select * from holdfast.list_failures(null, null, null, 50, null, 'site77.example')"),
    ("list failures --plugin, none", "select * from holdfast.list_failures(null, null, null, 50, 'none')"),
    ("list failures of a large crawl", "select * from holdfast.list_failures(:'large', null, null, 50)"),
    (
        "list crawls --url, none",
        "select * from holdfast.v_crawl where holdfast.has_part(first_url, 'no such thing') order by id desc limit 50",
    ),
    ("list crawls --tag, none", "select * from holdfast.v_crawl where 'none' = any (tags) order by id desc limit 50"),
    ("crawls by failures", "select * from holdfast.v_crawl order by failed desc, id desc limit 100"),
    ("list events of a large crawl", "select * from holdfast.list_events(:'large', null, 50)"),
    ("list events of a snapshot", "select * from holdfast.list_events(null, :'snapshot', 50)"),
    ("list running", "select * from holdfast.v_running order by running_for desc limit 50"),
    ("list workers", "select * from holdfast.v_worker order by started_at desc limit 50"),
    ("list queue of a large crawl", "select * from holdfast.list_queue(:'large', null, null, null, 50)"),
    ("list sessions", "select * from holdfast.v_session order by opened_at desc limit 50"),
    ("list hosts", "select * from holdfast.v_host order by name limit 50"),
    ("list webhooks", "select * from holdfast.v_webhook order by name limit 50"),
    ("v_binary", "select * from holdfast.v_binary order by hostname, name limit 50"),
    ("v_purge", "select * from holdfast.v_purge limit 50"),
    ("v_partition", "select * from holdfast.v_partition"),
    ("v_robots", "select * from holdfast.v_robots order by origin limit 50"),
    ("v_session_log", "select * from holdfast.v_session_log order by ended_at desc limit 50"),
    ("list deliveries", "select * from holdfast.v_delivery order by id desc limit 50"),
    (
        "list deliveries that wait",
        "select * from holdfast.v_delivery where status = 'waiting' order by id desc limit 50",
    ),
    ("list events", "select * from holdfast.list_events(null, null, 50)"),
    ("list events of a small crawl", "select * from holdfast.list_events(:'small', null, 50)"),
    ("list failures", "select * from holdfast.list_failures(null, null, null, 50)"),
    ("crawl_snapshots(), large", "select * from holdfast.crawl_snapshots(:'large', null, 48)"),
    ("crawl_snapshots(), small", "select * from holdfast.crawl_snapshots(:'small', null, 48)"),
    ("search_names(), a word", "select * from holdfast.search_names('page/77', null, 20000, 50)"),
    ("search_names(), nothing found", "select * from holdfast.search_names('no such thing', null, 20000, 50)"),
    (
        "search_names(), a whole URL",
        "select * from holdfast.search_names('https://site1.example/1/page/1', null, 20000, 50)",
    ),
]


VERBS = [
    "status",
    *(
        f"list {what}"
        for what in (
            "crawls",
            "snapshots",
            "results",
            "queue",
            "running",
            "sessions",
            "workers",
            "events",
            "failures",
            "hosts",
            "webhooks",
            "deliveries",
            "binaries",
        )
    ),
    "list snapshots --status queued",
    "list snapshots --status started",
    "list snapshots --status paused",
    "list snapshots --status sealed",
    "list snapshots --crawl {large} --status started",
    "list snapshots --tag common",
    "list snapshots --tag rare",
    "list snapshots --tag none",
    "list snapshots --url site77.example",
    "list snapshots --url no-such-thing",
    "list snapshots --crawl {large} --url no-such-thing",
    "list results --status failed",
    "list results --status skipped",
    "list results --status started",
    "list results --crawl {large} --status failed",
    "list results --crawl {large} --status noresults",
    "list results --url no-such-thing",
    "list results --crawl {large} --url no-such-thing",
    "list queue --status started",
    "list queue --status paused",
    "list queue --url no-such-thing",
    "list running --url no-such-thing",
    "list failures --url no-such-thing",
    "list failures --plugin none",
    "list failures --crawl {large}",
    "list crawls --url no-such-thing",
    "list crawls --status paused",
    "list crawls --tag none",
    "list events --crawl {large}",
    "list events --snapshot {snapshot}",
    "list hosts --url 77",
    "list queue --crawl {large}",
    "list snapshots --crawl {large}",
    "list results --crawl {small}",
    "show {large}",
    "show {snapshot}",
    "why {large}",
    "why {waiting}",
    "why {snapshot}",
    "why site1.example",
    "logs {snapshot}",
    "events -n 20",
    "host list",
    "schedule list",
    "webhook list",
    "runner --status",
]
PAGES = [
    "/",
    "/workers",
    "/hosts",
    "/failures",
    "/events",
    "/search?q=page/77",
    "/search?q=no+such+thing",
    "/search?q=common",
    "/sites",
    "/search?q=site77.example",
    "/crawl/{large}",
    "/crawl/{small}",
    "/snapshot/{snapshot}",
    "/snapshot/{waiting}",
    "/live.json?at=/",
    "/live.json?at=/workers",
    "/live.json?at=/crawl/{large}",
    "/metrics",
]

# In a partition that is mostly one crawl, PostgreSQL reads that crawl in the order of the list.
READS_THE_CRAWL = {"list results --url of a large crawl, none"}
# The newest 2,000 failures, more than the small collection has.
READS_A_WINDOW = {"list failures --url, none", "list failures --host"}


class Kept(Database):
    """A server whose files stay, with memory for a large collection. Not durable while it is filled."""

    LOADING = {
        "fsync": "off",
        "full_page_writes": "off",
        "autovacuum": "off",
        "wal_level": "minimal",
        "max_wal_senders": 0,
    }
    MEASURED = {
        "fsync": "on",
        "full_page_writes": "on",
        "autovacuum": "on",
        "wal_level": "replica",
        "max_wal_senders": 10,
    }

    def __init__(self, directory):
        self.is_new = not (directory / "data").exists()
        super().__init__(
            directory,
            shared_buffers="2GB",
            effective_cache_size="8GB",
            maintenance_work_mem="1GB",
            random_page_cost="1.1",
            max_wal_size="8GB",
            checkpoint_timeout="30min",
            **(self.LOADING if self.is_new else self.MEASURED),
        )

    def create(self):
        if self.is_new:
            super().create()

    def filled(self):
        self.sql("checkpoint")
        self.restart(**self.MEASURED)

    def close(self):
        self.sql("checkpoint")
        self.stop(signal.SIGINT)


class Collection:
    """A database on the server, filled with so many snapshots."""

    def __init__(self, server, name, snapshots, program=None, gap=10, months=1, hooks=3):
        self.url = server.url(name)
        self.environment = {
            **os.environ,
            "HOLDFAST_DATABASE_URL": self.url,
            "HOLDFAST_DATA_DIR": f"/tmp/holdfast-bench-{os.getpid()}",
            "LANG": "C.UTF-8",
        }
        if server.sql(f"select count(*) from pg_database where datname = '{name}'") == "0":
            server.sql(f"create database {name}")
            self.fill(program, snapshots, gap, months, hooks)
            if isinstance(server, Kept):
                server.filled()
        self.ids = dict(
            zip(
                ("snapshot", "waiting", "large", "small"),
                self.psql(
                    text="""select (select snapshot_id from holdfast.snapshot_sealed order by sealed_at limit 1);
                                  select (select snapshot_id from holdfast.snapshot_queue where owner_id is null limit 1);
                                  select id from holdfast.crawl order by snapshots_total desc limit 1;
                                  select id from holdfast.crawl order by snapshots_total, id limit 1;"""
                ).split(),
            )
        )
        self.variables = [word for name, value in self.ids.items() for word in ("-v", f"{name}={value}")]

    def fill(self, program, snapshots, gap, months, hooks):
        """`gap`: milliseconds between two seals."""
        if program:
            subprocess.run([program, "migrate"], env=self.environment, check=True, capture_output=True)
        else:
            files = sorted((ROOT / "migrations").glob("[0-9]*.sql")) + sorted(
                (ROOT / "migrations/functions").glob("*.sql")
            )
            self.psql(text="\n".join(file.read_text() for file in files))
        self.psql(
            "-v", f"n={snapshots}", "-v", f"gap={gap}", "-v", f"months={months}", "-v", f"hooks={hooks}", text=FILL
        )

    def psql(self, *arguments, text=None):
        done = subprocess.run(
            ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", self.url, *arguments],
            input=text,
            capture_output=True,
            text=True,
            env={**os.environ, "PGCLIENTENCODING": "UTF8"},
        )
        if done.returncode != 0:
            sys.exit(done.stderr)
        return done.stdout

    def time_of(self, ask):
        out = self.psql(*self.variables, text=f"\\o /dev/null\n{ask};\n\\timing on\n" + f"{ask};\n" * 9)
        return [float(value) for value in re.findall(r"Time: ([\d.]+) ms", out)]

    def pages_of(self, ask):
        """Pages of the database that it reads, found in memory or not, with what the functions in it read."""
        out = self.psql(
            *self.variables, text=f"\\o /dev/null\n{ask};\n\\o\nexplain (analyze, buffers, format json) {ask};"
        )
        plan = json.loads(out)[0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def times_of(call, times=9):
    call()
    taken = []
    for _ in range(times):
        began = time.monotonic()
        call()
        taken.append((time.monotonic() - began) * 1000)
    return taken


def bench(server, snapshots, program, markdown, months, hooks, only):
    print(f"filling {snapshots:,} snapshots ...", file=sys.stderr, flush=True)
    collection = Collection(server, "bench", snapshots, program, months=months, hooks=hooks)
    worst = 0

    def tell(kind, name, taken):
        nonlocal worst
        median = statistics.median(taken)
        worst = max(worst, median)
        print(
            (
                f"| {kind} | `{name}` | {median:.1f} | {min(taken):.1f} |"
                if markdown
                else f"{median:9.1f} ms  (fastest {min(taken):.1f})  {kind}: {name}"
            ),
            flush=True,
        )

    if markdown:
        print("| what | name | median, ms | fastest, ms |\n|---|---|---|---|")
    wanted = re.compile(only)
    for name, ask in ASKS:
        if wanted.search(name):
            tell("database", name, collection.time_of(ask))
    if program:

        def verb(words):
            done = subprocess.run([program, *words.split()], env=collection.environment, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                sys.exit(f"{words}: {done.stderr}")

        for words in filter(wanted.search, VERBS):
            tell(
                "verb",
                words.format(large="CRAWL", small="SMALL", snapshot="SNAPSHOT", waiting="WAITING"),
                times_of(lambda: verb(words.format(**collection.ids))),
            )
        serving = subprocess.Popen(
            [program, "serve", "--set", "serve.listen=127.0.0.1:0"],
            env=collection.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            port = int(re.search(r":(\d+)/", serving.stdout.readline()).group(1))
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

            def page(path):
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    sys.exit(f"{path}: {answer.status}")

            for path in filter(wanted.search, PAGES):
                tell(
                    "page",
                    path.format(large="LARGE", small="SMALL", snapshot="SNAPSHOT", waiting="WAITING"),
                    times_of(lambda: page(path.format(**collection.ids))),
                )
        finally:
            serving.terminate()
            serving.wait()
    print(f"{worst:.1f} ms: the slowest", file=sys.stderr)


def budget(server):
    small, large = Collection(server, "small", 8_000, gap=300), Collection(server, "large", 32_000, gap=300)
    spread = Collection(server, "spread", 32_000, gap=300, months=4)
    asked = {name for _, ask in ASKS for name in re.findall(r"holdfast\.(v_\w+)", ask)}
    views = set(
        small.psql(
            text="select relname from pg_class where relnamespace = 'holdfast'::regnamespace and relkind = 'v' and relname like 'v\\_%'"
        ).split()
    )
    lists = set(
        small.psql(
            text="select proname from pg_proc where pronamespace = 'holdfast'::regnamespace and proname like 'list\\_%'"
        ).split()
    )
    listed = {name for _, ask in ASKS for name in re.findall(r"holdfast\.(list_\w+)\(", ask)}
    problems = [f"{name} is not asked for in ASKS" for name in sorted((views - asked) | (lists - listed))]
    for name, ask in ASKS:
        ask = ask.replace("null, 20000, 50)", "null, 2000, 50)")  # a window that both are larger than
        few, many, parts = small.pages_of(ask), large.pages_of(ask), spread.pages_of(ask)
        line = f"{few:7} {many:7} {parts:7}  {name}"
        print(line, flush=True)
        if many > 1.5 * few + 300 and name not in READS_A_WINDOW:
            problems.append(f"grows with the collection, in pages read: {line}")
        if parts > 4 * many + 1000 and name not in READS_THE_CRAWL:
            problems.append(f"reads too much of other months: {line}")
    if problems:
        sys.exit("\n".join(problems))


def main():
    if "--help" in sys.argv or "-h" in sys.argv:
        sys.exit(__doc__)
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("snapshots", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--months", type=int, default=1)
    parser.add_argument("--hooks", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="")
    for flag in ("--markdown", "--budget"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    program = options.program and str(options.program.resolve())
    server = Kept(options.data.resolve()) if options.data else Database()
    try:
        if options.budget:
            budget(server)
        else:
            bench(server, options.snapshots, program, options.markdown, options.months, options.hooks, options.only)
    finally:
        server.close()


if __name__ == "__main__":
    main()
