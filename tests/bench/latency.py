"""How soon an idle worker has new work; what a claim takes in small and large queues, beside an old transaction, and after
a million updates."""

import contextlib
import shutil
import time
import uuid

import suite

# Straight into the tables: what counts here is their size. 1,000 crawls, one of which has a tenth of all rows.
# The index of parts of URLs, which no claim reads, takes most of the time row by row; it is built again at the end.
FILL = """set session_replication_role = replica;
drop index if exists holdfast.snapshot_by_url_part;
insert into holdfast.crawl (id, status, retry_at, snapshots_total, snapshots_open)
  select lpad(to_hex(n), 32, '0')::uuid, 'started', null, t, t from generate_series(1, {crawls}) n,
    lateral (select case n when 1 then {items} / 10 else {items} * 9 / 10 / ({crawls} - 1) end as t) s;
insert into holdfast.crawl_queue (crawl_id, ready_at) select id, now() from holdfast.crawl;
insert into holdfast.snapshot (id, crawl_id, url, url_hash)
  select holdfast.new_uuid(), c.id, u, sha256(convert_to(u, 'UTF8'))
    from holdfast.crawl c, generate_series(1, c.snapshots_total) n,
      lateral (select 'https://site' || n % {hosts} || '.example/' || n as u) s;
insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at)
  select id, crawl_id, host, now() - interval '1 hour' + row_number() over (order by id) * interval '1 microsecond'
    from holdfast.snapshot;
insert into holdfast.crawl_lane (crawl_id, host, next_at) select distinct crawl_id, host, now() from holdfast.snapshot_queue;
reset session_replication_role;
set maintenance_work_mem = '512MB';
select holdfast.index_urls();
"""
FREE_FOR_HUGE = 30 << 30  # bytes of disk beside which a queue of ten million fits


def fill(bench, database, items, crawls=1000, hosts=200):
    text = FILL.format(items=items, crawls=crawls, hosts=hosts)
    bench.server.sql(database, text, 3600)
    bench.server.sql(database, "vacuum analyze", 1800)


