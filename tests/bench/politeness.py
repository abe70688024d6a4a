"""What fairness between crawls and politeness to hosts add to a claim."""

import contextlib

import latency

HOSTS = """insert into holdfast.host (name, max_parallel, updated_by) select 'site' || n || '.example', {parallel}, 'bench' from generate_series(0, 199) n; vacuum analyze"""
BARE = """create table lease (id bigint generated always as identity primary key, due timestamptz not null, owner int) with (fillfactor = 70);
insert into lease (due) select now() - random() * interval '1 hour' from generate_series(1, {items}); create index on lease (due) where owner is null; analyze"""
BARE_CLAIM = """with taken as (
  update lease set owner = 1 where id = any (array(select id from lease where owner is null and due <= now() order by due limit 8 for update skip locked)) returning id)
select coalesce(array_agg(id), '{}')::text as ids from taken \\gset
update lease set owner = null where id = any (:ids::bigint[]);
"""


def measure(bench, figures):
    items = bench.pick(10_000, 100_000)
    # name: crawls, whether the hosts have limits, most pages of a host at once
    shapes = {
        "neither (one crawl, no limits)": (1, None),
        "fairness (1,000 crawls)": (1000, None),
        "politeness (one crawl, 200 hosts with a cap that holds nothing back)": (1, 1000),
        "both (1,000 crawls, 200 hosts with a cap)": (1000, 1000),
        "both, a cap of 2 each": (1000, 2),
    }
    with contextlib.ExitStack() as stack:
        databases = {}
        for name, (crawls, parallel) in shapes.items():
            bench.say("politeness: filling " + name)
            with figures.attempt(name):
                databases[name] = stack.enter_context(bench.server.database(bench.migrated()))
                latency.fill(bench, databases[name], items, crawls=crawls + (crawls == 1))
                if crawls == 1:  # all in the first, the other is out of it
                    bench.server.sql(
                        databases[name], "delete from holdfast.crawl_queue where crawl_id = lpad('1', 32, '0')::uuid"
                    )
                if parallel is not None:
                    bench.server.sql(databases[name], HOSTS.format(parallel=parallel))
        bare = stack.enter_context(bench.server.database())
        bench.server.sql(bare, BARE.format(items=items))
        for repeat in range(bench.repeats):
            for name, database in databases.items():
                bench.say(f"politeness {repeat + 1}/{bench.repeats}: {name}")
                latency.claims(bench, figures, database, "claim of 8 with " + name, bench.pick(300, 1000))
            with figures.attempt("bare claim"), bench.scratch() as scratch:
                transactions = bench.pick(300, 1000)
                seconds, cpu = bench.server.pgbench(bare, BARE_CLAIM, 1, transactions, scratch)
                figures.add(
                    "least SQL of a claim of 8 and its return, in pgbench",
                    "ms",
                    seconds * 1000 / transactions,
                    cpu * 1e6 / transactions,
                )
    for name in list(shapes)[1:]:
        figures.ratio(f"claim of 8 with {name}, p50", f"claim of 8 with {next(iter(shapes))}, p50")
    figures.ratio(f"claim of 8 with {next(iter(shapes))}, p50", "least SQL of a claim of 8 and its return, in pgbench")
