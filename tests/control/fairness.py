#!/usr/bin/env python3
"""Small crawls beside a giant one: how long they wait, and what a claim costs.

200 crawls of 5 pages each, one of them of 200,000 (--pages), all on hosts with a cap. Four workers
claim and seal in turn. Prints figures; exit status 1 if a crawl is not served, a limit is
overstepped, or an invariant is broken. No time is judged. Short mode (what ctest runs): --pages 2000.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import postgres  # noqa: E402
from harness.wait import end_in_order  # noqa: E402

GIANT = "c0000000-0000-7000-8000-000000000000"
STAGE = """
create function worker(n bigint) returns uuid language sql as $$
  select ('a0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid
$$;
create table figure (step bigint, seconds double precision);
create table progress (step bigint, small_left bigint);
create procedure fill(pages bigint) language plpgsql as $$
declare
  v_id uuid;
begin
  for n in 0..199 loop
    v_id := ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid;
    perform holdfast.crawl_add(v_id, '{"host_parallel": 4}');
    perform holdfast.crawl_add_seeds(
      v_id, array_agg(format('https://site%s-%s.test/%s', n, i % 50, i)), '{}', null)
      from generate_series(1, case n when 0 then pages else 5 end) i;
  end loop;
  perform holdfast.worker_join(worker(n), '{"machine": {"id": "m", "hostname": "h"}, "boot_id": "boot",
    "process_type": "worker", "worker_type": "snapshot", "version": "1", "slots": 8}'
    || jsonb_build_object('pid', n, 'start_ticks', n, 'label', 'worker ' || n), interval '1 hour')
    from generate_series(1::bigint, 4) n;
end $$;
create procedure expand() language plpgsql as $$
declare
  v_crawl record;
begin
  loop
    select * into v_crawl from holdfast.crawl_claim(worker(1), interval '1 hour');
    exit when not found;
    while (select e.seeds_left
             from holdfast.crawl_expand(worker(1), v_crawl.crawl_id, v_crawl.fence, 5000) e) > 0
    loop
      commit;
    end loop;
    commit;
  end loop;
end $$;
-- Every worker has a session of the giant crawl open.
create procedure work(steps bigint, giant uuid) language plpgsql as $$
declare
  v_worker uuid;
  v_pages jsonb;
  v_from timestamptz;
begin
  for v_step in 1..steps loop
    v_worker := worker(1 + v_step % 4);
    v_from := clock_timestamp();
    select coalesce(jsonb_agg(jsonb_build_object('snapshot', c.snapshot_id, 'crawl', c.crawl_id,
             'fence', c.fence, 'ending', 'sealed', 'outcome', 'succeeded', 'manifest', 'm',
             'directory', format('2026/01/%s/%s/a%s', c.host, c.snapshot_id, c.fence))), '[]')
      into v_pages from holdfast.claim(v_worker, 4, array[giant]) c;
    insert into figure values (v_step, extract(epoch from clock_timestamp() - v_from));
    perform holdfast.finish(v_worker, v_pages);
    insert into progress
      select v_step, count(*) from holdfast.crawl where status <> 'sealed' and id <> giant;
    commit;
    exit when (select small_left from progress where step = v_step) = 0;
  end loop;
end $$;
"""

FIGURES = """
select round((percentile_cont(0.5) within group (order by seconds) * 1000)::numeric, 2) || ', '
    || round((percentile_cont(0.99) within group (order by seconds) * 1000)::numeric, 2)
  from figure
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=int, default=200_000, help="pages of the giant crawl")
    arguments = parser.parse_args()
    end_in_order()
    if not postgres.find_programs():
        print("skipped: no PostgreSQL server programs")
        return 77
    with postgres.Server(autovacuum="off") as server:
        server.load("fair")
        run = lambda sql: server.sql(sql, "fair")
        run(STAGE)
        run(f"call fill({arguments.pages})")
        run("call expand()")
        run("analyze")
        run(f"call work(3000, '{GIANT}')")
        print("pages in the queue at the start:", arguments.pages + 199 * 5)
        print("claims until the last small crawl was sealed:", run("select max(step) from progress"))
        print("claims until half of them were:", run("select min(step) from progress where small_left <= 100"))
        print("milliseconds a claim of four pages took (median, 99 %):", run(FIGURES))
        left = run("select count(*) from holdfast.crawl " f"where status <> 'sealed' and id <> '{GIANT}'")
        broken = run("select * from holdfast.check_invariants()")
        print("small crawls left:", left, "- invariants:", broken or "all hold")
        return 0 if left == "0" and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
