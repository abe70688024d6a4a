"""Draining a queue of no-op items: Holdfast's worker_turn through lib/store and through pgbench, and the same rows by the
least SQL."""

import json

WORKER = "lpad(to_hex(:worker::int), 32, '0')::uuid"
RESULT = {
    "plugin": "none",
    "hook": "on_Snapshot__10_none",
    "status": "succeeded",
    "background": False,
    "pid": 1000,
    "started_at": "2026-01-01T00:00:00Z",
    "ended_at": "2026-01-01T00:00:00Z",
    "output": "page.html",
    "error": "",
    "output_files": [{"path": "page.html", "type": "text/html", "size": 1000, "sha256": "f" * 64}],
    "output_bytes": 1000,
    "exit_code": 0,
    "wall_ms": 10,
    "user_ms": 1,
    "system_ms": 0,
    "peak_memory_bytes": 1048576,
    "read_bytes": 0,
    "written_bytes": 1000,
}
# :pages is what the turn before has claimed, as finished pages.
TURN = f"""\\set worker :client_id + 1
select coalesce(jsonb_agg(jsonb_build_object('snapshot', t.snapshot_id, 'crawl', t.crawl_id, 'fence', t.fence,
    'ending', 'sealed', 'outcome', 'succeeded', 'spend', false, 'reason', '',
    'directory', '2026/01/site.example/' || t.snapshot_id || '/a' || t.fence, 'manifest', repeat('d', 64),
    'bytes', 1000, 'files', 1, 'results', '[{json.dumps(RESULT)}]'::jsonb)) filter (where t.what = 'claimed'), '[]')::text as pages
  from holdfast.worker_turn({WORKER}, :pages::jsonb, :batch::int, '{{}}', false, false, 0, 0) t \\gset
"""

# The rows that a snapshot with one hook leaves, by the least SQL and with no trigger, in one transaction: what a turn
# takes longer is asking, checking and answering.
IDS = "snapshot_id = any (:s::uuid[])"
ROWS = f"""\\set worker :client_id + 1
begin;
with due as (
  select snapshot_id, crawl_id from holdfast.snapshot_queue
    where crawl_id = (select id from holdfast.crawl order by random() limit 1) and owner_id is null
      and retry_at <= now() order by retry_at limit :batch::int for update skip locked
), taken as (
  update holdfast.snapshot_queue q set owner_id = {WORKER}, claimed_at = now(), due_at = retry_at, status = 'started', event = 'start',
      fence = q.fence + 1, attempts = q.attempts + 1
    from due d where q.snapshot_id = d.snapshot_id and q.crawl_id = d.crawl_id returning q.snapshot_id, q.crawl_id
), told as (
  insert into holdfast.event (lifecycle, objects, crawl_id, event, to_state)
    select 'snapshot', array_agg(snapshot_id), crawl_id, 'start', 'started' from taken group by crawl_id
)
select coalesce(array_agg(snapshot_id), '{{}}')::text as s, coalesce(min(crawl_id::text), {WORKER}::text) as c from taken \\gset
with gone as (
  delete from holdfast.snapshot_queue where {IDS} returning *
), results as (
  insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, pid, started_at,
      ended_at, output, output_files, output_bytes, exit_code, wall_ms, user_ms, system_ms, peak_memory_bytes, read_bytes, written_bytes)
    select snapshot_id, crawl_id, fence, 'none', 'on_Snapshot__10_none', 'succeeded', owner_id, 1000, now(), now(), 'page.html',
           '{json.dumps(RESULT["output_files"])}', 1000, 0, 10, 1, 0, 1048576, 0, 1000 from gone
), told as (
  insert into holdfast.event (lifecycle, objects, crawl_id, event, to_state)
    select 'snapshot', array_agg(snapshot_id), crawl_id, 'seal', 'sealed' from gone group by crawl_id
), kept as (
  insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, owner_id, directory, manifest_sha256, bytes,
      files, attempts, started_at)
    select snapshot_id, crawl_id, 'succeeded', fence, owner_id, '2026/01/site.example/' || snapshot_id || '/a' || fence,
           repeat('d', 64), 1000, 1, attempts, claimed_at from gone
)
update holdfast.crawl set snapshots_open = snapshots_open - n, snapshots_succeeded = snapshots_succeeded + n
  from (select count(*) as n from gone) g where id = :c::uuid;
commit;
"""

WORKERS = """insert into holdfast.machine (id, hostname) values ('bench', 'bench') on conflict do nothing;
select holdfast.process_join(lpad(to_hex(n), 32, '0')::uuid, '{"machine": {"id": "bench", "hostname": "bench"},
    "boot_id": "bench", "process_type": "worker", "worker_type": "snapshot", "label": "bench", "version": "",
    "slots": 1000}' || jsonb_build_object('pid', n, 'start_ticks', n), '1 hour')
  from generate_series(1, 64) n"""

LEASE_TABLE = """create table lease (id bigint generated always as identity primary key, due timestamptz not null default now(),
  owner int);
create index on lease (due) where owner is null;
insert into lease (due) select now() - random() * interval '1 hour' from generate_series(1, %d); analyze"""
LEAST = """with taken as (
  update lease set owner = 1 where id = any (array(select id from lease where owner is null and due <= now() order by due
      limit :batch::int for update skip locked)) returning id)
select coalesce(array_agg(id), '{}')::text as ids from taken \\gset
delete from lease where id = any (:ids::bigint[]);
"""
SEALED = "select count(*) from holdfast.snapshot_sealed"


