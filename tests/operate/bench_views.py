#!/usr/bin/env python3
"""How long the views, lists and functions for people take in a large collection: bench_views.py [SNAPSHOTS] [--keep]

Starts a PostgreSQL of its own, fills a collection with SNAPSHOTS (default 1,000,000) and prints the median of nine calls of each.
Nothing is asserted: numbers depend on the machine. Not part of ctest."""

import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/cli"))
import support  # noqa: E402

FILL = """
set session_replication_role = replica;
insert into holdfast.machine (id, hostname) select 'm' || i, 'host' || i from generate_series(1, 20) i;
insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, worker_type, label, slots, beat_at, lease_until, started_at)
  select holdfast.new_uuid(), 'm' || (i % 20 + 1), 'boot', i, i, 'worker', 'snapshot', 'worker ' || i, 8, clock_timestamp(),
         clock_timestamp() + interval '1 day', clock_timestamp() - i * interval '1 minute' from generate_series(1, 20) i;
insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, worker_type, label, slots, beat_at, status, ended_at, exit_reason, started_at)
  select holdfast.new_uuid(), 'm' || (i % 20 + 1), 'boot', i, i, 'worker', 'snapshot', 'old worker ' || i, 8, clock_timestamp(), 'exited',
         clock_timestamp() - i * interval '1 hour', 'done', clock_timestamp() - i * interval '2 hours' from generate_series(1, 5000) i;
-- Crawls: one of half of all, one of a tenth, and many small ones.
create temporary table c as select holdfast.new_uuid() as id, i, case i when 1 then :n / 2 when 2 then :n / 10 else (:n * 4 / 10) / 2000 end as size
  from generate_series(1, 2002) i;
create temporary table s as
  select holdfast.new_uuid() as id, c.id as crawl_id, c.i, k, row_number() over () as no,
         'https://site' || (k % 500) || '.example/' || c.i || '/page/' || k as url, 'site' || (k % 500) || '.example' as host
    from c cross join lateral generate_series(1, c.size) k;
alter table s add column open boolean;
update s set open = case when i = 1 then k % 5 = 0 when i % 20 = 0 then true else false end;
insert into holdfast.snapshot (id, crawl_id, url, url_hash, host, depth, title, created_at)
  select id, crawl_id, url, sha256(convert_to(url, 'UTF8')), host, least(k, 2), 'Page ' || k, clock_timestamp() - interval '1 hour' from s;
insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at) select id, crawl_id, host, clock_timestamp() - interval '1 hour' from s where open;
insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, directory, manifest_sha256, bytes, files, title, sealed_at)
  select id, crawl_id, case when no % 50 = 0 then 'partial' else 'succeeded' end, 1, 'x/' || id || '/a1', 'd', 1000, 3, 'Title of ' || k,
         clock_timestamp() - no * interval '10 milliseconds' from s where not open;
insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, started_at, ended_at, error, wall_ms, user_ms, system_ms)
  select s.id, s.crawl_id, 1, h, 'on_Snapshot__' || h, case when no % 50 = 0 and h = 'wget' then 'failed' else 'succeeded' end,
         (select id from holdfast.process where status = 'running' limit 1), clock_timestamp() - no * interval '10 milliseconds',
         clock_timestamp() - no * interval '10 milliseconds', case when no % 50 = 0 and h = 'wget' then 'no route to host' else '' end, 100, 50, 5
    from s cross join (values ('wget'), ('title'), ('screenshot')) v(h) where not open;
insert into holdfast.event (lifecycle, object_id, crawl_id, from_state, event, to_state) select 'snapshot', id, crawl_id, 'started', 'seal', 'sealed' from s where not open;
insert into holdfast.crawl (id, label, max_depth, first_url, status, retry_at, started_at, snapshots_total, snapshots_open, snapshots_succeeded, snapshots_partial, outcome, sealed_at, bytes)
  select c.id, 'crawl ' || c.i, 2, 'https://site.example/' || c.i, case when n.open > 0 then 'started' else 'sealed' end, null, now(), n.total, n.open,
         n.good, n.partial, case when n.open = 0 then 'partial' end, case when n.open = 0 then now() end, n.bytes
    from c join (select s.crawl_id, count(*) as total, count(*) filter (where s.open) as open, count(*) filter (where not s.open and s.no % 50 <> 0) as good,
                        count(*) filter (where not s.open and s.no % 50 = 0) as partial, 1000 * count(*) filter (where not s.open) as bytes
                   from s group by 1) n on n.crawl_id = c.id;
insert into holdfast.crawl_queue (crawl_id, ready_at) select id, clock_timestamp() from holdfast.crawl where status = 'started';
-- Some are in work, with hooks that run.
update holdfast.snapshot_queue q set owner_id = o.owner, claimed_at = now(), started_at = now(), status = 'started', fence = 1
  from (select x.snapshot_id, (array(select id from holdfast.process where status = 'running'))[x.r % 20 + 1] as owner
          from (select snapshot_id, row_number() over () as r from holdfast.snapshot_queue limit 150) x) o where o.snapshot_id = q.snapshot_id;
insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, timeout_ms)
  select q.snapshot_id, q.crawl_id, 1, 'wget', 'on_Snapshot__35_wget', 'started', q.owner_id, 60000 from holdfast.snapshot_queue q where owner_id is not null;
insert into holdfast.host (name, min_delay) select 'site' || i || '.example', '1 second' from generate_series(1, 100) i;
set session_replication_role = origin;
vacuum analyze;
"""

