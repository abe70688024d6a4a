"""A month of steady work: what dead rows do to the tables and indexes that are written all the time.

Each day adds crawls, claims, completes and seals their pages, lets a few workers die with pages in their hands, and
then runs the runner's tasks, which remove the crawls, events, attempts and workers of a week ago. The clock of the
server cannot be moved, so keep_until and task.keep are set to the beginning of that day. A day takes seconds, so
autovacuum looks every second instead of every minute; its other settings are PostgreSQL's own, and those of the
tables.
"""

import os
import sys
import uuid

HOT = (
    "snapshot_queue crawl_queue crawl_lane crawl_seed crawl host process event maintenance_run running_hook attempt purge "
    "snapshot snapshot_sealed archive_result"
).split()
WEEK = 7
TRIMS = ("trim_events", "trim_attempts", "trim_processes", "trim_runs")
RUNNER = """select holdfast.process_join('{id}', '{{"machine": {{"id": "bench", "hostname": "bench"}},
    "boot_id": "bench", "pid": 1, "start_ticks": 1, "pid_namespace": "bench", "process_type": "runner",
    "worker_type": "runner_waiting", "label": "bench", "version": "bench"}}', '1 hour');
select epoch from holdfast.runner_enter('{id}', '1 hour', '5 s')"""
# A fifth of the hosts has a limit.
HOSTS = """select holdfast.host_set('site' || n || '.example', null, 64, 'bench') from generate_series(0, 195, 5) n"""
SIZES = """select c.relname, pg_relation_size(c.oid), pg_indexes_size(c.oid), s.n_live_tup, s.n_dead_tup,
    coalesce(round(100.0 * s.n_tup_hot_upd / nullif(s.n_tup_upd, 0))::text, '-'), s.autovacuum_count
  from pg_class c join pg_stat_user_tables s on s.relid = c.oid
  where c.relnamespace = 'holdfast'::regnamespace and c.relname = any ('{%s}')
  order by 1""" % ",".join(HOT)


class Runner:
    """Runs tasks until each has nothing more to do."""

    def __init__(self, session):
        self.session, self.id = session, uuid.uuid4()
        self.epoch = session.ask(RUNNER.format(id=self.id)).splitlines()[-1]

    def heartbeat(self):
        self.session.ask(f"select holdfast.runner_heartbeat('{self.id}', '1 hour', '{{}}')")

    def task(self, name):
        batch = int(self.session.ask(f"select batch from holdfast.maintenance_task where name = '{name}'"))
        while True:
            answer = self.session.ask(
                f"select count, coalesce(error, '') from holdfast.runner_maintenance('{self.id}', {self.epoch}, '{name}')"
            )
            count, error = answer.split("|", 1)
            if error:
                raise RuntimeError(f"{name}: {error}")
            if int(count) < batch:
                return

    def purge(self):
        while int(
            self.session.ask(
                "with done as (select holdfast.purge_done(array_agg(d)), count(*) as n from holdfast.purge_list(1000) d)"
                " select n from done"
            )
        ):
            pass


def rows(answer):
    return [line.split("|") for line in answer.splitlines()]


def day(bench, session, runner, database, pages, begins):
    """Returns the median CPU time of a claim of eight pages, in a queue with the pages of the day."""
    begins.append(session.ask("select clock_timestamp()"))
    runner.heartbeat()
    bench.queue("fill", database, items=pages, crawls=20)
    claim = bench.queue("claims", database, samples=200, batch=8)
    # The workers of the simulation end with what they hold. Their lease is over on the next day, at the latest.
    bench.queue("simulate", database, workers=4, slots=8, page_ms=100, heartbeat_ms=100, hooks=3, warm_ms=0, seconds=2)
    session.ask("update holdfast.process set lease_until = clock_timestamp() where status = 'running' and slots > 0")
    runner.task("lapsed")
    bench.queue("drain", database, claimers=4, batch=50, hooks=3, seconds=600)
    if len(begins) > WEEK:
        until = begins[-WEEK]
        session.ask(
            f"update holdfast.crawl set keep_until = sealed_at where status = 'sealed' and created_at < '{until}';"
            f"update holdfast.maintenance_task set keep = clock_timestamp() - '{until}' where name like 'trim%'"
        )
    for name in ("lapsed", "mend", "retention", "clock", "hosts", *(TRIMS if len(begins) > WEEK else ())):
        runner.task(name)
    runner.purge()
    return claim["claim_cpu_p50_ms"]


def tell(figures, days, tables):
    """Sizes two weeks after removals have begun, against those at the end: what levels off, and what does not."""
    for name, sizes in tables.items():
        figures.notes.append(
            f"{name}: MB of the table + MB of its indexes (rows, dead rows), "
            + "; ".join(
                f"day {n + 1}: {heap / 1e6:.1f} + {indexes / 1e6:.1f} ({live}, {dead})"
                for n, (heap, indexes, live, dead, _, _) in enumerate(sizes)
                if n + 1 in {1, WEEK, WEEK + 1, days // 2, days * 2 // 3, days * 5 // 6, days}
            )
            + f". Updates that wrote no index: {sizes[-1][4]} %. Vacuums: {sizes[-1][5]}."
        )
        # The largest of the last days of both halves: in between, vacuum comes and goes.
        for what, part in ("half", sizes[: max(1, days // 2)][-3:]), ("end", sizes[-3:]):
            figures.add(f"{name}, {what} of the month", "MB", max(heap + indexes for heap, indexes, *_ in part) / 1e6)
        figures.ratio(f"{name}, end of the month", f"{name}, half of the month")


def measure(bench, figures):
    days, pages = bench.options.days or bench.pick(16, 30), bench.options.items or bench.pick(2_000, 20_000)
    server, begins, tables = bench.server, [], {}
    server.sql("postgres", "alter system set autovacuum_naptime = '1s'")
    server.sql("postgres", "select pg_reload_conf()")
    try:
        with server.database(bench.migrated()) as database, server.session(database) as session:
            runner = Runner(session)
            session.ask(HOSTS)
            for number in range(1, days + 1):
                bench.say(f"month: day {number} of {days}")
                claim = day(bench, session, runner, database, pages, begins)
                part = "first week" if number <= WEEK else "last week" if number > days - WEEK else "between"
                figures.add(f"claim of 8 pages in the morning, {part}", "ms CPU", claim)
                for name, *sizes, hot, vacuums in rows(session.ask(SIZES)):
                    tables.setdefault(name, []).append((*map(int, sizes), hot, vacuums))
                if os.environ.get("HOLDFAST_BENCH_VERBOSE"):
                    print(number, claim, rows(session.ask(SIZES)), file=sys.stderr, flush=True)
            left = session.ask("select count(*) from holdfast.snapshot_queue")
            figures.notes.append(f"{days} days of {pages} pages; {left} were left in the queue in the end.")
    finally:
        server.sql("postgres", "alter system reset autovacuum_naptime")
        server.sql("postgres", "select pg_reload_conf()")
    tell(figures, days, tables)
    figures.ratio("claim of 8 pages in the morning, last week", "claim of 8 pages in the morning, first week")
