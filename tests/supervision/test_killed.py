"""kill -9 of the worker, of its guard or of its browser while a page is archived: five seconds later no process of it is
alive, as root and as a plain user, at whatever moment (run.py --trials 30 --seed N)."""

import contextlib
import os
import random
import shutil
import signal
import threading
import time
import unittest
from pathlib import Path

from harness.full import only_in_full
from harness.web import Handler, LocalSite
from worker import SEED, TRIALS, WorkerCase, figure, living, read, status_field, until
from harness.collection import ROOT

CHROMIUM = shutil.which("chromium")
PLUGINS = Path(__file__).resolve().parents[2] / "deploy/plugins"
SECONDS = 5  # what was promised


class Server(LocalSite):
    """A page that never ends, so that Chromium stays with it."""

    def __init__(self):
        class Page(Handler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/css" if self.path == "/endless.css" else "text/html")
                self.end_headers()
                if self.path == "/endless.css":
                    stop.wait(600)
                else:
                    with contextlib.suppress(OSError):  # its browser has been killed
                        self.wfile.write(b"<title>Slow</title><link rel=stylesheet href=/endless.css><p>Slow")

        stop = self._stop = threading.Event()
        super().__init__(Page)
        self.url += "/"

    def close(self):
        self._stop.set()
        super().close()


def browsers(home):
    return [pid for pid in home.tree(home.guard.pid) if b"chrom" in read(f"/proc/{pid}/comm") and living(pid)]


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class Killed(WorkerCase):
    def kill(self, plain, whom, name):
        server = Server()
        self.addCleanup(server.close)
        home = self.worker_place(plain, PLUGINS_PATH=PLUGINS, LEASE="30s", MARGIN="10s", HEARTBEAT="1s")
        home.work()
        home.queue(server.url, plugins="screenshot", TIMEOUT=300)
        until("Chromium has its processes", lambda: len(browsers(home)) >= 5)
        tree = [(pid, status_field(pid, "Name")) for pid in home.tree(home.guard.pid)]
        tree = [(pid, comm) for pid, comm in tree if comm and not comm.startswith("postgres")]
        started = time.monotonic()
        os.kill(whom(home), signal.SIGKILL)
        until("nothing of it lives", lambda: not any(living(pid) for pid, _ in tree) and not home.survivors(), SECONDS)
        figure(
            f"kill -9 of the {name}{' as a plain user' if home.identity else ''}: {len(tree)} processes, "
            f"{sum('chrom' in comm for _, comm in tree)} of them Chromium's, gone after {time.monotonic() - started:.2f} s"
        )
        home.guard.wait(30)

    def test_worker(self):
        self.kill(False, lambda home: home.worker_pid(), "worker")

    @unittest.skipUnless(ROOT, "as root")
    def test_worker_of_plain_user(self):
        self.kill(True, lambda home: home.worker_pid(), "worker")

    @only_in_full
    @unittest.skipUnless(ROOT, "as root")
    def test_guard_of_plain_user(self):
        self.kill(True, lambda home: home.guard.pid, "guard")

    @only_in_full
    def test_again_and_again(self):
        for _ in range(5):
            self.kill(False, lambda home: home.worker_pid(), "worker")

    def trial(self, home, url, whom, moment):
        """Returns how many processes there were, and how long the last of them lived."""
        home.work()
        home.queue(url, plugins="screenshot", TIMEOUT=300)
        time.sleep(moment)  # which is what is tried: nothing is waited for
        if whom == "browser":
            until("Chromium has been started", lambda: browsers(home))
        tree = [(pid, status_field(pid, "Name")) for pid in home.tree(home.guard.pid)]
        tree = [pid for pid, comm in tree if comm and not comm.startswith("postgres")]
        victims = {"worker": home.worker_pid, "guard": lambda: home.guard.pid, "browser": lambda: browsers(home)[0]}
        started = time.monotonic()
        os.kill(victims[whom](), signal.SIGKILL)
        if whom == "browser":  # the worker goes on
            home.guard.terminate()
            home.guard.wait(60)
        until("nothing of it lives", lambda: not any(map(living, tree)) and not home.survivors(), SECONDS)
        lived = time.monotonic() - started
        home.guard.wait(30)
        return len(tree), lived

    def test_at_random_moments(self):
        """Worker, guard and browser in turn."""
        server = Server()
        self.addCleanup(server.close)
        source = random.Random(SEED)
        home = self.worker_place(PLUGINS_PATH=PLUGINS, LEASE="30s", MARGIN="10s", HEARTBEAT="1s", DRAIN_TIMEOUT="1s")
        found = []
        for number in range(TRIALS):
            whom, moment = ("worker", "guard", "browser")[number % 3], source.uniform(0, 4)
            with self.subTest(whom, trial=number, seed=SEED, moment=moment):
                found.append(self.trial(home, f"{server.url}?{number}", whom, moment))
        processes, seconds = map(max, zip(*found))
        figure(f"{len(found)} trials, seed {SEED}: up to {processes} processes, none survives {seconds:.2f} s")
