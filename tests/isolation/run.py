#!/usr/bin/env python3
"""Runs the race specs against a PostgreSQL server of their own.

Each specs/NAME.spec is played by PostgreSQL's isolationtester, step by step in two or more real
sessions, and its output is compared with expected/NAME.out. Exit status: 0 all as expected, 1 not,
77 isolationtester is not installed.
"""

import argparse
import difflib
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import postgres  # noqa: E402
from harness.wait import Failure, end_in_order  # noqa: E402

TESTER = "pgxs/src/test/isolation/isolationtester"
SKIPPED = 77
# An expected file must never bless any of this.
WRONG = re.compile(r"^BROKEN.*|^.*(?:deadlock detected|syntax error|setup failed|teardown failed).*", re.MULTILINE)
# Both sides of a deadlock: the victim says what it did; the other one has logged that it waits.
CYCLE = re.compile(r"(?:ERROR:  deadlock detected\n|LOG:  process \d+ still waiting)(?:.*\n)*?(?=.*STATEMENT:)")
# What the spec says already, or what only frames a table: "step finish: call race.finish(1, '1');", "(2 rows)".
FRAME = re.compile(
    r"^(?:Parsed test spec .*|step \w+: (?!.*<waiting \.\.\.>$|<\.\.\. completed>$).*|what *\|state *\|pages *"
    r"|[-+]+|\(\d+ rows?\)|)\n|(?<=[^\n ]) +$",
    re.MULTILINE,
)


def find_tester(programs):
    """isolationtester of the server with these programs; None if it is not installed."""
    tester = programs.parent / "lib" / TESTER
    pg_config = shutil.which("pg_config")
    if not tester.exists() and pg_config:
        pgxs = subprocess.check_output([pg_config, "--pgxs"], text=True).strip()
        tester = pathlib.Path(pgxs).parent.parent / "test/isolation/isolationtester"
    return tester if tester.exists() else None


class Races(postgres.Server):
    """A server on which races are played."""

    def __init__(self):
        super().__init__(autovacuum="off", log_lock_waits="on")
        self.environment["PGISOLATIONTIMEOUT"] = "60"

    def play(self, tester, database, spec):
        """Answers, waits and outcomes, in their order."""
        text = subprocess.run(
            [tester, f"dbname={database}"],
            cwd=self.directory,
            env=self.environment,
            input=spec.read_text(),
            text=True,
            timeout=1200,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **self.identity,
        ).stdout
        return FRAME.sub("", text)

    def stress(self, database, seconds):
        """16 sessions make random calls; then open work is finished. Returns (text, all well)."""
        self.psql(database, "-f", "-", input=(HERE / "stress.sql").read_text())
        script = self.directory / "step.sql"
        script.write_text("select stress.step(:client_id);\n")
        script.chmod(0o644)
        report = self.run(
            "pgbench",
            "-n",
            "-c",
            16,
            "-j",
            2,
            "-T",
            seconds,
            "-M",
            "prepared",
            "--failures-detailed",
            "-f",
            script,
            database,
        )

        def ask(sql):
            return self.sql(sql, database)

        def count(what):
            return int(re.search(rf"number of {what}: (\d+)", report).group(1))

        before = ask("select * from holdfast.check_invariants()")
        drained = "drained"
        try:
            ask("call stress.drain()")
        except Failure as error:
            drained = str(error)
        broken = before or ask("select * from holdfast.check_invariants()")
        deadlocks = int(ask("select deadlocks from pg_stat_database where datname = current_database()"))
        calls = ask(
            "select string_agg(format('%s %s: %s', action, answer, times), ', ' "
            "order by action, answer) from (select action, answer, sum(times) as times "
            "from stress.tally group by 1, 2) t"
        )
        crawls = ask("select format('%s crawls, %s pages', count(*), sum(snapshots_total)) from holdfast.crawl")
        cycles = []
        if deadlocks:
            cycles = CYCLE.findall("\n".join(self.log()))
        # A deadlock costs a repetition. Many of them are a wrong order of locks.
        well = (
            deadlocks * 1000 <= count("transactions actually processed")
            and count("failed transactions") <= deadlocks
            and not broken
            and drained == "drained"
            and "aborted" not in report
        )
        return (
            "\n".join(
                [report, *cycles, calls, crawls, drained, f"{deadlocks} deadlocks; invariants: {broken or 'all hold'}"]
            ),
            well,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--update", action="store_true", help="write expected/*.out from what happens (then read the diff)"
    )
    parser.add_argument(
        "--stress", type=int, metavar="SECONDS", help="play no spec: 16 sessions make random calls (stress.sql)"
    )
    parser.add_argument("spec", nargs="*", help="names of specs; all of them if none is given")
    arguments = parser.parse_args()

    end_in_order()
    programs = postgres.find_programs()
    tester = programs and find_tester(programs)
    if not tester:
        print("skipped: isolationtester is not installed (it comes with the server's packages)")
        return SKIPPED
    if arguments.stress:
        with Races() as server:
            server.load("race", HERE / "support.sql")
            text, well = server.stress("race", arguments.stress)
            print(text)
            return 0 if well else 1
    every = sorted((HERE / "specs").glob("*.spec"))
    specs = [spec for spec in every if not arguments.spec or spec.stem in arguments.spec]
    if not specs:
        sys.exit("no such spec; there are: " + ", ".join(spec.stem for spec in every))

    failed = []
    with Races() as server:
        server.load("race", HERE / "support.sql")
        for spec in specs:
            expected_file = HERE / "expected" / f"{spec.stem}.out"
            actual = server.play(tester, "race", spec)
            if arguments.update:
                expected_file.write_text(actual)
            expected = expected_file.read_text() if expected_file.exists() else ""
            wrong = WRONG.findall(actual)
            if actual == expected and not wrong:
                print(f"ok      {spec.stem}: {actual.count('starting permutation')} permutations")
            else:
                failed.append(spec.stem)
                print(f"FAILED  {spec.stem}")
                sys.stdout.writelines(
                    difflib.unified_diff(
                        expected.splitlines(True), actual.splitlines(True), f"expected/{spec.stem}.out", "actual"
                    )
                )
                sys.stdout.writelines(line + "\n" for line in wrong)
            sys.stdout.flush()
    print(
        f"{len(specs) - len(failed)} of {len(specs)} races as expected"
        + (": not " + ", ".join(failed) if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
