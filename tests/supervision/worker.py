"""A real worker on a collection of its own, as root or as a plain user, and what /proc says of it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from harness.wait import until
from harness.worker import living, processes, read
from harness.case import PROGRAM, Case
from harness.collection import Embedded, as_plain_user

TRIALS, SEED = int(os.environ.get("HOLDFAST_TEST_TRIALS") or 3), int(os.environ.get("HOLDFAST_TEST_SEED") or 1)
MISBEHAVE = Path(PROGRAM).parent / "misbehave"


def figure(text):
    print(f"\n    {text}", end=" ", file=sys.stderr, flush=True)


def status_field(pid, name):
    for line in read(f"/proc/{pid}/status").decode().splitlines():
        if line.startswith(name + ":"):
            return line.split()[1]
    return None


def open_files(pid):
    """How many it has. 0: nothing but root may see it, for a worker that can be looked into tells its secrets."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return 0


class WorkerPlace(Embedded):
    """One worker, its own database, its hooks. `plain`: as a user without rights, if we are root. `parent`: of its directory."""

    settings = {"KILL_GRACE": "500ms", "WORKER_POLL": "200ms", "LOG_LEVEL": "info"}

    def __init__(self, plain=False, parent=None, filled=True, **settings):
        super().__init__(parent, **settings)
        self.identity = as_plain_user() if plain else {}
        shutil.rmtree(self.plugins / "page")
        if self.identity:
            os.chown(self.path, self.identity["user"], self.identity["group"])
        self.log = self.path / "worker.log"
        self.guard = None
        if filled:
            self.fill(plain)

    def work(self):
        with open(self.log, "wb") as log:
            self.guard = self.start("worker", stdout=log, stderr=log, **self.identity)
        until("the worker has joined", lambda: b" joined as " in self.log.read_bytes() or self.guard.poll() is not None)
        if self.guard.poll() is not None:
            raise AssertionError("the worker has ended:\n" + self.log.read_text())

    def worker_pid(self):
        """Pid of the worker itself; self.guard is its guard."""
        children = read(f"/proc/{self.guard.pid}/task/{self.guard.pid}/children").split()
        return next(int(pid) for pid in children if b"worker" in read(f"/proc/{int(pid)}/cmdline"))

    @staticmethod
    def tree(pid):
        """Pids of a process and its descendants."""
        found = [pid]
        for parent in found:
            with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
                for thread in os.listdir(f"/proc/{parent}/task"):
                    found += map(int, read(f"/proc/{parent}/task/{thread}/children").split())
        return found

    def queue(self, *urls, plugins, **options):
        words = [f"--option={key}={value}" for key, value in options.items()]
        self.holdfast("add", *urls, "--bg", "-p", plugins, *words, **self.identity)

    def sql(self, text):
        where = ["-h", self.data / "postgres-run", "-U", "holdfast", "-d", "holdfast"]
        done = subprocess.run(
            ["psql", "-X", "-q", "-At", "-F", "\t", *where, "-c", text],
            capture_output=True,
            text=True,
            cwd="/",
            timeout=60,
            **self.identity,
        )
        if done.returncode:
            raise AssertionError(done.stderr)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def survivors(self):
        """Living processes of any hook of ours: by cookie, or by a path of ours in the arguments or as directory."""
        mark = str(self.path).encode()
        server = self.server_pid()
        found = []
        for pid in processes():
            if pid == os.getpid() or not living(pid):
                continue
            environment, arguments = read(f"/proc/{pid}/environ"), read(f"/proc/{pid}/cmdline")
            cookie = b"HOLDFAST_COOKIE=" in environment and mark in environment
            first = arguments.split(b"\0")[0]
            ours = os.fsdecode(first) in (PROGRAM, PROGRAM + "-guard")
            place = b""
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                place = os.readlink(f"/proc/{pid}/cwd").encode()
            # A built-in hook has no path of ours in its arguments, but works in its attempt. What has no arguments any
            # more has given its memory back and is ending; whether it was a server's cannot be told.
            at_work = mark in arguments or (arguments and mark in place)
            named = at_work and b"postgres" not in first and pid != server and not ours
            if cookie or named:
                found.append((pid, arguments.replace(b"\0", b" ").decode(errors="replace")[:120]))
        return found

    def leave(self):
        self.guard.terminate()
        self.guard.wait(120)

    def close(self, test):
        if self.guard and self.guard.poll() is None:
            self.guard.terminate()
            try:
                self.guard.wait(60)
            except subprocess.TimeoutExpired:
                self.guard.kill()
                self.guard.wait()
        if sys.exc_info()[0] is None and not test._outcome.success and self.log.exists():
            sys.stderr.write(self.log.read_text(errors="replace")[-6000:])
        # The server ends with its last user; a killed worker could not tell it to.
        server = self.server_pid()
        if server:
            os.kill(server, signal.SIGINT)
            until("the server has ended", lambda: self.server_pid() is None)
        super().close(test)


class WorkerCase(Case):
    profile = WorkerPlace
    worker_place = Case.collection
