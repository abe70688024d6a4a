"""Runs hooks as the runner does, against the test site in its own process."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "deploy" / "plugins"
SITE = ROOT / "tests" / "site" / "site.py"
DEMO = ROOT / "deploy" / "demo-site" / "serve.py"
sys.path.insert(0, str(PLUGINS / "_lib"))

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
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


def hook_file(plugin):
    (file,) = (PLUGINS / plugin).glob("on_Snapshot__*")
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

    def url(self, path):
        return self.site.url + path.lstrip("/")

    def environment(self, settings):
        return {
            "PATH": os.environ["PATH"],
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
        """A PATH on which there are these programs and python3 only."""
        directory = Path(tempfile.mkdtemp(dir=self.temporary.parent))
        (directory / "python3").symlink_to(os.path.realpath(sys.executable))  # itself, not a wrapper that needs a PATH
        for program in ("env", *programs):
            (directory / program).symlink_to(shutil.which(program))
        return str(directory)

    def run_hook(self, plugin, path, **settings):
        url = path if "://" in path.split("?")[0] else self.url(path)
        return self.finish(plugin, self.start(plugin, url, **settings))

    def assert_status(self, outcome, status):
        self.assertEqual(outcome.status, status, f"{outcome.result}\n{outcome.stderr}")
        self.assertEqual(outcome.code, {"succeeded": 0, "noresults": 0, "skipped": 10, "failed": 1}[status])

    def assert_failed(self, outcome, reason):
        self.assert_status(outcome, "failed")
        self.assertIn(reason, outcome.result["error"])

    def links(self, outcome):
        return [json.loads(line) for line in outcome.text("urls.jsonl").splitlines()]

    def paths(self, outcome):
        """The discovered URLs, those of the site without its address."""
        return [record["url"].replace(self.site.url, "/") for record in self.links(outcome)]
