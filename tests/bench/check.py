"""For every day, in seconds: ratios with margins that only a change of kind oversteps. The best of three counts, as
machines are busy."""

import drain
import latency
import page
import supervise

# Ready crawls of a persona that no worker has.
OF_OTHERS = """
with made as (insert into holdfast.crawl (id, status, retry_at, persona)
                select holdfast.new_uuid(), 'started', null, 'nowhere' from generate_series(1, 3000) returning id)
insert into holdfast.crawl_queue (crawl_id, persona, ready_at) select id, 'nowhere', now() from made
  on conflict (crawl_id) do update set persona = excluded.persona, ready_at = excluded.ready_at;
analyze"""


def measure(bench, figures):
    def through_the_library():
        return drain.rate(drain.ours(bench, 2000, 1, 100)) / drain.pgbench(bench, 2000, 1, 100, drain.TURN)[0]

    def one_commit():
        answer = drain.ours(bench, 1000, 1, 1, page.HOOKS)
        return answer["sealed"] / answer["commits"]

    def in_a_larger_queue():
        answers = []
        for size in (1000, 60_000):
            with bench.server.database(bench.migrated()) as database:
                latency.fill(bench, database, size, crawls=10)
                answers.append(bench.queue("claims", database, samples=100, batch=8)["claim_p50_ms"])
        return answers[0] / answers[1]

    def beside_crawls_of_others():
        with bench.server.database(bench.migrated()) as database:
            latency.fill(bench, database, 1000, crawls=10)
            answers = []
            for _ in range(2):
                answers.append(bench.queue("claims", database, samples=200, batch=8)["claim_p50_ms"])
                bench.server.sql(database, OF_OTHERS)
        return answers[0] / answers[1]

    def supervision():
        each = [supervise.hooks(bench, what, 100, 4, ["/bin/true"])["cpu_seconds"] for what in ("spawn", "supervise")]
        return each[0] / each[1]

    for name, call, least in (
        ("batched drain, of the same SQL in pgbench", through_the_library, 0.12),
        ("pages of ten hooks for each commit", one_commit, 0.9),
        ("speed of a claim in a queue of 60,000, of that in one of 1,000", in_a_larger_queue, 0.2),
        ("speed of a claim beside 3,000 crawls that its worker cannot take", beside_crawls_of_others, 1 / 1.2),
        ("CPU of a plain process, of that of a supervised one", supervision, 0.25),
    ):
        for _ in range(3):
            bench.say(f"check: {name}")
            figures.add(name, "times", call())
            if max(figures.rows[name]["values"]) >= least:
                break
        row = figures.rows[name]
        row["values"] = [max(row["values"])]
        figures.target(name, least)
    return [row["name"] for row in figures.rows.values() if not row["met"]]
