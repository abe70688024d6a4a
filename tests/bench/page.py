"""A page of ten hooks, one at a time: commits and server CPU, beside the core of an older commit.

That core made a transaction of every step: claim, start and end of each hook, seal. Its migrations come from git; its
functions are called in their order, through pgbench."""

import pathlib
import subprocess

import drain
import suite

HOOKS = 10
WORKER = "lpad(to_hex(:worker::int), 32, '0')::uuid"
LEASE = "array[:s::uuid], array[:c::uuid], array[:f::bigint]"
RESULT = '{"output":"page.html","output_bytes":1000,"exit_code":0,"wall_ms":10,"user_ms":1}'


def hook(number):
    name = f"array['on_Snapshot__{10 + number}_none']"
    return f"""select holdfast.result_start_many({WORKER}, {LEASE}, array['none'], {name},
  array[1000]::integer[], array[0]::bigint[], array[60000]::bigint[], array[false]);
select * from holdfast.result_finish_many({WORKER}, {LEASE}, array['none'], {name}, array['succeeded'], '[{RESULT}]'::jsonb);
"""


OLD = f"""\\set worker :client_id + 1
select count(*) as n, min(snapshot_id::text) as s, min(crawl_id::text) as c, min(fence) as f
  from holdfast.work_take({WORKER}, 1, '{{}}', false, 'oldest', 0, 200) \\gset
\\if :n > 0
{"".join(map(hook, range(HOOKS)))}select * from holdfast.snapshot_seal_many({WORKER}, {LEASE}, array['succeeded'], array[''],
  array['2026/01/site.example/id/a1'], array[repeat('d', 64)], array[10000]::bigint[], array[10]::bigint[], array[''], '[]'::jsonb);
\\endif
"""

FILL = """select holdfast.node_join(lpad(to_hex(n), 32, '0')::uuid, '{{"id": "bench", "hostname": "bench"}}', 'bench', n, n, null,
    'worker', 'all', 'bench', '', 1000, '1 hour') from generate_series(1, 64) n;
do $$
declare
  v_crawl uuid;
  v_lease record;
  v_worker constant uuid := lpad(to_hex(1), 32, '0');
begin
  for i in 1 .. 20 loop
    v_crawl := holdfast.new_uuid();
    perform holdfast.crawl_add(v_crawl, '{{}}');
    perform holdfast.crawl_add_seeds(v_crawl, array(select format('https://site%s.example/page/%s/%s', n % 200, i, n)
        from generate_series(1, {items} / 20) n), array(select 'site' || n % 200 || '.example'
        from generate_series(1, {items} / 20) n), array_fill(''::text, array[{items} / 20]), null);
  end loop;
  loop
    select * into v_lease from holdfast.crawl_claim(v_worker, '1 hour');
    exit when not found;
    perform holdfast.crawl_expand(v_worker, v_lease.crawl_id, v_lease.fence, 5000);
  end loop;
end $$;
analyze"""


def git(*arguments):
    return subprocess.run(["git", "-C", suite.ROOT, *arguments], capture_output=True, text=True, check=False)


class OldCore:
    """A database with the schema of an older commit."""

    def __init__(self, bench, commit):
        self.bench, self.commit, self.template = bench, commit, "old_core"
        if git("cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
            raise suite.Missing(f"commit {commit} is not in this clone: the core before it is not compared")
        files = git("ls-tree", "-r", "--name-only", commit, "migrations/").stdout.split()
        tables = [name for name in files if pathlib.Path(name).name[0].isdigit() and "functions" not in name]
        functions = [name for name in files if name.startswith("migrations/functions/")]
        bench.server.sql("postgres", f"create database {self.template}")
        for name in [*sorted(tables), *sorted(functions)]:
            bench.server.sql(
                self.template,
                "set client_min_messages = warning; begin;\n" + git("show", f"{commit}:{name}").stdout + "\n;commit",
            )

    def pages(self, items, count):
        """As drain.ours."""
        with self.bench.server.database(self.template) as database, self.bench.scratch() as scratch:
            self.bench.server.sql(database, FILL.format(items=items))
            self.bench.server.sql(database, "checkpoint")
            before = self.bench.server.commits(database)
            seconds, cpu = self.bench.server.pgbench(database, OLD, count, int(items * 0.9), scratch)
            commits = self.bench.server.commits(database) - before
            sealed = int(self.bench.server.sql(database, drain.SEALED))
        return {"items": sealed, "sealed": sealed, "seconds": seconds, "cpu_us": cpu * 1e6 / sealed, "commits": commits}


def measure(bench, figures):
    items = bench.pick(200, 800)
    cores = {"holdfast": lambda count: drain.ours(bench, items * 4, count, 1, HOOKS)}
    before = f"the core of {bench.options.old}"
    with figures.attempt(before):
        old = OldCore(bench, bench.options.old)
        cores[before] = lambda count: old.pages(items, count)
    for repeat in range(bench.repeats):
        for count in (1, 4):
            for core, pages in cores.items():
                name = f"{core}, {count} claimer{'s' * (count > 1)}"
                bench.say(f"page of ten hooks {repeat + 1}/{bench.repeats}: {name}")
                with figures.attempt(name):
                    answer = pages(count)
                    figures.add(name, "pages/s", drain.rate(answer), answer["cpu_us"])
                    figures.add(name + ": server CPU of a page", "ms", answer["cpu_us"] / 1000)
                    figures.add(name + ": commits of a page", "commits", answer["commits"] / answer["sealed"])
    for count in (1, 4):
        claimers = f", {count} claimer{'s' * (count > 1)}"
        figures.ratio("holdfast" + claimers, before + claimers)
        cpu = claimers + ": server CPU of a page"
        figures.ratio("holdfast" + cpu, before + cpu, target=1 / 6, less=True)
        figures.target("holdfast" + claimers + ": commits of a page", 1.05, less=True)
