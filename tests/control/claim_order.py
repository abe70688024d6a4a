#!/usr/bin/env python3
"""What the orders of claims cost: claim.order and claim.from_top_n, with one node and with eight.

160,000 pages in four crawls; each node claims four pages, starts and seals them, and claims again, for six seconds a line. Prints
figures, judges none. Not part of ctest; the default of claim.from_top_n comes from here (tests/seed_checklist.md, 15).
"""

import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("isolation", HERE.parent / "isolation" / "run.py")
isolation = importlib.util.module_from_spec(spec)
spec.loader.exec_module(isolation)

STAGE = """
create function node(n integer) returns uuid language sql as $$ select ('a0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
create table figure (ms double precision, pages integer);
create procedure fill(pages bigint) language plpgsql as $$
declare
  v_id uuid;
  v_crawl record;
begin
  for n in 0..3 loop
    v_id := ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid;
    perform holdfast.crawl_add(v_id, '{}');
    perform holdfast.crawl_add_seeds(v_id, array_agg(format('https://s%s.test/%s', i % 50, i)), array_agg(format('s%s.test', i % 50)), '{}', null)
      from generate_series(1, pages) i;
  end loop;
  perform holdfast.node_join(node(n), '{"id": "m", "hostname": "h"}', 'boot', n, n, null, 'worker', 'all', 'node ' || n, '1', 8, interval '1 day')
    from generate_series(0, 8) n;
  loop
    select * into v_crawl from holdfast.crawl_claim(node(0), interval '1 day');
    exit when not found;
    while (select e.seeds_left from holdfast.crawl_expand(node(0), v_crawl.crawl_id, v_crawl.fence, 5000) e) > 0 loop commit; end loop;
    commit;
  end loop;
end $$;
create procedure step(n integer) language plpgsql as $$
declare
  v_from timestamptz := clock_timestamp();
  v_held text[][];
  v_one text[];
begin
  select array_agg(array[snapshot_id::text, crawl_id::text, fence::text]) into v_held from holdfast.snapshot_claim(node(n), 4, '{}');
  insert into figure values (extract(epoch from clock_timestamp() - v_from) * 1000, coalesce(array_length(v_held, 1), 0));
  commit;
  foreach v_one slice 1 in array coalesce(v_held, '{}') loop
    perform holdfast.snapshot_start(node(n), v_one[1]::uuid, v_one[2]::uuid, v_one[3]::bigint);
    perform holdfast.snapshot_seal(node(n), v_one[1]::uuid, v_one[2]::uuid, v_one[3]::bigint, 'succeeded', null, 'd', 'm', 1, 1, '', '{}', '{}', '{}', '{}');
    commit;
  end loop;
end $$;
"""


def main():
    programs = isolation.find_programs()
    if not programs:
        print("no PostgreSQL server programs")
        return isolation.SKIPPED
    with isolation.Server(programs[0]) as server:
        server.load("claims")
        run = lambda sql: server.psql("-d", "claims", "-A", "-t", "-c", sql).strip()
        run("alter database claims reset holdfast.claim_near")
        server.psql("-d", "claims", "-f", "-", input=STAGE)
        run("call fill(40000)")
        run("analyze")
        script = server.directory / "step.sql"
        script.write_text("call step(1 + :client_id);\n")
        script.chmod(0o644)
        for order, pool in (("oldest", 0), ("oldest", 20), ("oldest", 100), ("oldest", 1000), ("newest", 0), ("newest", 100)):
            run(f"alter database claims set holdfast.claim_order = {order}")
            run(f"alter database claims set holdfast.claim_from_top_n = {pool}")
            for nodes in (1, 8):
                run("truncate figure")
                server.run("pgbench", "-n", "-c", nodes, "-j", 2, "-T", 6, "-f", script, "claims")
                print(f"{order:6} from {pool:4}, {nodes} nodes:", run(
                    "select round(sum(pages) / 6.0) || ' pages a second; a claim took ' || round((percentile_cont(0.5) within group (order by ms))::numeric, 2) || "
                    "' ms (median), ' || round((percentile_cont(0.99) within group (order by ms))::numeric, 2) || ' (99 %)' from figure"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