ASKS = [
    ("v_status", "select * from holdfast.v_status"),
    ("v_crawl", "select * from holdfast.v_crawl order by created_at desc limit 50"),
    ("v_snapshot", "select * from holdfast.v_snapshot order by id desc limit 50"),
    ("v_snapshot, one", "select * from holdfast.v_snapshot where id = :'snapshot'"),
    ("v_queue", "select * from holdfast.v_queue limit 50"),
    ("v_queue, in the order of due times", "select * from holdfast.v_queue order by retry_at limit 50"),
    ("v_running", "select * from holdfast.v_running"),
    ("v_result, one snapshot", "select * from holdfast.v_result where snapshot_id = :'snapshot'"),
    ("v_failure", "select * from holdfast.v_failure order by ended_at desc limit 50"),
    ("v_node", "select * from holdfast.v_node where status = 'running'"),
    ("v_event", "select * from holdfast.v_event order by id desc limit 50"),
    ("v_host", "select * from holdfast.v_host order by name limit 50"),
    ("v_session", "select * from holdfast.v_session where ended_at is null"),
    ("v_runner", "select * from holdfast.v_runner"),
    ("v_duty", "select * from holdfast.v_duty"),
    ("v_schedule", "select * from holdfast.v_schedule"),
    ("v_backlog", "select * from holdfast.v_backlog"),
    ("v_stuck", "select * from holdfast.v_stuck"),
    ("v_process", "select * from holdfast.v_process"),
    ("v_throughput", "select * from holdfast.v_throughput"),
    ("metrics()", "select * from holdfast.metrics()"),
    ("why(), sealed snapshot", "select * from holdfast.why(:'snapshot')"),
    ("why(), open snapshot", "select * from holdfast.why(:'waiting')"),
    ("why(), large crawl", "select * from holdfast.why(:'large')"),
    ("why(), short id", "select * from holdfast.why(right(:'large', 8))"),
    ("list crawls", "select * from holdfast.list_crawls(null, null, null, null, 50)"),
    ("list snapshots", "select * from holdfast.list_snapshots(null, null, null, null, null, 50)"),
    ("list snapshots of a large crawl", "select * from holdfast.list_snapshots(:'large', null, null, null, null, 50)"),
    ("list snapshots of a small crawl", "select * from holdfast.list_snapshots(:'small', null, null, null, null, 50)"),
    ("list results", "select * from holdfast.list_results(null, null, null, null, 50)"),
    ("list results of a large crawl", "select * from holdfast.list_results(:'large', null, null, null, 50)"),
    ("list queue", "select * from holdfast.list_queue(null, null, null, null, 50)"),
    ("list running", "select * from holdfast.list_running(null, null, null, 50)"),
    ("list nodes", "select * from holdfast.list_nodes(null, 50)"),
    ("list events", "select * from holdfast.list_events(null, null, 50)"),
    ("list events of a small crawl", "select * from holdfast.list_events(:'small', null, 50)"),
    ("list failures", "select * from holdfast.list_failures(null, null, null, 50)"),
    ("crawl_snapshots(), large", "select * from holdfast.crawl_snapshots(:'large', null, 48)"),
    ("crawl_snapshots(), small", "select * from holdfast.crawl_snapshots(:'small', null, 48)"),
    ("search(), a word", "select * from holdfast.search('page/77', null, 20000, 50)"),
    ("search(), nothing found", "select * from holdfast.search('no such thing', null, 20000, 50)"),
    ("search(), a whole URL", "select * from holdfast.search('https://site1.example/1/page/1', null, 20000, 50)"),
]


def main():
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    if [argument for argument in sys.argv[1:] if not argument.isdigit() and argument != "--keep"]:
        sys.exit(__doc__)
    snapshots = int(numbers[0]) if numbers else 1_000_000
    database = support.Database()
    try:
        def psql(*arguments, text=None):
            done = subprocess.run(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", database.url(), *arguments],
                                  input=text, capture_output=True, text=True, env={**os.environ, "PGCLIENTENCODING": "UTF8"})
            if done.returncode != 0:
                sys.exit(done.stderr)
            return done.stdout

        files = sorted((ROOT / "migrations").glob("[0-9]*.sql")) + sorted((ROOT / "migrations/functions").glob("*.sql"))
        psql(text="create schema if not exists holdfast; create table holdfast.schema_migration (name text primary key);")
        psql(text="\n".join(file.read_text() for file in files))
        print(f"filling {snapshots:,} snapshots ...", flush=True)
        psql("-v", f"n={snapshots}", text=FILL)
        ids = dict(
            zip(("snapshot", "waiting", "large", "small"),
                psql(text="""select (select snapshot_id from holdfast.snapshot_sealed order by sealed_at limit 1);
                             select (select snapshot_id from holdfast.snapshot_queue where owner_id is null limit 1);
                             select id from holdfast.crawl order by snapshots_total desc limit 1;
                             select id from holdfast.crawl order by snapshots_total, id limit 1;""").split()))
        variables = [word for name, value in ids.items() for word in ("-v", f"{name}={value}")]
        worst = 0
        for name, ask in ASKS:
            out = psql(*variables, text=f"\\o /dev/null\n{ask};\n\\timing on\n" + f"{ask};\n" * 9)
            times = [float(value) for value in re.findall(r"Time: ([\d.]+) ms", out)]
            median = statistics.median(times)
            worst = max(worst, median)
            print(f"{median:9.1f} ms  {name}", flush=True)
        print(f"{worst:9.1f} ms  the slowest of {len(ASKS)}")
    finally:
        if "--keep" in sys.argv:
            input(f"{database.url()}\nReturn ends it ")
        database.close()


if __name__ == "__main__":
    main()