def claimers(kind, count):
    return f"{kind}, {count} claimer{'s' * (count > 1)}"


def ours(bench, items, count, batch, hooks=1, seconds=60, crawls=20):
    """The answer of bench-queue; with the server's CPU microseconds for each item, and with commits and sealed snapshots
    of the whole program (the first turns, which plan, are not among its items)."""
    with bench.server.database(bench.filled(items, crawls)) as database:
        answer = bench.queue("drain", database, claimers=count, batch=batch, hooks=hooks, seconds=seconds)
        answer["commits"] = bench.server.commits(database)
        answer["sealed"] = int(bench.server.sql(database, SEALED))
    if answer["items"] < items * 0.9 - 3 * count and answer["seconds"] < seconds - 1:
        raise RuntimeError(f"only {answer['items']} of {items} were sealed")
    return {**answer, "cpu_us": answer["cpu"]["drain"] * 1e6 / answer["items"]}


def pgbench(bench, items, clients, batch, script, triggers=True):
    """Items a second, and the server's CPU microseconds for each."""
    with bench.server.database(bench.filled(items, 20)) as database, bench.scratch() as scratch:
        bench.server.sql(database, WORKERS + "; checkpoint")
        if not triggers:
            bench.server.sql(database, f"alter database {database} set session_replication_role = replica")
        seconds, cpu = bench.server.pgbench(
            database, script, clients, int(items * 0.9) // batch, scratch, define=[f"batch={batch}", "pages=[]"]
        )
        count = int(bench.server.sql(database, SEALED))
        return count / seconds, cpu * 1e6 / count


def least(bench, items, clients, batch):
    with bench.server.database() as database, bench.scratch() as scratch:
        bench.server.sql(database, LEASE_TABLE % items + "; checkpoint")
        seconds, cpu = bench.server.pgbench(
            database, LEAST, clients, int(items * 0.9) // batch, scratch, define=[f"batch={batch}"]
        )
        count = items - int(bench.server.sql(database, "select count(*) from lease"))
        return count / seconds, cpu * 1e6 / count


def rate(answer):
    return answer["items"] / answer["seconds"]


def add_until_claimable(bench, figures, items):
    with bench.server.database(bench.migrated()) as database:
        answer = bench.queue("fill", database, items=items, crawls=1)
    cpu = {phase: answer["cpu"][phase] * 1e6 / items for phase in ("add", "expand")}
    figures.add("holdfast, add in bulk", "items/s", items / answer["add_seconds"], cpu["add"])
    figures.add(
        "holdfast, add in bulk and expand",
        "items/s",
        items / (answer["add_seconds"] + answer["expand_seconds"]),
        cpu["add"] + cpu["expand"],
    )


def measure(bench, figures):
    many = bench.options.items or bench.pick(20_000, 40_000)
    few = max(640, many // 10)  # a commit for each page takes many times as long
    limit = bench.pick(10, 20)
    for repeat in range(bench.repeats):

        def attempt(name, call):
            bench.say(f"drain {repeat + 1}/{bench.repeats}: {name}")
            with figures.attempt(name):
                call(name)

        def add_ours(name, items, count, batch, hooks=1):
            answer = ours(bench, items, count, batch, hooks, limit)
            figures.add(name, "items/s", rate(answer), answer["cpu_us"])

        for count in (1, 4, 16, 64):
            attempt("holdfast, " + claimers("single", count), lambda name: add_ours(name, few, count, 1))
            attempt("holdfast, " + claimers("batched", count), lambda name: add_ours(name, many, count, 100))
        attempt("holdfast, ten hooks, " + claimers("batched", 4), lambda name: add_ours(name, many // 4, 4, 100, 10))
        attempt("holdfast, enqueue", lambda name: add_until_claimable(bench, figures, many))
        for kind, count in (("single", 1), ("single", 16), ("batched", 1), ("batched", 4)):
            items, batch = (few, 1) if kind == "single" else (many, 100)
            attempt(
                "the same SQL in pgbench, " + claimers(kind, count),
                lambda name: figures.add(name, "items/s", *pgbench(bench, items, count, batch, TURN)),
            )
        for count in (1, 4):
            attempt(
                "the same rows by least SQL in pgbench, " + claimers("batched", count),
                lambda name: figures.add(name, "items/s", *pgbench(bench, many, count, 100, ROWS, triggers=False)),
            )
        for kind, count in (("single", 1), ("batched", 1), ("batched", 4)):
            items, batch = (few, 1) if kind == "single" else (many * 5, 100)
            attempt(
                "least SQL of a queue in pgbench, " + claimers(kind, count),
                lambda name: figures.add(name, "items/s", *least(bench, items, count, batch)),
            )
    compare(figures)


def compare(figures):
    for kind, count in (("single", 1), ("single", 16), ("batched", 1), ("batched", 4)):
        figures.ratio(
            "holdfast, " + claimers(kind, count), "the same SQL in pgbench, " + claimers(kind, count), target=0.8
        )
    for count in (1, 4):
        name = claimers("batched", count)
        figures.ratio("holdfast, " + name, "the same rows by least SQL in pgbench, " + name)