def pickup(bench, samples):
    """Milliseconds from the URL's row to its claim by an idle worker (by the server's clock, within the claim's
    transaction), and to the start of its hook, which lies behind that commit."""
    with bench.server.database(bench.migrated()) as database, bench.scratch() as scratch:
        plugins = suite.plugin(scratch, 'echo \'{"type": "ArchiveResult", "status": "noresults", "output_str": ""}\'\n')
        with (
            suite.Program(bench, database, scratch, "worker", plugins=plugins) as worker,
            bench.server.session(database) as session,
        ):
            worker.joined(session)
            times = []
            for n in range(samples + 3):
                time.sleep(
                    0.1
                )  # so that it is idle again: the last crawl's page is written, the last claims have found nothing
                crawl = str(uuid.uuid4())
                suite.add_crawl(session, crawl, 1)
                times.append(
                    suite.until(
                        "a crawl is done",
                        lambda: session.ask(
                            f"""select extract(epoch from a.claimed_at - c.created_at) * 1000 || ' ' ||
                  extract(epoch from r.started_at - c.created_at) * 1000
                  from holdfast.crawl c join holdfast.v_attempt a on a.crawl_id = c.id join holdfast.archive_result r on r.snapshot_id = a.snapshot_id
                  where c.id = '{crawl}' and c.status = 'sealed'"""
                        ),
                        60,
                    ).split()
                )
            claimed, started = (sorted(map(float, column)) for column in zip(*times[3:]))
            return claimed[len(claimed) // 2], claimed[len(claimed) * 99 // 100], started[len(started) // 2]


def measure(bench, figures):
    samples = bench.pick(40, 200)
    for repeat in range(bench.repeats):
        step = lambda what: bench.say(f"latency {repeat + 1}/{bench.repeats}: {what}")
        step("pickup by an idle worker")
        with figures.attempt("pickup by an idle worker"):
            middle, high, hook = pickup(bench, samples)
            figures.add("pickup of a URL by an idle worker, p50", "ms", middle)
            figures.add("pickup of a URL by an idle worker, p99", "ms", high)
            figures.add("pickup of a URL by an idle worker, until its hook starts, p50", "ms", hook)
        with figures.attempt("pickup floor"), bench.server.database() as database:
            answer = bench.queue("listen", database, samples=samples)
            figures.add("floor: NOTIFY and one update, p50", "ms", answer["pickup_p50_ms"])
            figures.add("floor: NOTIFY and one update, p99", "ms", answer["pickup_p99_ms"])
    figures.ratio("pickup of a URL by an idle worker, p50", "floor: NOTIFY and one update, p50")
    figures.target("pickup of a URL by an idle worker, p50", 2.3, less=True)

    measure_claims(bench, figures)
    measure_old_transaction(bench, figures)


def sizes_of(bench):
    """Rows of the queues that are compared; the first is the one the others are compared with."""
    if bench.options.rows:
        return [10_000, bench.options.rows]
    if bench.small:
        return [10_000, 100_000]
    fits = shutil.disk_usage(bench.directory).free > FREE_FOR_HUGE
    return [10_000, 1_000_000] + ([10_000_000] if fits else [])


def measure_claims(bench, figures):
    """All sizes stand beside each other, so that each repeat compares what was measured within seconds."""
    sizes, samples = sizes_of(bench), bench.pick(300, 1000)
    with contextlib.ExitStack() as stack:
        databases = {}
        for size in sizes:
            bench.say(f"latency: filling a queue of {size}")
            with figures.attempt(f"queue of {size}"):
                databases[size] = stack.enter_context(bench.server.database(bench.migrated()))
                fill(bench, databases[size], size)
        for repeat in range(bench.repeats):
            for size, database in databases.items():
                bench.say(f"latency {repeat + 1}/{bench.repeats}: claims in a queue of {size}")
                claims(bench, figures, database, f"claim of 8 in a queue of {size:,}", samples)
        for size in sizes[1:]:
            for which in ("p50", "p99"):
                figures.ratio(
                    f"claim of 8 in a queue of {size:,}, {which}",
                    f"claim of 8 in a queue of {sizes[0]:,}, {which}",
                    target=1.2 if which == "p50" else None,
                    less=True,
                )
        if sizes[0] in databases:
            measure_updates(bench, figures, databases[sizes[0]], sizes[0], samples)


def measure_updates(bench, figures, database, rows, samples):
    updates = bench.pick(100_000, 1_000_000)
    name = f"claim of 8 after {updates:,} updates"
    with figures.attempt("updates"):
        bench.say(f"latency: {updates} updates")
        for _ in range(updates // rows):
            bench.server.sql(
                database, "update holdfast.snapshot_queue set retry_at = retry_at + interval '1 microsecond'"
            )
        for _ in range(bench.repeats):
            claims(bench, figures, database, name, samples)
        figures.ratio(f"{name}, p50", f"claim of 8 in a queue of {rows:,}, p50")


def measure_old_transaction(bench, figures):
    """A queue is drained while a reader's snapshot stays, after many claims and releases of its rows: every claim meets
    row versions that may not be vacuumed."""
    calm, old = "drain beside nothing", "drain beside a transaction that stays open"
    for repeat in range(bench.repeats):
        for name in (calm, old) if repeat % 2 == 0 else (old, calm):
            bench.say(f"latency {repeat + 1}/{bench.repeats}: {name}")
            with figures.attempt(name), bench.server.database(bench.filled(bench.pick(10_000, 20_000), 20)) as database:
                with bench.server.session(database) as reader:
                    if name == old:
                        reader.ask(
                            "begin isolation level repeatable read; select count(*) from holdfast.snapshot_queue"
                        )
                    bench.queue("claims", database, samples=bench.pick(100, 1000), batch=100)
                    answer = bench.queue("drain", database, claimers=4, batch=50, seconds=120)
                figures.add(
                    name, "items/s", answer["items"] / answer["seconds"], answer["cpu"]["drain"] * 1e6 / answer["items"]
                )
                figures.add(name + ": turn p99", "ms", answer["turn_p99_ms"])
    figures.ratio(old, calm, target=0.9)
    figures.ratio(old + ": turn p99", calm + ": turn p99")


def claims(bench, figures, database, name, samples):
    """The CPU time is that of the claim's own backend."""
    with figures.attempt(name):
        answer = bench.queue("claims", database, samples=samples, batch=8)
        if answer["rows_per_claim"] < 7:
            raise RuntimeError(f"a claim brought {answer['rows_per_claim']:.1f} rows instead of 8")
        for which in ("p50", "p99"):
            figures.add(f"{name}, {which}", "ms", answer[f"claim_{which}_ms"], answer[f"claim_cpu_{which}_ms"] * 1000)
