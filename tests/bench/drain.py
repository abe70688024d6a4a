"""Draining a queue of no-op items: Holdfast's own functions, the same SQL in pgbench, the least possible SQL, and four other queues."""

import peers

CLAIM = """\\set node_number :client_id + 1
select count(*) as n, coalesce(array_agg(snapshot_id), '{}')::text as s, coalesce(array_agg(crawl_id), '{}')::text as c, coalesce(array_agg(fence), '{}')::text as f
  from holdfast.snapshot_take(lpad(to_hex(:node_number::int), 32, '0')::uuid, :batch::int, '{}', false) \\gset
\\if :n > 0
"""
NODE = "lpad(to_hex(:node_number::int), 32, '0')::uuid"
RESULT = '{"output":"page.html","output_bytes":1000,"exit_code":0,"wall_ms":10,"user_ms":1}'
# :s in SQL would be text; pgbench sends variables as untyped parameters, so the casts are enough.
SETS = [
    f"select holdfast.result_start_many({NODE}, :s::uuid[], :c::uuid[], :f::bigint[], p, h, o, o, o, null) from "
    "(select array_agg(text 'none') as p, array_agg(text 'on_Snapshot__10_none') as h, array_agg(0) as o from unnest(:s::uuid[])) a;",
    f"select * from (select array_agg(text 'none') as p, array_agg(text 'on_Snapshot__10_none') as h, array_agg(text 'succeeded') as s, jsonb_agg('{RESULT}'::jsonb) as r "
    f"from unnest(:s::uuid[])) a cross join lateral holdfast.result_finish_many({NODE}, :s::uuid[], :c::uuid[], :f::bigint[], p, h, a.s, r);",
    "select * from (select array_agg(text 'succeeded') as o, array_agg(text '') as e, array_agg(text '2026/01/site.example/id/a1') as d, array_agg(repeat('d', 64)) as m, "
    "array_agg(bigint '1000') as b, array_agg(bigint '3') as n from unnest(:s::uuid[])) a cross join lateral "
    f"holdfast.snapshot_seal_many({NODE}, :s::uuid[], :c::uuid[], :f::bigint[], o, e, d, m, b, n, e, '[]');",
]
OURS = CLAIM + "\n".join(SETS) + "\n\\endif\n"

# The rows that a snapshot with one hook leaves, by the least SQL and with no trigger: what is left of the time is asking, checking and telling.
IDS = "snapshot_id = any (:s::uuid[])"
ROWS = f"""\\set node_number :client_id + 1
with taken as (
  update holdfast.snapshot_queue q set owner_id = {NODE}, claimed_at = now(), started_at = now(), status = 'started', fence = q.fence + 1, attempts = q.attempts + 1
    from (select snapshot_id, crawl_id from holdfast.snapshot_queue where crawl_id = (select id from holdfast.crawl order by random() limit 1) and owner_id is null and not lane
            and retry_at <= now() order by retry_at limit :batch::int for update skip locked) d where q.snapshot_id = d.snapshot_id and q.crawl_id = d.crawl_id returning q.snapshot_id, q.crawl_id
), told as (insert into holdfast.event (lifecycle, objects, crawl_id, event, to_state) select 'snapshot', array_agg(snapshot_id), crawl_id, 'start', 'started' from taken group by crawl_id)
select coalesce(array_agg(snapshot_id), '{{}}')::text as s, coalesce(min(crawl_id::text), {NODE}::text) as c from taken \\gset
insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, process_id) select s, :c::uuid, 1, 'none', 'on_Snapshot__10_none', {NODE} from unnest(:s::uuid[]) s;
update holdfast.archive_result set status = 'succeeded', ended_at = now(), output = 'page.html', output_bytes = 1000, exit_code = 0, wall_ms = 10, user_ms = 1 where {IDS};
with gone as (delete from holdfast.snapshot_queue where {IDS} returning *),
  told as (insert into holdfast.event (lifecycle, objects, crawl_id, event, to_state) select 'snapshot', array_agg(snapshot_id), crawl_id, 'seal', 'sealed' from gone group by crawl_id),
  kept as (insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, owner_id, directory, manifest_sha256, bytes, files, attempts)
             select snapshot_id, crawl_id, 'succeeded', fence, owner_id, '2026/01/site.example/id/a1', repeat('d', 64), 1000, 3, attempts from gone)
update holdfast.crawl set snapshots_open = snapshots_open - n, snapshots_succeeded = snapshots_succeeded + n from (select count(*) as n from gone) g where id = :c::uuid;
"""

NODES = """insert into holdfast.machine (id, hostname) values ('bench', 'bench') on conflict do nothing;
select holdfast.node_join(lpad(to_hex(n), 32, '0')::uuid, '{"id": "bench", "hostname": "bench"}', 'bench', n, n, null, 'worker', 'snapshot', 'bench', '', 1000, '1 day')
  from generate_series(1, 64) n"""

LEASE_TABLE = """create table lease (id bigint generated always as identity primary key, due timestamptz not null default now(), owner int);
create index on lease (due) where owner is null;
insert into lease (due) select now() - random() * interval '1 hour' from generate_series(1, %d); analyze"""
LEAST = """with taken as (
  update lease set owner = 1 where id = any (array(select id from lease where owner is null and due <= now() order by due limit :batch::int for update skip locked)) returning id)
select coalesce(array_agg(id), '{}')::text as ids from taken \\gset
delete from lease where id = any (:ids::bigint[]);
"""


def ours(bench, items, claimers, batch, settle, seconds, crawls=20):
    with bench.server.database(bench.filled(items, crawls)) as database:
        answer = bench.queue("drain", database, claimers=claimers, batch=batch, settle=settle, seconds=seconds)
        if answer["items"] < items and answer["seconds"] < seconds:
            raise RuntimeError(f"only {answer['items']} of {items} were sealed")
        return answer


