"""What a worker and a runner cost while there is nothing to do."""

import contextlib
import os
import pathlib
import re
import time

import suite


def cost(pids):
    """Proportional and resident kB, CPU seconds so far."""
    pss = rss = ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            pss += int(re.search(r"Pss:\s+(\d+)", text).group(1))
            rss += int(re.search(r"Rss:\s+(\d+)", text).group(1))
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return pss, rss, ticks / os.sysconf("SC_CLK_TCK")


def measure(bench, figures):
    seconds = bench.pick(10, 60)
    repeats = bench.pick(1, bench.repeats)  # nothing happens, so nothing varies
    for repeat in range(repeats):
        for what, arguments in (("worker", ["worker"]), ("runner", ["runner", "--standby"])):
            bench.say(f"idle {repeat + 1}/{repeats}: {what}, {seconds} s")
            with figures.attempt(what), bench.server.database(bench.migrated()) as database, bench.scratch() as scratch:
                plugins = suite.plugin(scratch, "true\n")
                with (
                    suite.Program(bench, database, scratch, *arguments, plugins=plugins) as program,
                    bench.server.session("postgres") as session,
                ):
                    with bench.server.session(database) as joining:
                        program.joined(joining)
                    time.sleep(12)  # a session tells the server's counters of its start ten seconds late
                    count = f"select xact_commit + xact_rollback from pg_stat_database where datname = '{database}'"
                    before, queries, from_ = cost(program.pids()), int(session.ask(count)), time.monotonic()
                    time.sleep(seconds)
                    after, more, passed = cost(program.pids()), int(session.ask(count)), time.monotonic() - from_
                figures.add(f"{what}: memory (RSS, with its guard)", "MB", after[1] / 1024)
                figures.add(f"{what}: memory (PSS, with its guard)", "MB", after[0] / 1024)
                figures.add(f"{what}: CPU", "% of a core", (after[2] - before[2]) * 100 / passed)
                figures.add(f"{what}: transactions", "per s", (more - queries) / passed)
    figures.target("worker: memory (RSS, with its guard)", 20, less=True)
    figures.target("worker: CPU", 0.5, less=True)
