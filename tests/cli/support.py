"""Collections, plugins and database servers of a test's own, and the program under test."""

import atexit
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

from harness.postgres import Server
from harness.wait import free_port, until
from harness.worker import living, processes, processes_below, read

PROGRAM = os.environ.get("HOLDFAST_TEST_PROGRAM", "")
ROOT = os.geteuid() == 0
DEADLINE = 120  # seconds; nothing here takes that long

# Exit codes of lib/base/error.hpp.
OK, FAILED_WORK, USAGE, REFUSED, UNAVAILABLE = 0, 1, 64, 65, 69
CANNOT_CREATE, INPUT_OUTPUT, SCHEMA_MISMATCH, CONFIGURATION, INTERRUPTED = 73, 74, 76, 78, 130

# Short leases, so that what a killed program held is soon free. The rules between them are those of holdfast config.
SHORT_LEASE = {
    "HOLDFAST_LEASE": "9s",
    "HOLDFAST_MARGIN": "6s",
    "HOLDFAST_BEAT": "1s",
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


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def records(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def __str__(self):
        return f"exit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


class Place:
    """A directory with plugins, gates and room for a collection. close() fails if anything of it still runs."""

    def __init__(self, parent=None):
        # The database's user, when we are root, must be able to pass.
        self.path = Path(tempfile.mkdtemp(prefix="holdfast-cli-", dir=parent))
        self.path.chmod(0o755)
        self.data = self.path / "data"
        self.gates = self.path / "gates"
        self.plugins = self.path / "plugins"
        self.gates.mkdir()
        self.gates.chmod(0o777)
        self.plugins.mkdir()
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.path),
            "LANG": "C.UTF-8",
            "HOLDFAST_DATA_DIR": str(self.data),
            "HOLDFAST_PLUGINS_PATH": str(self.plugins),
            "HOLDFAST_URLS_ALLOW_PRIVATE": "true",
            "HOLDFAST_HOOK_SANDBOX": "off",  # hooks here leave marks outside their directories
            "HOLDFAST_DISK_MINIMUM_FREE": "0",
        }
        for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        self.hook("page", "on_Snapshot__10_page.sh", 'echo "$url" >page.txt')
        self.holder = None

    def fill(self, plain=False):
        """Gives it an empty collection, of root or of a plain user. To make one takes ten times as long as a copy."""
        subprocess.run(["cp", "-a", "--reflink=auto", empty_collection(plain), self.data], check=True)
        return self

    def hold(self):
        """Keeps the server of the collection up: else each command starts and stops it."""
        self.holder = self.start("psql", stdin=subprocess.PIPE)
        until("the server is up", self.server)
        return self

    def let_go(self):
        if self.holder:
            self.finish(self.holder)
            self.holder = None

    def hook(self, plugin, name, script):
        directory = self.plugins / plugin
        directory.mkdir(exist_ok=True)
        file = directory / name
        file.write_text(HOOK % (self.gates, script))
        file.chmod(0o755)

    def open(self, gate):
        (self.gates / gate).touch()

    def arrived(self, gate):
        return (self.gates / f"{gate}.here").exists()

    def command(self, *arguments):
        return [PROGRAM, *map(str, arguments)]

    def start(self, *arguments, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(
            self.command(*arguments), cwd=self.path, env={**self.environment, **(env or {})}, text=True, **options
        )

    @staticmethod
    def finish(process, timeout=DEADLINE):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()  # the guard: the program dies with it
            out, err = process.communicate()
            raise AssertionError(f"did not end in time\n--- out\n{out}\n--- err\n{err}") from None
        return Result(process.returncode, out, err)

    def run(self, *arguments, env=None, given=None, prefix=(), **options):
        done = subprocess.run(
            [*prefix, *self.command(*arguments)],
            cwd=self.path,
            env={**self.environment, **(env or {})},
            input=given,
            stdin=None if given is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            **options,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def hooks(self):
        """Living processes that a worker of this collection has started: as their environment shows, or, in a container,
        where root does not see that of another user's processes, what is below our shims."""
        marked, own = set(), str(self.path).encode()
        for pid in processes():
            environment, arguments = read(f"/proc/{pid}/environ"), read(f"/proc/{pid}/cmdline")
            if own in environment and b"HOLDFAST_COOKIE=" in environment:
                marked.add(pid)
            elif own in arguments and b"/holdfast-shim\0" in arguments:
                marked.update(below for below, _ in processes_below(pid))
        return sorted(filter(living, marked))

    def server(self):
        """Pid of this collection's own PostgreSQL, or None."""
        lines = read(self.data / "postgres/postmaster.pid").split()
        if not lines:
            return None
        pid = int(lines[0])
        return pid if str(self.data).encode() in read(f"/proc/{pid}/cmdline") else None

    def own_programs(self):
        """Processes of the program under test that work on this collection."""
        marks = str(self.path).encode()
        return [
            pid
            for pid in processes()
            if Path(PROGRAM).parent.as_posix().encode() in read(f"/proc/{pid}/cmdline")
            and marks in read(f"/proc/{pid}/environ")
            and living(pid)
        ]

    def attempts(self):
        return sorted(path.parent for path in self.data.glob("archive/*/*/*/*/a*/manifest-sha256.txt"))

    def close(self, test):
        self.let_go()
        leftovers = self.hooks() + self.own_programs()
        server = self.server()
        for pid in leftovers + ([server] if server else []):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if server:
            until("the server is gone", lambda: not Path(f"/proc/{server}").exists(), 10)
        shutil.rmtree(self.path, ignore_errors=True)
        test.assertEqual(leftovers, [], "processes were left behind")
        test.assertIsNone(server, "the database server was left running")


@functools.cache
def empty_collection(plain):
    """The files of a collection after `holdfast migrate`, for all tests of this process."""
    place, user = Place(), as_plain_user() if plain else {}
    atexit.register(shutil.rmtree, place.path, ignore_errors=True)
    if user:
        os.chown(place.path, user["user"], user["group"])
    made = place.run("migrate", **user)
    if made.code:
        raise AssertionError(str(made))
    return place.data


class Case(unittest.TestCase):
    maxDiff = None

    def place(self, held=False, filled=True):
        """`filled`: with an empty collection; `held`: whose server is up."""
        place = Place()
        self.addCleanup(place.close, self)
        if filled:
            place.fill()
        return place.hold() if held else place

    def check_error(self, result, code, *words):
        """One clear message: the program's name first, the words in it, nothing on standard output."""
        self.assertEqual(result.code, code, str(result))
        said = "".join(line for line in result.err.splitlines(True) if not line.startswith('{"time"'))  # the log
        self.assertTrue(said.startswith("holdfast: "), str(result))
        self.assertEqual(said.count("holdfast: "), 1, str(result))
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(result.out, "", str(result))
        self.assertNotIn("terminate called", result.err)


def closed_to_others():
    """The first directory on the way to this build that other users than root cannot enter, such as /root; or None."""
    closed = [path for path in Path(PROGRAM).resolve().parents if not path.stat().st_mode & 0o001]
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


def can_mount():
    return (
        ROOT
        and shutil.which("unshare")
        and subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True).returncode
        == 0
    )


def with_mounts(script):
    """A command's prefix that runs it with mounts of its own, which vanish with it."""
    return ["unshare", "-m", "sh", "-c", f'{script} && exec "$@"', "sh"]


class Database(Server):
    """A PostgreSQL server that is not holdfast's own: on a port, with passwords."""

    PASSWORD = "correct horse"

    def __init__(self, directory=None, **settings):
        super().__init__(directory, user="holdfast", port=free_port(), password=self.PASSWORD, **settings)
        self.__enter__()

    def url(self, name="postgres", password=PASSWORD, user="holdfast"):
        secret = f":{password.replace(' ', '%20')}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{name}"

    def close(self):
        self.__exit__()
