"""What every part uses: a server, programs with a deadline, figures, progress. Nothing stays behind when it ends."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from harness import postgres  # noqa: E402
from harness.wait import until  # noqa: E402


class Missing(Exception):
    """Something that is needed to measure is not there."""


def progress(text, end=False):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text[:110] + ("\n" if end else ""))
        sys.stderr.flush()
    elif end:
        print(text, file=sys.stderr, flush=True)


def run(command, seconds=120, **options):
    """Standard output of a program that must succeed in time; with it ends what it has started."""
    command = [str(word) for word in command]
    options.setdefault("stdin", subprocess.PIPE if "input" in options else subprocess.DEVNULL)
    given = options.pop("input", None)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    )
    try:
        out, errors = process.communicate(given, timeout=seconds)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(
                f"{pathlib.Path(command[0]).name} {' '.join(command[1:4])} did not end in {seconds} s"
            ) from None
        raise
    if process.returncode != 0:
        raise RuntimeError(
            f"{pathlib.Path(command[0]).name} {' '.join(command[1:])[:200]} failed ({process.returncode}):\n{errors[-1500:]}{out[-500:]}"
        )
    return out


def run_in_phases(command, seconds, server, **options):
    """Runs a program that prints the names of its phases as they begin, waits each time for a line on its standard
    input, and prints a JSON object at the end. Adds to that "cpu": seconds of the server's CPU time by phase."""
    command, cpu, answer = [str(word) for word in command], {}, {}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            **options,
        )
        late = threading.Timer(seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
        late.start()
        try:
            phase, before = None, 0
            for line in process.stdout:
                now = server.cpu_seconds()
                if phase:
                    cpu[phase] = now - before
                if line.startswith("{"):
                    answer = json.loads(line)
                    break
                phase, before = line.strip(), now
                process.stdin.write("\n")
                process.stdin.flush()
            process.wait()
        except BrokenPipeError:
            process.wait()
        finally:
            on_time = late.is_alive()
            late.cancel()
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode != 0:
            errors.seek(0)
            why = (
                f"failed ({process.returncode}):\n{errors.read()[-1500:]}" if on_time else f"did not end in {seconds} s"
            )
            raise RuntimeError(f"{' '.join(command)[:200]} {why}")
    return {**answer, "cpu": cpu}


def ticks_of(pid, children=False):
    """Clock ticks of CPU time that a process has used; or those of its children that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[13:15] if children else fields[11:13]))


class Server(postgres.Server):
    """The one PostgreSQL of a run, with the settings of its packager except those named here; durable as in earnest."""

    SETTINGS = {
        "fsync": "on",
        "synchronous_commit": "on",
        "max_connections": "200",
        "shared_buffers": "512MB",
        "max_wal_size": "4GB",
        "log_min_messages": "fatal",
    }

    def __init__(self, directory):
        if not postgres.find_programs():
            raise Missing("PostgreSQL is not installed")
        super().__init__(directory / "server", **self.SETTINGS)
        self.count = 0

    def cpu_seconds(self):
        """CPU time of the server so far: of all its processes, also of those that have ended."""
        postmaster = self.process.pid
        while True:
            ended, total = ticks_of(postmaster, children=True), ticks_of(postmaster)
            for pid in pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split():
                with contextlib.suppress(OSError):
                    total += ticks_of(pid)
            if ticks_of(postmaster, children=True) == ended:
                return (total + ended) / os.sysconf("SC_CLK_TCK")

    def commits(self, database):
        """Commits in a database so far. A session tells of its own when it ends at the latest."""
        gone = f"select count(*) = 0 from pg_stat_activity where datname = '{database}' and backend_type = 'client backend'"
        until("the sessions have ended", lambda: self.sql("postgres", gone) == "t", 10)
        return int(self.sql("postgres", f"select xact_commit from pg_stat_database where datname = '{database}'"))

    def dsn(self, database):
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def sql(self, database, text, seconds=600):
        return self.psql(database, "-A", "-t", "-f", "-", input=text, timeout=seconds).strip()

    def version(self):
        return self.sql("postgres", "show server_version").split()[0]

    @contextlib.contextmanager
    def database(self, template=None):
        """An empty database, or a copy of another one; dropped at the end. What the copy has dirtied is written before it is used."""
        self.count += 1
        name = f"bench{self.count}"
        self.sql("postgres", f"create database {name}" + (f" template {template}" if template else "") + "; checkpoint")
        try:
            yield name
        finally:
            self.sql("postgres", f"drop database {name} with (force)")

    def session(self, database):
        return Session(self, database)

    def pgbench(self, database, script, clients, transactions, directory, seconds=120, define=()):
        """Seconds that `transactions` of the script took, each client having done its share; and the server's CPU seconds."""
        file = directory / "script.sql"
        file.write_text(script)
        each = max(1, transactions // clients)
        before = self.cpu_seconds()
        text = run(
            [
                self.programs / "pgbench",
                "-n",
                "-M",
                "prepared",
                "-c",
                clients,
                "-j",
                min(clients, 2),
                "-t",
                each,
                *[f"-D{pair}" for pair in define],
                "-f",
                file,
                database,
            ],
            seconds,
            env=self.environment,
            cwd="/",
        )
        cpu = self.cpu_seconds() - before
        done = int(re.search(r"actually processed: (\d+)", text).group(1))
        if done != each * clients:
            raise RuntimeError(f"pgbench did {done} of {each * clients} transactions")
        return done / float(re.search(r"tps = ([0-9.]+)", text).group(1)), cpu


class Session:
    """One open psql."""

    def __init__(self, server, database):
        self.process = subprocess.Popen(
            ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=server.environment,
            cwd="/",
        )

    def ask(self, text):
        self.process.stdin.write(text + ";\n\\echo end-of-answer\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "end-of-answer\n":
                return "".join(lines).strip()
            lines.append(line)
        raise RuntimeError("psql ended: " + text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class Figures:
    """The figures of one part. Values are those of the repeats, so a ratio is taken repeat by repeat and then its median."""

    def __init__(self, part):
        self.part, self.rows, self.failures, self.notes, self.curves = part, {}, [], [], []

    def add(self, name, unit, value, cpu=None):
        """cpu: microseconds of the server's CPU time for each item."""
        row = self.rows.setdefault(name, {"name": name, "unit": unit, "values": []})
        row["values"].append(value)
        if cpu is not None:
            row.setdefault("cpu", []).append(cpu)

    def ratio(self, name, against, target=None, less=False):
        """`name` in units of `against`; target: at least, or with `less` at most."""
        row, other = self.rows.get(name), self.rows.get(against)
        if not row or not other:
            return
        pairs = [a / b for a, b in zip(row["values"], other["values"]) if b]
        if pairs:
            ratio = {"against": against, "value": statistics.median(pairs), "low": min(pairs), "high": max(pairs)}
            if target is not None:
                ratio |= {
                    "target": target,
                    "at_most": less,
                    "met": ratio["value"] <= target if less else ratio["value"] >= target,
                }
            if len(row.get("cpu", [])) == len(other.get("cpu", [])) == len(row["values"]):
                cpu = [a / b for a, b in zip(row["cpu"], other["cpu"]) if b]
                ratio |= {"cpu": statistics.median(cpu)} if cpu else {}
            row.setdefault("ratios", []).append(ratio)

    def median(self, name):
        return statistics.median(self.rows[name]["values"]) if name in self.rows else None

    def target(self, name, target, less=False):
        if name in self.rows:
            value = self.median(name)
            self.rows[name] |= {"target": target, "at_most": less, "met": value <= target if less else value >= target}

    @contextlib.contextmanager
    def attempt(self, what):
        """A measurement that fails is told and left out; the others go on."""
        try:
            yield
        except Exception as error:
            self.failures.append(f"{what}: {error}")
            progress(
                f"{self.part}: {what} failed: {(str(error).strip() or type(error).__name__).splitlines()[0]}", end=True
            )

    def result(self, seconds):
        rows = []
        for row in self.rows.values():
            values = row["values"]
            rows.append({**row, "median": statistics.median(values), "low": min(values), "high": max(values)})
        return {
            "seconds": round(seconds, 1),
            "figures": rows,
            "failures": self.failures,
            "notes": self.notes,
            "curves": self.curves,
        }


class Bench:
    """What a part is given."""

    def __init__(self, options, server, directory):
        self.options, self.server, self.directory = options, server, directory
        self.small, self.repeats = options.small, options.repeats
        self.programs = options.programs
        self._migrated, self._filled = None, {}

    def say(self, text):
        progress(text)

    def program(self, name):
        path = self.programs / name
        if not os.access(path, os.X_OK):
            raise Missing(f"{path} is not built")
        return path

    def queue(self, what, database, deadline=600, **settings):
        arguments = [f"{name}={value}" for name, value in settings.items()]
        return run_in_phases(
            [self.program("bench-queue"), what, self.server.dsn(database), *arguments], deadline, self.server
        )

    def migrated(self):
        """A database with the schema, copied for each measurement."""
        if not self._migrated:
            self.server.sql("postgres", "create database holdfast_template")
            self.queue("migrate", "holdfast_template")
            self._migrated = "holdfast_template"
        return self._migrated

    def filled(self, items, crawls):
        """A database with so many items in the queue, copied for each measurement."""
        name = f"holdfast_{items}_{crawls}"
        if name not in self._filled:
            self.say(f"filling a queue of {items}")
            self.server.sql("postgres", f"create database {name} template {self.migrated()}")
            self._filled[name] = self.queue("fill", name, items=items, crawls=crawls)
        return name

    def pick(self, small, full):
        return small if self.small else full

    @contextlib.contextmanager
    def scratch(self):
        path = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        path.chmod(0o755)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def environment(self, database, scratch):
        """Of a program whose collection is `database`, with its files in `scratch`."""
        return {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "PG"))} | {
            "HOLDFAST_DATABASE_URL": self.server.dsn(database),
            "HOLDFAST_DATA_DIR": str(scratch / "data"),
            "HOLDFAST_ARCHIVE_ROOT": str(scratch / "archive"),
            "HOLDFAST_DISK_MINIMUM_FREE": "0",
        }


class Program:
    """A holdfast service in the background; stopped (TERM, then KILL) at the end."""

    def __init__(self, bench, database, scratch, *arguments, plugins=None, settings=()):
        environment = bench.environment(database, scratch) | {
            "HOLDFAST_URLS_ALLOW_PRIVATE": "true",
            "HOLDFAST_LOG_LEVEL": "error",
            "HOLDFAST_MEMORY_MINIMUM_FREE": "0",
            **dict(settings),
        }
        if plugins:
            environment |= {"HOLDFAST_PLUGINS_PATH": str(plugins), "HOLDFAST_PLUGINS_BUILT_IN": "false"}
        self.log = open(scratch / f"log-{time.monotonic_ns()}", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [bench.program("holdfast"), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            cwd=scratch,
            start_new_session=True,
        )

    def pids(self):
        """Of the guard and of what it runs."""
        found, all_parents = [self.process.pid], {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    all_parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        for pid in found:
            found += [child for child, parent in all_parents.items() if parent == pid]
        return found

    def joined(self, session, count=1):
        """Waits until so many processes have taken their place."""

        def look():
            if self.process.poll() is not None:
                self.log.seek(0)
                raise RuntimeError("holdfast ended: " + " ".join(self.log.read()[-600:].split()))
            return session.ask("select count(*) from holdfast.process where status = 'running'") == str(count)

        until("the worker has joined", look, 60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def plugin(directory, script):
    """A plugin with one hook."""
    home = directory / "plugins" / "hook"
    home.mkdir(parents=True)
    (home / "config.json").write_text("{}")
    file = home / "on_Snapshot__10_hook.sh"
    file.write_text("#!/bin/sh\n" + script)
    file.chmod(0o755)
    return directory / "plugins"


def add_crawl(session, crawl, count):
    """Adds a crawl of so many URLs, without limits for their hosts."""
    session.ask(
        f"""begin; select holdfast.crawl_add('{crawl}', '{{}}');
        select holdfast.crawl_add_seeds('{crawl}', array(select 'https://site' || n % 50 || '.example/' || n
          from generate_series(1, {count}) n), '{{}}', null); commit"""
    )
