"""The environment of the suites: a directory with plugins, data and archive, and the holdfast processes on it.

A suite takes a profile as it is, or makes its own of one: a class that names the settings and the database it needs.
Everything else is as users have it.
"""

import atexit
import contextlib
import fcntl
import functools
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from .postgres import find_programs
from .wait import until
from .worker import living, processes, processes_below, read

ROOT = os.geteuid() == 0
DEADLINE = 120  # seconds; nothing here takes that long

# Short leases, so that what a killed program held is soon free. The rules between them are those of holdfast config.
SHORT_LEASE = {
    "HOLDFAST_LEASE": "9s",
    "HOLDFAST_MARGIN": "6s",
    "HOLDFAST_HEARTBEAT": "1s",
    "HOLDFAST_KILL_GRACE": "500ms",
    "HOLDFAST_WORKER_POLL": "200ms",
}

HOOK = """#!/bin/bash
for word in "$@"; do case $word in --url=*) url=${word#--url=} ;; esac; done
name=${url##*/}
gates='%s'
# Waits by reading what no one writes: many wait at once, and a process each time would be what the machine does then.
gate() {
  : >"$gates/$1.here"
  exec {quiet}<> <(:)
  for ((i = 0; i < 2400; i++)); do [[ -e $gates/$1 || -e $gates/all ]] && return; read -rt 0.05 -u "$quiet"; done
  exit 99
}
%s
"""


def program():
    """The program under test, which tests/harness/suites.py names."""
    return os.environ.get("HOLDFAST_TEST_PROGRAM", "")


@functools.cache
def looks_for_leaks():
    """Whether this build does: such a process lets itself be traced, and takes more memory."""
    return b"__lsan_" in Path(program()).read_bytes()


def closed_to_others():
    """The first directory on the way to this build that other users than root cannot enter, such as /root; or None."""
    closed = [path for path in Path(program()).resolve().parents if not path.stat().st_mode & 0o001]
    return closed[-1] if closed else None


def as_plain_user():
    """Keywords of subprocess that run it as another user than root, who can run this build."""
    if not ROOT:
        return {}
    if closed := closed_to_others():
        raise unittest.SkipTest(f"other users cannot enter {closed}")
    # The kernel shows 65534 for users that are not mapped: as that user, a test misses faults of the mapping.
    daemon = pwd.getpwnam("daemon")
    return {"user": daemon.pw_uid, "group": daemon.pw_gid, "extra_groups": []}


