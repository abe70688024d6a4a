#!/usr/bin/env python3
"""What the orders of claims cost: claim.order and claim.from_top_n, with one worker and with eight.

160,000 pages in four crawls. Each worker claims four pages, seals them, and claims again, for six
seconds a line. Prints figures, judges none. Not part of ctest; the default of claim.from_top_n comes
from here (tests/seed_checklist.md, 15).
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import postgres  # noqa: E402
from harness.wait import end_in_order  # noqa: E402

STAGE = """
create function worker(n integer) returns uuid language sql as $$
  select ('a0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid
$$;
create table figure (ms double precision, pages integer);
create procedure fill(pages bigint) language plpgsql as $$
declare
  v_id uuid;
  v_crawl record;
begin
  for n in 0..3 loop
    v_id := ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid;
    perform holdfast.crawl_add(v_id, '{}');
    perform holdfast.crawl_add_seeds(
      v_id, array_agg(format('https://s%s.test/%s', i % 50, i)), '{}', null)
      from generate_series(1, pages) i;
  end loop;
  perform holdfast.worker_join(worker(n), '{"id": "m", "hostname": "h"}', 'boot', n, n, null,
    'worker', 'all', 'worker ' || n, '1', 8, interval '1 hour')
    from generate_series(0, 8) n;
  loop
    select * into v_crawl from holdfast.crawl_claim(worker(0), interval '1 hour');
    exit when not found;
    while (select e.seeds_left
             from holdfast.crawl_expand(worker(0), v_crawl.crawl_id, v_crawl.fence, 5000) e) > 0
    loop
      commit;
    end loop;
    commit;
  end loop;
end $$;
create procedure step(n integer, newest boolean, top_n integer) language plpgsql as $$
declare
  v_from timestamptz := clock_timestamp();
  v_pages jsonb;
begin
  select coalesce(jsonb_agg(jsonb_build_object('snapshot', c.snapshot_id, 'crawl', c.crawl_id,
           'fence', c.fence, 'ending', 'sealed', 'outcome', 'succeeded', 'manifest', 'm',
           'directory', format('2026/01/%s/%s/a%s', c.host, c.snapshot_id, c.fence))), '[]')
    into v_pages from holdfast.claim(worker(n), 4, '{}', false, newest, top_n) c;
  insert into figure values (extract(epoch from clock_timestamp() - v_from) * 1000,
    jsonb_array_length(v_pages));
  commit;
  perform holdfast.finish(worker(n), v_pages);
  commit;
end $$;
"""

FIGURES = """
select format('%s pages a second; a claim took %s ms (median), %s (99 %%)', round(sum(pages) / 6.0),
    round((percentile_cont(0.5) within group (order by ms))::numeric, 2),
    round((percentile_cont(0.99) within group (order by ms))::numeric, 2))
  from figure
"""
ORDERS = (("oldest", 0), ("oldest", 20), ("oldest", 100), ("oldest", 1000), ("newest", 0), ("newest", 100))


def main():
    end_in_order()
    if not postgres.find_programs():
        print("no PostgreSQL server programs")
        return 77
    with postgres.Server(autovacuum="off") as server:
        server.load("claims")
        run = lambda sql: server.sql(sql, "claims")
        run(STAGE)
        run("call fill(40000)")
        run("analyze")
        script = server.directory / "step.sql"
        for order, pool in ORDERS:
            script.write_text(f"call step(1 + :client_id, {order == 'newest'}, {pool});\n")
            script.chmod(0o644)
            for workers in (1, 8):
                run("truncate figure")
                server.run("pgbench", "-n", "-c", workers, "-j", 2, "-T", 6, "-f", script, "claims")
                print(f"{order:6} from {pool:4}, {workers} workers:", run(FIGURES), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
