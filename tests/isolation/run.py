#!/usr/bin/env python3
"""Runs the race specs against a PostgreSQL server of their own.

Each specs/NAME.spec is played by PostgreSQL's isolationtester, step by step in two or more real sessions, and what it
prints is compared with expected/NAME.out. Exit status: 0 all as expected, 1 not, 77 isolationtester is not installed.
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
SKIPPED = 77


def find_programs():
    """The newest installed server that has isolationtester: (directory of programs, isolationtester)."""
    found = []
    for tester in glob.glob("/usr/lib/postgresql/*/lib/pgxs/src/test/isolation/isolationtester"):
        version = tester.split("/")[4]
        programs = pathlib.Path("/usr/lib/postgresql") / version / "bin"
        if (programs / "initdb").exists():
            found.append((float(version), programs, tester))
    if found:
        return max(found)[1:]
    pg_config = shutil.which("pg_config")
    if pg_config:
        ask = lambda what: subprocess.check_output([pg_config, what], text=True).strip()
        tester = pathlib.Path(ask("--pgxs")).parent.parent / "test/isolation/isolationtester"
        if tester.exists():
            return pathlib.Path(ask("--bindir")), str(tester)
    return None


class Server:
    """A throw-away server on a Unix socket, never run as root. Leaving the context stops it and removes its files."""

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
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith("PG")}, "LC_ALL": "C.UTF-8",
                            "PGHOST": str(self.directory), "PGUSER": "postgres", "PGISOLATIONTIMEOUT": "60"}

    def run(self, program, *arguments, **options):
        done = subprocess.run([program, *map(str, arguments)], cwd=self.directory, env=self.environment, text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.identity, **options)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed ({done.returncode}):\n{done.stdout}")
        return done.stdout

    def psql(self, *arguments, **options):
        return self.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments, **options)

    def __enter__(self):
        try:
            self.run(self.programs / "initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
            settings = f"-c listen_addresses= -c unix_socket_directories={self.directory} -c fsync=off -c autovacuum=off -c timezone=UTC"
            # The server would keep our end of a pipe open, so its output goes to the log.
            self.run(self.programs / "pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "60", "-o", settings, "start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if (self.directory / "data/postmaster.pid").exists():
            subprocess.run([self.programs / "pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop"], cwd=self.directory,
                           stdout=subprocess.DEVNULL, **self.identity)
        shutil.rmtree(self.directory, ignore_errors=True)

    def load(self, database):
        self.psql("-d", "postgres", "-c", f"create database {database}")
        for file in [*sorted(MIGRATIONS.glob("[0-9]*.sql")), *sorted((MIGRATIONS / "functions").glob("*.sql")), HERE / "support.sql"]:
            # Read here: the server's user may not be able to see this directory.
            self.psql("-d", database, "-1", "-f", "-", input=file.read_text())

    def stress(self, database, seconds):
        """Sixteen sessions at random for a while; returns what pgbench says of failures, and what is wrong afterwards."""
        self.psql("-d", database, "-f", "-", input=(HERE / "stress.sql").read_text())
        script = self.directory / "step.sql"
        script.write_text("select stress.step(:client_id);\n")
        script.chmod(0o644)
        report = self.run(self.programs / "pgbench", "-n", "-c", 16, "-j", 2, "-T", seconds, "-M", "prepared", "--failures-detailed", "-f", script, database)
        ask = lambda sql: self.psql("-d", database, "-A", "-t", "-c", sql).strip()
        deadlocks = int(ask("select deadlocks from pg_stat_database where datname = current_database()"))
        broken = ask("select * from holdfast.check_invariants()")
        done = ask("select string_agg(format('%s %s: %s', action, answer, times), ', ' order by action, answer) "
                   "from (select action, answer, sum(times) as times from stress.tally group by 1, 2) t")
        crawls = ask("select count(*) filter (where status = 'sealed') || ' of ' || count(*) || ' crawls sealed, ' || sum(snapshots_total) || ' snapshots' from holdfast.crawl")
        log = (self.directory / "log").read_text(errors="replace")
        cycles = re.findall(r"ERROR:  deadlock detected\n(?:.*\n)*?(?=.*STATEMENT:)", log)
        return report, deadlocks, broken, "\n".join([*cycles, done, crawls])

    def play(self, tester, database, spec):
        done = subprocess.run([tester, f"dbname={database}"], input=spec.read_text(), cwd=self.directory, env=self.environment, text=True,
                              timeout=1200, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.identity)
        return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--update", action="store_true", help="write expected/*.out from what happens (then read the diff)")
    parser.add_argument("--stress", type=int, metavar="SECONDS", help="play no spec: 16 sessions make random calls (stress.sql)")
    parser.add_argument("spec", nargs="*", help="names of specs; all of them if none is given")
    arguments = parser.parse_args()

    programs = find_programs()
    if not programs:
        print("skipped: isolationtester is not installed (it comes with the packages postgresql-15, postgresql-17, ...)")
        return SKIPPED
    if arguments.stress:
        with Server(programs[0]) as server:
            server.load("race")
            report, deadlocks, broken, story = server.stress("race", arguments.stress)
            print(report, story, sep="\n")
            print(f"{deadlocks} deadlocks; invariants: " + (broken or "all hold"))
            # A deadlock costs a repetition (every caller repeats what is temporary); many of them would be a wrong order of locks.
            done = int(re.search(r"number of transactions actually processed: (\d+)", report).group(1))
            failed = int(re.search(r"number of failed transactions: (\d+)", report).group(1))
            clean = deadlocks * 1000 <= done and failed <= deadlocks and not broken and "aborted" not in report
            return 0 if clean else 1
    specs = sorted((HERE / "specs").glob("*.spec"))
    if arguments.spec:
        specs = [spec for spec in specs if spec.stem in arguments.spec]
    if not specs:
        sys.exit("no such spec; there are: " + ", ".join(sorted(spec.stem for spec in (HERE / "specs").glob("*.spec"))))

    failed = []
    with Server(programs[0]) as server:
        server.load("race")
        for spec in specs:
            expected_file = HERE / "expected" / f"{spec.stem}.out"
            expected = expected_file.read_text() if expected_file.exists() else ""
            actual = server.play(programs[1], "race", spec)
            if arguments.update:
                expected_file.write_text(actual)
                expected = actual
            # An expectation must never bless what can't be right, whoever wrote it down.
            wrong = re.findall(r"^BROKEN:.*|^.*deadlock detected.*|^.*syntax error.*|^.*teardown failed.*|^.*setup failed.*", actual, re.MULTILINE)
            if actual == expected and not wrong:
                print(f"ok      {spec.stem}: {actual.count('starting permutation')} permutations")
            else:
                failed.append(spec.stem)
                print(f"FAILED  {spec.stem}")
                sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), actual.splitlines(True), f"expected/{spec.stem}.out", "actual"))
                sys.stdout.writelines(line + "\n" for line in wrong)
            sys.stdout.flush()
    print(f"{len(specs) - len(failed)} of {len(specs)} races as expected" + (": not " + ", ".join(failed) if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
