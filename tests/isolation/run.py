#!/usr/bin/env python3
"""Runs the race specs against a PostgreSQL server of their own.

Each specs/NAME.spec is played by PostgreSQL's isolationtester, step by step in two or more real
sessions, and its output is compared with expected/NAME.out. Exit status: 0 all as expected, 1 not,
77 isolationtester is not installed.
"""

import argparse
import difflib
import glob
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MIGRATIONS = HERE.parent.parent / "migrations"
TESTER = "pgxs/src/test/isolation/isolationtester"
SKIPPED = 77
# An expected file must never bless any of this.
WRONG = re.compile(r"^BROKEN.*|^.*(?:deadlock detected|syntax error|setup failed|teardown failed).*", re.MULTILINE)
# Both sides of a deadlock: the victim says what it did; the other one has logged that it waits.
CYCLE = re.compile(r"(?:ERROR:  deadlock detected\n|LOG:  process \d+ still waiting)(?:.*\n)*?(?=.*STATEMENT:)")


def find_programs():
    """The newest installed server that has isolationtester: (its programs, isolationtester)."""
    found = []
    for tester in glob.glob(f"/usr/lib/postgresql/*/lib/{TESTER}"):
        version = tester.split("/")[4]
        programs = pathlib.Path("/usr/lib/postgresql") / version / "bin"
        if (programs / "initdb").exists():
            found.append((float(version), programs, tester))
    if found:
        return max(found)[1:]
    pg_config = shutil.which("pg_config")
    if pg_config:

        def ask(what):
            return subprocess.check_output([pg_config, what], text=True).strip()

        tester = pathlib.Path(ask("--pgxs")).parent.parent / "test/isolation/isolationtester"
        if tester.exists():
            return pathlib.Path(ask("--bindir")), str(tester)
    return None


class Server:
    """A throw-away server on a Unix socket, never run as root. Leaving the context removes it."""

    def __init__(self, programs):
        self.programs = programs
        self.identity = {}
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-race-"))
        if os.geteuid() == 0:
            for name in ("postgres", "nobody"):
                try:
                    account = pwd.getpwnam(name)
                    break
                except KeyError:
                    continue
            self.identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(self.directory, account.pw_uid, account.pw_gid)
        own = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        self.environment = {
            **own,
            "LC_ALL": "C.UTF-8",
            "PGHOST": str(self.directory),
            "PGUSER": "postgres",
            "PGISOLATIONTIMEOUT": "60",
        }

    def start_process(self, command, **options):
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **self.identity,
            **options,
        )

    def run(self, program, *arguments, **options):
        done = self.start_process([program, *map(str, arguments)], timeout=300, **options)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed ({done.returncode}):\n{done.stdout}")
        return done.stdout

    def psql(self, *arguments, **options):
        return self.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments, **options)

    def __enter__(self):
        try:
            self.run(
                self.programs / "initdb",
                "-D",
                "data",
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            )
            settings = {
                "listen_addresses": "",
                "unix_socket_directories": self.directory,
                "fsync": "off",
                "autovacuum": "off",
                "timezone": "UTC",
                "log_lock_waits": "on",
            }
            # The server would keep our end of a pipe open, so its output goes to the log.
            options = " ".join(f"-c {key}={value}" for key, value in settings.items())
            self.run(self.programs / "pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "60", "-o", options, "start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if (self.directory / "data/postmaster.pid").exists():
            self.start_process([self.programs / "pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop"])
        shutil.rmtree(self.directory, ignore_errors=True)

    def load(self, database):
        self.psql("-d", "postgres", "-c", f"create database {database}")
        for file in [
            *sorted(MIGRATIONS.glob("[0-9]*.sql")),
            *sorted((MIGRATIONS / "functions").glob("*.sql")),
            HERE / "support.sql",
        ]:
            # Read here: the server's user may not be able to see this directory.
            self.psql("-d", database, "-1", "-f", "-", input=file.read_text())

    def play(self, tester, database, spec):
        return self.start_process([tester, f"dbname={database}"], input=spec.read_text(), timeout=1200).stdout

    def stress(self, database, seconds):
        """16 sessions make random calls; then open work is finished. Returns (text, all well)."""
        self.psql("-d", database, "-f", "-", input=(HERE / "stress.sql").read_text())
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
            return self.psql("-d", database, "-A", "-t", "-c", sql).strip()

        def count(what):
            return int(re.search(rf"number of {what}: (\d+)", report).group(1))

        before = ask("select * from holdfast.check_invariants()")
        drained = "drained"
        try:
            ask("call stress.drain()")
        except RuntimeError as error:
            drained = str(error)
        broken = before or ask("select * from holdfast.check_invariants()")
        deadlocks = int(ask("select deadlocks from pg_stat_database " "where datname = current_database()"))
        calls = ask(
            "select string_agg(format('%s %s: %s', action, answer, times), ', ' "
            "order by action, answer) from (select action, answer, sum(times) as times "
            "from stress.tally group by 1, 2) t"
        )
        crawls = ask("select format('%s crawls, %s pages', count(*), sum(snapshots_total)) " "from holdfast.crawl")
        cycles = []
        if deadlocks:
            cycles = CYCLE.findall((self.directory / "log").read_text(errors="replace"))
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

    programs = find_programs()
    if not programs:
        print("skipped: isolationtester is not installed (it comes with the server's packages)")
        return SKIPPED
    if arguments.stress:
        with Server(programs[0]) as server:
            server.load("race")
            text, well = server.stress("race", arguments.stress)
            print(text)
            return 0 if well else 1
    every = sorted((HERE / "specs").glob("*.spec"))
    specs = [spec for spec in every if not arguments.spec or spec.stem in arguments.spec]
    if not specs:
        sys.exit("no such spec; there are: " + ", ".join(spec.stem for spec in every))

    failed = []
    with Server(programs[0]) as server:
        server.load("race")
        for spec in specs:
            expected_file = HERE / "expected" / f"{spec.stem}.out"
            actual = server.play(programs[1], "race", spec)
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
