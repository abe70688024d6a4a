"""Runs hooks as the runner does, against the test site in its own process."""

import base64
import gzip
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness.worker import processes, processes_below, read

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "deploy" / "plugins"
SITE = ROOT / "tests" / "site" / "site.py"
DEMO = ROOT / "deploy" / "demo-site" / "serve.py"
PROGRAMS = Path(os.environ.get("HOLDFAST_BIN", ROOT / "build" / "dev" / "bin"))

# As the plugin's default, which a worker hands to its hooks.
CHROMIUM = next(
    filter(None, map(shutil.which, ("/usr/lib/chromium/chromium-headless-shell", "chromium", "google-chrome"))), None
)
needs_chromium = unittest.skipUnless(CHROMIUM, "chromium is not installed")
needs_wget = unittest.skipUnless(shutil.which("wget"), "wget is not installed")


class Server:
    """A child that prints its URL as its first line."""

    def __init__(self, *command):
        self._process = subprocess.Popen([sys.executable, "-B", *map(str, command)], stdout=subprocess.PIPE, text=True)
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"{command[0]} did not start")

    def stop(self):
        self._process.terminate()
        self._process.stdout.close()
        return self._process.wait(10)


class Browser:
    """The crawl hook of the browser plugin, which a worker starts for each crawl."""

    def __init__(self, directory, **settings):
        self.crawl = directory
        self._process = subprocess.Popen(
            [hook_file("browser", "on_CrawlSetup__*")],
            cwd=directory,
            env={
                "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
                "CRAWL_DIR": str(directory),
                "TMP_DIR": str(directory),
                "BROWSER_BINARY": CHROMIUM or "",
                **settings,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if not self._process.stdout.readline():
            raise RuntimeError("the browser did not start")

    @property
    def pid(self):
        return self._process.pid

    def stop(self):
        self._process.terminate()
        self._process.stdout.close()
        return self._process.wait(20)


def processes_of(*directories):
    """Command lines of live processes that name one of the directories in command or environment."""
    found = []
    for pid in processes():
        command = read(f"/proc/{pid}/cmdline")
        about = read(f"/proc/{pid}/environ") + command
        if pid != os.getpid() and any(str(directory).encode() in about for directory in directories):
            found.append(command.replace(b"\0", b" ")[:200])
    return found


def descendants_of(pid):
    """Command lines of the processes below a process."""
    return [read(f"/proc/{child}/cmdline").replace(b"\0", b" ")[:200] for child, _ in processes_below(pid)]


def refused_url(test):
    """The URL of a port at which nothing listens as long as the test lasts."""
    held = socket.socket()
    test.addCleanup(held.close)
    held.bind(("127.0.0.1", 0))
    return f"http://127.0.0.1:{held.getsockname()[1]}/"


class Outcome:
    def __init__(self, plugin, code, stdout, stderr, directory):
        self.code, self.stderr, self.directory = code, stderr, directory
        self.records = [json.loads(line) for line in stdout.splitlines()]
        results = [record for record in self.records if record["type"] == "ArchiveResult"]
        if code not in (143, -9) and len(results) != 1:
            raise AssertionError(f"{plugin} printed {len(results)} results, exit {code}\n{stdout}\n{stderr}")
        self.result = results[0] if results else None

    @property
    def status(self):
        return self.result["status"]

    @property
    def output(self):
        return self.result["output_str"]

    def file(self, name):
        return (self.directory / name).read_bytes()

    def text(self, name):
        return self.file(name).decode("utf-8")

    def json(self, name):
        return json.loads(self.file(name))


def warc_records(path):
    """(headers, block) of each record; fails if lengths or digests are wrong."""
    data, records = gzip.decompress(path.read_bytes()), []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        version, *lines = head.decode().split("\r\n")
        assert version in ("WARC/1.0", "WARC/1.1"), version
        fields = dict(line.split(": ", 1) for line in lines)
        length = int(fields["Content-Length"])
        block, end, data = rest[:length], rest[length : length + 4], rest[length + 4 :]
        assert end == b"\r\n\r\n", "a record does not end where it says"

        def digest(of):
            return "sha1:" + base64.b32encode(hashlib.sha1(of).digest()).decode()

        assert fields["WARC-Block-Digest"] == digest(block), fields
        if fields["WARC-Type"] == "response":
            assert fields["WARC-Payload-Digest"] == digest(block.partition(b"\r\n\r\n")[2]), fields
        records.append((fields, block))
    return records


def hook_file(plugin, pattern="on_Snapshot__*"):
    (file,) = (PLUGINS / plugin).glob(pattern)
    return file


def all_plugins():
    return sorted(path.name for path in PLUGINS.iterdir() if path.is_dir() and path.name[0] not in "._")


class HookTest(unittest.TestCase):
    """Each test has a fresh snapshot directory; the site is shared by a class."""

    @classmethod
    def setUpClass(cls):
        cls.site = Server(SITE)
        cls.addClassCleanup(cls.site.stop)

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="holdfast-plugins-")
        self.addCleanup(directory.cleanup)
        self.snapshot = Path(directory.name) / "snapshot"
        self.temporary = Path(directory.name) / "tmp"
        self.temporary.mkdir()
        self.crawl = Path(directory.name) / "crawl"

    def url(self, path):
        return self.site.url + path.lstrip("/")

    def environment(self, settings):
        return {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "CRAWL_DIR": str(self.crawl),
            "HOME": str(self.temporary),
            "LANG": "C",
            "SNAP_DIR": str(self.snapshot),
            "TMP_DIR": str(self.temporary),
            "TIMEOUT": "60",
            **settings,
        }

    def start(self, plugin, url, **settings):
        directory = self.snapshot / plugin
        directory.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [hook_file(plugin), f"--url={url}", "--snapshot-id=0192f3a0-0000-7000-8000-000000000000"],
            cwd=directory,
            env=self.environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, plugin, process, limit=120):
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            self.fail(f"{plugin} was still running after {limit} s")
        return Outcome(plugin, process.returncode, stdout, stderr, self.snapshot / plugin)

    def path_with(self, *programs):
        """A PATH on which there are these programs only, and ours."""
        directory = Path(tempfile.mkdtemp(dir=self.temporary.parent))
        (directory / "holdfast-capture").symlink_to(PROGRAMS / "holdfast-capture")
        for program in ("env", *programs):
            (directory / program).symlink_to(shutil.which(program))
        return str(directory)

    def load(self, path, **settings):
        """Runs the snapshot hook of the browser until the page is ready; the tab stays open until close_tab()."""
        url = path if "://" in path.split("?")[0] else self.url(path)
        process = self.start("browser", url, **settings)
        ready, _, _ = select.select([process.stdout], [], [], 120)
        self.assertTrue(ready, "the browser said nothing")
        self.addCleanup(self.close_tab, process)
        os.set_blocking(process.stdout.fileno(), False)
        return process

    def close_tab(self, process):
        """Ends the snapshot hook as a worker does, and returns its outcome."""
        if not process.stdout.closed:
            process.terminate()
            os.set_blocking(process.stdout.fileno(), True)
            process.outcome = self.finish("browser", process)
        return process.outcome

    def view(self, plugin, path, **settings):
        """One hook on a page that the browser has loaded for it."""
        process = self.load(path, **settings)
        outcome = self.run_hook(plugin, path, **settings)
        self.recorded = self.close_tab(process)
        return outcome

    def run_hook(self, plugin, path, **settings):
        url = path if "://" in path.split("?")[0] else self.url(path)
        return self.finish(plugin, self.start(plugin, url, **settings))

    def assert_status(self, outcome, status):
        self.assertEqual(outcome.status, status, f"{outcome.result}\n{outcome.stderr}")
        self.assertEqual(outcome.code, {"succeeded": 0, "noresults": 0, "skipped": 10, "failed": 1}[status])

    def assert_failed(self, outcome, reason):
        self.assert_status(outcome, "failed")
        self.assertIn(reason, outcome.result["error"])

    def assert_requests_without(self, warc, *names):
        """Of the requests in a WARC, none has one of these header fields, in lower case."""
        requests = [block for fields, block in warc_records(warc) if fields["WARC-Type"] == "request"]
        self.assertTrue(requests)
        for request in requests:
            fields = [line.partition(b":")[0].lower() for line in request.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
            self.assertIn(b"host", fields)
            for name in names:
                self.assertNotIn(name, fields)

    def links(self, outcome):
        return [json.loads(line) for line in outcome.text("urls.jsonl").splitlines()]

    def paths(self, outcome):
        """The discovered URLs, those of the site without its address."""
        return [record["url"].replace(self.site.url, "/") for record in self.links(outcome)]


class BrowserTest(HookTest):
    """With one browser for all tests of a class, as for all pages of a crawl."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        directory = tempfile.TemporaryDirectory(prefix="holdfast-browser-")
        cls.addClassCleanup(directory.cleanup)
        cls.browser = Browser(Path(directory.name))
        cls.addClassCleanup(cls.browser.stop)

    def setUp(self):
        super().setUp()
        self.crawl = self.browser.crawl
