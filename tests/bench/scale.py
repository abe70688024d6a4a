"""One, two and four workers on one database, with work that sleeps: what does not scale is the program."""

import uuid

import suite

SECONDS, SLOTS = 0.5, 8
FLOOR = "1 worker, if only the hooks took time"


def snapshots_a_minute(bench, workers, rounds):
    count = workers * SLOTS * rounds
    with bench.server.database(bench.migrated()) as database, bench.scratch() as scratch:
        plugins = suite.plugin(scratch, f"sleep {SECONDS}\necho done >page.txt\n")
        running = []
        try:
            for n in range(workers):
                home = scratch / f"worker{n}"
                home.mkdir()
                running.append(
                    suite.Program(
                        bench,
                        database,
                        home,
                        "worker",
                        plugins=plugins,
                        settings={
                            "HOLDFAST_WORKER_SNAPSHOTS": str(SLOTS),
                            "HOLDFAST_ARCHIVE_ROOT": str(scratch / "archive"),
                            "HOLDFAST_WORK_DIR": str(home / "work"),
                        }.items(),
                    )
                )
            with bench.server.session(database) as session:
                running[0].joined(session, workers)
                suite.add_crawl(session, uuid.uuid4(), count)
                suite.until(
                    "all is sealed",
                    lambda: session.ask("select count(*) from holdfast.snapshot_sealed") == str(count),
                    300,
                )
                seconds = float(
                    session.ask(
                        "select extract(epoch from max(sealed_at) - min(started_at)) from holdfast.snapshot_sealed"
                    )
                )
        finally:
            for program in running:
                program.__exit__()
    return count * 60 / seconds


def measure(bench, figures):
    for repeat in range(bench.repeats):
        figures.add(FLOOR, "snapshots/min", SLOTS * 60 / SECONDS)
        for workers in (1, 2, 4):
            name = f"{workers} worker{'s' * (workers > 1)} of {SLOTS} slots"
            bench.say(f"scale-out {repeat + 1}/{bench.repeats}: {name}")
            with figures.attempt(name):
                figures.add(name, "snapshots/min", snapshots_a_minute(bench, workers, bench.pick(5, 20)))
    for workers in (2, 4):
        figures.ratio(f"{workers} workers of {SLOTS} slots", f"1 worker of {SLOTS} slots")
    figures.ratio(f"1 worker of {SLOTS} slots", FLOOR)
