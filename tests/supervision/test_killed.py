"""kill -9 of the worker, or of its guard, while Chromium is open: five seconds later no process of it is alive, as root and as
a plain user."""

import http.server
import os
import shutil
import signal
import threading
import time
import unittest
from pathlib import Path

from worker import FULL, WorkerCase, figure, living, read, status_field, until
from support import ROOT

CHROMIUM = shutil.which("chromium")
PLUGINS = Path(__file__).resolve().parents[2] / "deploy/plugins"
SECONDS = 5  # what was promised


class Server:
    """A page that never ends, so that Chromium stays with it."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html" if self.path == "/" else "text/css")
                self.end_headers()
                if self.path == "/":
                    self.wfile.write(b"<title>Slow</title><link rel=stylesheet href=/endless.css><p>Slow")
                else:
                    stop.wait(600)

            def log_message(self, *_):
                pass

        stop = self._stop = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def stop(self):
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()


def browsers(home):
    return [pid for pid in home.tree(home.guard.pid) if b"chrom" in read(f"/proc/{pid}/comm") and living(pid)]


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class Killed(WorkerCase):
    def kill(self, plain, whom, name):
        server = Server()
        self.addCleanup(server.stop)
        home = self.worker_place(plain, PLUGINS_PATH=PLUGINS, LEASE="30s", MARGIN="10s", BEAT="1s")
        home.work()
        home.queue(server.url, plugins="screenshot", TIMEOUT=300)
        until("Chromium has its processes", lambda: len(browsers(home)) >= 5)
        tree = [(pid, status_field(pid, "Name")) for pid in home.tree(home.guard.pid)]
        tree = [(pid, comm) for pid, comm in tree if comm and not comm.startswith("postgres")]
        started = time.monotonic()
        os.kill(whom(home), signal.SIGKILL)
        until("nothing of it lives", lambda: not any(living(pid) for pid, _ in tree) and not home.survivors(), SECONDS)
        figure(
            f"kill -9 of the {name}{' as nobody' if home.identity else ''}: {len(tree)} processes, "
            f"{sum('chrom' in comm for _, comm in tree)} of them Chromium's, gone after {time.monotonic() - started:.2f} s"
        )
        home.guard.wait(30)

    def test_worker(self):
        self.kill(False, lambda home: home.worker_pid(), "worker")

    def test_guard(self):
        self.kill(False, lambda home: home.guard.pid, "guard")

    @unittest.skipUnless(ROOT, "as root")
    def test_worker_of_plain_user(self):
        self.kill(True, lambda home: home.worker_pid(), "worker")

    @unittest.skipUnless(ROOT and FULL, "--full, as root")
    def test_guard_of_plain_user(self):
        self.kill(True, lambda home: home.guard.pid, "guard")

    @unittest.skipUnless(FULL, "--full")
    def test_again_and_again(self):
        for _ in range(5):
            self.kill(False, lambda home: home.worker_pid(), "worker")