def pgbench(bench, items, clients, batch, script, triggers=True):
    with bench.server.database(bench.filled(items, 20)) as database, bench.scratch() as scratch:
        bench.server.sql(database, NODES + "; checkpoint")
        if not triggers:
            bench.server.sql(database, f"alter database {database} set session_replication_role = replica")
        seconds, _ = bench.server.pgbench(database, script, clients, int(items * 0.9) // batch, scratch, define=[f"batch={batch}"])
        return int(bench.server.sql(database, "select count(*) from holdfast.snapshot_sealed")) / seconds


def least(bench, items, clients, batch):
    with bench.server.database() as database, bench.scratch() as scratch:
        bench.server.sql(database, LEASE_TABLE % items + "; checkpoint")
        seconds, _ = bench.server.pgbench(database, LEAST, clients, int(items * 0.9) // batch, scratch, define=[f"batch={batch}"])
        return (items - int(bench.server.sql(database, "select count(*) from lease"))) / seconds


def measure(bench, figures):
    tools = peers.Tools(bench)
    many = bench.options.items or bench.pick(20_000, 20_000)
    few = max(64, many // 10)  # a commit for each call takes a hundred times as long
    limit = bench.pick(10, 20)
    claimers = bench.pick([1, 4, 16, 64], [1, 4, 16, 64])
    for repeat in range(bench.repeats):
        step = lambda what: bench.say(f"drain {repeat + 1}/{bench.repeats}: {what}")
        for count in claimers:
            for batch, settle, items in ((1, "one", few), (100, "many", many)):
                kind = "batched" if settle == "many" else "single"
                name = f"holdfast, {kind}, {count} claimer{'s' * (count > 1)}"
                step(name)
                with figures.attempt(name):
                    answer = ours(bench, items, count, batch, settle, limit)
                    figures.add(name, "items/s", rate(answer))
        step("enqueue")
        with figures.attempt("holdfast, enqueue"), bench.server.database(bench.migrated()) as database:
            filled = bench.queue("fill", database, items=many, crawls=1)
            figures.add("holdfast, add in bulk", "items/s", many / filled["add_seconds"])
            figures.add("holdfast, add in bulk and expand", "items/s", many / (filled["add_seconds"] + filled["expand_seconds"]))
        for count, batch, items, name in ((1, 1, few, "single, 1 claimer"), (16, 1, few, "single, 16 claimers"), (1, 100, many, "batched, 1 claimer"), (4, 100, many, "batched, 4 claimers")):
            step(f"the same SQL in pgbench, {name}")
            with figures.attempt(f"the same SQL in pgbench, {name}"):
                figures.add(f"the same SQL in pgbench, {name}", "items/s", pgbench(bench, items, count, batch, OURS))
        for count in (1, 4):
            name = f"the same rows by least SQL in pgbench, batched, {count} claimer{'s' * (count > 1)}"
            step(name)
            with figures.attempt(name):
                figures.add(name, "items/s", pgbench(bench, many, count, 100, ROWS, triggers=False))
        for count, batch in ((1, 1), (1, 100), (4, 100)):
            name = f"least SQL of a queue in pgbench, {'batched' if batch > 1 else 'single'}, {count} claimer{'s' * (count > 1)}"
            step(name)
            with figures.attempt(name):
                figures.add(name, "items/s", least(bench, many * 5 if batch > 1 else few, count, batch))
        for name, (peer, mode, workers) in peers.DRAINS.items():
            step(name)
            with figures.attempt(name), bench.server.database() as database:
                answer = tools.measure(peer, "drain", database, few if mode == "single" else many, workers, mode)
                figures.add(name, "items/s", rate(answer))
                if mode == "batch":
                    figures.add(f"{name.split(',')[0]}, enqueue in bulk", "items/s", answer["items"] / answer["enqueue_seconds"])
    if not bench.small:
        for name, call in {"holdfast, batched, 4 claimers": lambda: rate(ours(bench, many * 10, 4, 100, "many", 180)),
                           **{name: (lambda peer=peer, mode=mode, workers=workers: peer_rate(bench, tools, peer, many * 10, workers, mode))
                              for name, (peer, mode, workers) in peers.DRAINS.items() if mode == "batch"}}.items():
            bench.say(f"drain of {many * 10}: {name}")
            with figures.attempt(f"{name}, {many * 10} items"):
                figures.add(f"{name}, {many * 10} items", "items/s", call())
    for kind, count in (("single", 1), ("single", 16), ("batched", 1), ("batched", 4)):
        clients = f"{count} claimer{'s' * (count > 1)}"
        figures.ratio(f"holdfast, {kind}, {clients}", f"the same SQL in pgbench, {kind}, {clients}", target=0.8)
    for count in (1, 4):
        clients = f"batched, {count} claimer{'s' * (count > 1)}"
        figures.ratio(f"holdfast, {clients}", f"the same rows by least SQL in pgbench, {clients}")
    best = max((f"holdfast, batched, {c} claimer{'s' * (c > 1)}" for c in claimers), key=lambda name: figures.median(name) or 0)
    for name in list(figures.rows):
        if "enqueue in bulk" in name:
            figures.ratio("holdfast, add in bulk", name, target=1)
    for name, (_, mode, _) in peers.DRAINS.items():
        figures.ratio(best if mode == "batch" else "holdfast, single, 16 claimers", name, target=1)


def rate(answer):
    return answer["items"] / answer["seconds"]


def peer_rate(bench, tools, peer, items, workers, mode):
    with bench.server.database() as database:
        answer = tools.measure(peer, "drain", database, items, workers, mode, seconds=300)
        return rate(answer)