def named(settings):
    """Settings as environment variables. Their names may stand without HOLDFAST_."""
    whole = ("HOLDFAST_", "PG", "AWS_")
    return {name if name.startswith(whole) else "HOLDFAST_" + name: str(value) for name, value in settings.items()}


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def records(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def __str__(self):
        return f"exit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


class Collection:
    """Closing it kills the processes and removes the directory.

    Of `start` and `run`, keywords in capitals are settings of that process; the others are those of subprocess."""

    settings = {}  # of a profile

    def __init__(self, parent=None, **settings):
        # The database's user, when we are root, must be able to pass.
        self.path = Path(tempfile.mkdtemp(prefix="holdfast-test-", dir=parent))
        self.path.chmod(0o755)
        self.data, self.plugins, self.gates = (self.path / name for name in ("data", "plugins", "gates"))
        self.plugins.mkdir()
        self.gates.mkdir()
        self.gates.chmod(0o777)
        self.program, self.processes = program(), []
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.path),
            "LANG": "C.UTF-8",
            "HOLDFAST_DATA_DIR": str(self.data),
            "HOLDFAST_PLUGINS_PATH": str(self.plugins),
            "HOLDFAST_PLUGINS_BUILT_IN": "false",
            "HOLDFAST_URLS_ALLOW_PRIVATE": "true",
            "HOLDFAST_HOOK_SANDBOX": "off",  # hooks here leave marks outside their directories
            "HOLDFAST_DISK_MINIMUM_FREE": "0",
            **{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")},
            **named(self.settings | settings),
        }

    def url(self, address=None):
        """Where a process finds the database, from `address` if it has one; None: it has one of its own."""

    def release(self):
        """Gives up the database, after the processes have ended."""

    def hook(self, plugin, name, script):
        """A hook of a plugin: a whole program, or what follows on HOOK."""
        directory = self.plugins / plugin
        directory.mkdir(exist_ok=True)
        file = directory / name
        file.write_text(script if script.startswith("#!") else HOOK % (self.gates, script))
        file.chmod(0o755)

    def open(self, gate):
        (self.gates / gate).touch()

    def arrived(self, gate):
        return (self.gates / f"{gate}.here").exists()

    def command(self, *arguments):
        return [self.program, *map(str, arguments)]

    def surroundings(self, options, env=None, address=None):
        """The environment of a process; takes the settings out of `options`."""
        settings = {name: options.pop(name) for name in list(options) if name.isupper()}
        url = self.url(address)
        return {**self.environment, **({"HOLDFAST_DATABASE_URL": url} if url else {}), **named(settings), **(env or {})}

    def start(self, *arguments, machine=None, address=None, env=None, **options):
        """A process of holdfast, on this machine or in the network of another one; its output goes to a log."""
        env = self.surroundings(options, env, machine.address if machine else address)
        log = None
        if "stdout" not in options:
            log = open(self.path / f"log{len(self.processes)}", "w+", encoding="utf-8")
            options |= {"stdout": log, "stderr": log, "start_new_session": True}
        options.setdefault("stdin", subprocess.DEVNULL)
        enter = ["ip", "netns", "exec", machine.name] if machine else []
        process = subprocess.Popen([*enter, *self.command(*arguments)], cwd=self.path, env=env, text=True, **options)
        process.log = log
        self.processes.append(process)
        return process

    def run(self, *arguments, env=None, given=None, prefix=(), **options):
        """Runs a command to its end, whatever that is."""
        env = self.surroundings(options, env)
        done = subprocess.run(
            [*prefix, *self.command(*arguments)],
            cwd=self.path,
            env=env,
            input=given,
            stdin=None if given is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            **options,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def holdfast(self, *arguments, expect=0, **options):
        """Runs a command to its end; fails unless it exits with `expect` (None: whatever it exits with)."""
        done = self.run(*arguments, **options)
        if expect is not None and done.code != expect:
            raise AssertionError(f"holdfast {' '.join(map(str, arguments))}: not exit {expect}, but {done}")
        return done

    def lines(self, *arguments, **options):
        return self.holdfast(*arguments, **options).records

    @staticmethod
    def log_of(process):
        process.log.flush()
        return Path(process.log.name).read_text(encoding="utf-8", errors="replace")

    def logs(self):
        return "".join(f"--- {p.args} ({p.poll()})\n{self.log_of(p)[-3000:]}" for p in self.processes if p.log)

    def until(self, what, condition, seconds=60):
        return until(what, condition, seconds, self.logs)

    def attempts(self):
        return sorted(path.parent for path in self.data.glob("archive/*/*/*/*/a*/manifest-sha256.txt"))

    def close(self, _=None):
        for process in self.processes:
            if process.poll() is None and process.log:
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
            if process.log:
                process.log.close()
        self.end_sessions()
        self.release()
        shutil.rmtree(self.path, ignore_errors=True)

    def end_sessions(self):
        """Ends what those that were killed have left: workers of a runner, above all."""
        sessions = {process.pid for process in self.processes}
        for pid in processes():
            state = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            if state and int(state[3]) in sessions:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


class OnServer(Collection):
    """The profile of suites with a database server. `sql` and `broken` ask the database."""

    server, database, user = None, "holdfast", "holdfast"

    def __init__(self, **options):
        super().__init__(**options)
        self.servers = []  # of its own

    def add_server(self, kind):
        server = kind(self.path / f"server{len(self.servers)}")
        self.servers.append(server)
        return server

    def release(self):
        for server in self.servers:
            server.stop()

    def url(self, address=None):
        place = f"{address or '127.0.0.1'}:{self.server.port}"
        return f"postgresql://{self.user}@{place}/{self.database}?sslmode=disable&gssencmode=disable"

    def sql(self, query):
        return self.server.sql(query, self.database)

    def broken(self):
        return self.sql("select * from holdfast.check_invariants()")


class Embedded(Collection):
    """The profile of suites of the program as it is for one person: its database is its own, and the test reads what it
    says. close() fails if anything of it still runs."""

    def __init__(self, parent=None, **settings):
        super().__init__(parent, **settings)
        self.hook("page", "on_Snapshot__10_page.sh", 'echo "$url" >page.txt')
        self.holder = None

    def fill(self, plain=False):
        """Gives it an empty collection, of root or of a plain user. To make one takes ten times as long as a copy."""
        subprocess.run(["cp", "-a", "--reflink=auto", empty_collection(plain), self.data], check=True)
        return self

    def hold(self):
        """Keeps the server of the collection up: else each command starts and stops it."""
        self.holder = self.start("psql", stdin=subprocess.PIPE)
        until("the server is up", self.server_pid)
        return self

    def let_go(self):
        if self.holder:
            self.finish(self.holder)
            self.holder = None

    def start(self, *arguments, **options):
        return super().start(*arguments, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})

    @staticmethod
    def finish(process, timeout=DEADLINE):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()  # the guard: the program dies with it
            out, err = process.communicate()
            raise AssertionError(f"did not end in time\n--- out\n{out}\n--- err\n{err}") from None
        return Result(process.returncode, out, err)

    def hooks(self):
        """Living processes that a worker of this collection has started. Their environment names it; in a container,
        root does not see that of another user's processes, and takes what is below our shims."""
        marked, own = set(), str(self.path).encode()
        for pid in processes():
            environment, arguments = read(f"/proc/{pid}/environ"), read(f"/proc/{pid}/cmdline")
            if own in environment and b"HOLDFAST_COOKIE=" in environment:
                marked.add(pid)
            elif own in arguments and b"/holdfast-shim\0" in arguments:
                marked.update(below for below, _ in processes_below(pid))
        return sorted(filter(living, marked))

    def server_pid(self):
        """Pid of this collection's own PostgreSQL, or None."""
        lines = read(self.data / "postgres/postmaster.pid").split()
        if not lines:
            return None
        pid = int(lines[0])
        return pid if str(self.data).encode() in read(f"/proc/{pid}/cmdline") else None

    def own_programs(self):
        """Processes of the program under test that work on this collection."""
        directory, mark = str(Path(self.program).parent).encode(), str(self.path).encode()
        return [
            pid
            for pid in processes()
            if directory in read(f"/proc/{pid}/cmdline") and mark in read(f"/proc/{pid}/environ") and living(pid)
        ]

    def close(self, test=None):
        self.let_go()
        leftovers = self.hooks() + self.own_programs()
        server = self.server_pid()
        for pid in leftovers + ([server] if server else []):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if server:
            until("the server is gone", lambda: not Path(f"/proc/{server}").exists(), 10)
        shutil.rmtree(self.path, ignore_errors=True)
        test.assertEqual(leftovers, [], "processes were left behind")
        test.assertIsNone(server, "the database server was left running")


@functools.cache
def empty_collection(plain):
    """The files of a collection after `holdfast migrate`: beside the program, for all suites of a build."""
    user = as_plain_user() if plain else {}
    build = Path(program()).parents[1]
    if not os.access(build, os.W_OK):
        build = Path(tempfile.mkdtemp(prefix="holdfast-empty-"))
        atexit.register(shutil.rmtree, build, ignore_errors=True)
    server = str(find_programs()).replace("/", "-")  # tests/versions has others
    kept = build / f"empty-collection{server}-{user.get('user', os.geteuid())}"
    kept.mkdir(exist_ok=True)
    data = kept / "data"
    with open(kept / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if data.exists() and data.stat().st_mtime > os.stat(program()).st_mtime:
            return data
        for old in (data, kept / "new"):
            shutil.rmtree(old, ignore_errors=True)
        place = Embedded()
        if user:
            os.chown(place.path, user["user"], user["group"])
        place.holdfast("migrate", **user)
        subprocess.run(["cp", "-a", place.data, kept / "new"], check=True)
        os.utime(kept / "new")
        (kept / "new").rename(data)
        shutil.rmtree(place.path)
    return data
