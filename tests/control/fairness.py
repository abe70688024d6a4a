#!/usr/bin/env python3
"""Small crawls beside a giant one: how long they wait, and what a claim costs.

200 crawls of 5 pages each, one of them of 200,000 (--pages), all on hosts with a cap. Four nodes claim and seal in turn. Prints
figures; exit status 1 if a crawl is not served, a limit is overstepped, or an invariant is broken. No time is judged.
Short mode (what ctest runs): --pages 2000.
"""

import argparse
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("isolation", HERE.parent / "isolation" / "run.py")
isolation = importlib.util.module_from_spec(spec)
spec.loader.exec_module(isolation)

STAGE = """
create table figure (step bigint, seconds double precision, large boolean);
create table progress (step bigint, small_left bigint);
create procedure fill(pages bigint) language plpgsql as $$
declare
  v_id uuid;
begin
  for n in 0..199 loop
    v_id := ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid;
    perform holdfast.crawl_add(v_id, '{"host_parallel": 4}');
    perform holdfast.crawl_add_seeds(v_id, array_agg(format('https://site%s-%s.test/%s', n, i % 50, i)), array_agg(format('site%s-%s.test', n, i % 50)), '{}', null)
      from generate_series(1, case n when 0 then pages else 5 end) i;
  end loop;
  perform holdfast.node_join(('a0000000-0000-7000-8000-00000000000' || n)::uuid, '{"id": "m", "hostname": "h"}', 'boot', n, n, null, 'worker', 'snapshot', 'node ' || n, '1', 8, interval '1 day')
    from generate_series(1, 4) n;
end $$;
create procedure expand() language plpgsql as $$
declare
  v_crawl record;
begin
  loop
    select * into v_crawl from holdfast.crawl_claim('a0000000-0000-7000-8000-000000000001', interval '1 day');
    exit when not found;
    while (select e.seeds_left from holdfast.crawl_expand('a0000000-0000-7000-8000-000000000001', v_crawl.crawl_id, v_crawl.fence, 5000) e) > 0 loop commit; end loop;
    commit;
  end loop;
end $$;
create procedure work(steps bigint) language plpgsql as $$
declare
  v_node uuid;
  v_claims record;
  v_from timestamptz;
  v_step bigint;
  v_near uuid[];
begin
  for v_step in 1..steps loop
    v_node := ('a0000000-0000-7000-8000-00000000000' || 1 + v_step % 4)::uuid;
    v_near := array['c0000000-0000-7000-8000-000000000000'];
    v_from := clock_timestamp();
    create temporary table claimed on commit drop as select * from holdfast.snapshot_claim(v_node, 4, v_near);
    insert into figure values (v_step, extract(epoch from clock_timestamp() - v_from), exists (select from claimed where crawl_id = v_near[1]));
    perform holdfast.snapshot_start(v_node, c.snapshot_id, c.crawl_id, c.fence) from claimed c;
    perform holdfast.snapshot_seal(v_node, c.snapshot_id, c.crawl_id, c.fence, 'succeeded', null, 'd', 'm', 1, 1, '', '{}', '{}', '{}', '{}') from claimed c;
    insert into progress select v_step, count(*) from holdfast.crawl where status <> 'sealed' and id <> v_near[1];
    commit;
    exit when (select small_left from progress where step = v_step) = 0;
  end loop;
end $$;
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=int, default=200_000, help="pages of the giant crawl")
    arguments = parser.parse_args()
    programs = isolation.find_programs()
    if not programs:
        print("skipped: no PostgreSQL server programs")
        return isolation.SKIPPED
    with isolation.Server(programs[0]) as server:
        server.load("fair")
        run = lambda sql: server.psql("-d", "fair", "-A", "-t", "-c", sql).strip()
        run("alter database fair reset holdfast.claim_near")
        server.psql("-d", "fair", "-f", "-", input=STAGE)
        run(f"call fill({arguments.pages})")
        run("call expand()")
        run("analyze")
        run("call work(3000)")
        print("pages in the queue at the start:", arguments.pages + 199 * 5)
        print("claims until the last small crawl was sealed:", run("select max(step) from progress"))
        print("claims until half of them were:", run("select min(step) from progress where small_left <= 100"))
        print("milliseconds a claim of four pages took (median, 99 %):", run(
            "select round((percentile_cont(0.5) within group (order by seconds) * 1000)::numeric, 2) || ', ' || "
            "round((percentile_cont(0.99) within group (order by seconds) * 1000)::numeric, 2) from figure"))
        left = run("select count(*) from holdfast.crawl where status <> 'sealed' and id <> 'c0000000-0000-7000-8000-000000000000'")
        broken = run("select * from holdfast.check_invariants()")
        print("small crawls left:", left, "- invariants:", broken or "all hold")
        return 0 if left == "0" and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
