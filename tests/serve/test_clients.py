"""Clients that openapi-python-client (PyPI) and openapi-typescript (npm) generate from the document: typed, strictly
checked, and used. What cannot be had here is skipped."""

import shutil
import subprocess
import unittest
from pathlib import Path

from test_api import Asking
from test_pages import Site

from harness.case import PROGRAM
from harness.environment import python_with
from harness.wait import until

CLIENTS = Path(__file__).resolve().parent / "clients"
BUILD = Path(PROGRAM or "/").parents[1] / "api-clients"
PYTHON = (
    "openapi-python-client==0.29.1",
    "mypy==2.4.1",
    "httpx==0.28.1",
    "attrs==26.1.0",
    "python-dateutil==4.0.0",
)
NPM = ("openapi-typescript@7", "openapi-fetch@0.15", "typescript@5", "@types/node@20")
MANY = 10_000


class Clients(Asking):
    def setUp(self):
        super().setUp()
        self.site = Site(self, token="operator")
        self.addCleanup(self.site.close)
        self.place = self.site.place.path
        (self.place / "openapi.json").write_text(self.site.get("/api/openapi.json").text)

    def call(self, *command, where=None):
        done = subprocess.run(command, cwd=where or self.place, capture_output=True, text=True, timeout=400)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def tour(self, *command, where=None):
        """Runs a program beside a worker, and beside a large crawl."""
        place = self.site.place
        place.hook("text", "on_Snapshot__30_text.sh", "echo 'An old lighthouse.' | tee content.txt")
        many = self.add(text="\n".join(f"http://127.0.0.1:9/many/{number}" for number in range(MANY)))["id"]
        seeds = place.start("worker", "--kind", "crawl")
        until("all are snapshots", lambda: self.ask("GET", f"v1/crawls/{many}").json["total"] == MANY)
        seeds.terminate()
        place.finish(seeds)
        self.ask("POST", f"v1/crawls/{many}/pause")
        worker = place.start("worker")
        given = (f"http://127.0.0.1:{self.site.port}", self.site.token, "http://127.0.0.1:9/good/one", many)
        self.assertEqual(self.call(*command, *given, where=where).strip(), str(MANY))
        worker.terminate()
        place.finish(worker)

    def test_python(self):
        try:
            programs = python_with(BUILD / "python", *PYTHON)
        except subprocess.SubprocessError as problem:
            raise unittest.SkipTest(f"PyPI: {problem}") from None
        generate = ("generate", "--path", "openapi.json", "--meta", "none", "--output-path", "holdfast_client")
        self.assertNotIn("Unable to", self.call(programs / "openapi-python-client", *generate))
        shutil.copy(CLIENTS / "tour.py", self.place)
        self.call(programs / "mypy", "--strict", "--follow-imports=silent", "tour.py")  # what we wrote
        self.tour(programs / "python", "tour.py")

    def test_typescript(self):
        if not shutil.which("npm"):
            raise unittest.SkipTest("no npm here")
        modules = BUILD / "npm"
        modules.mkdir(parents=True, exist_ok=True)
        install = ("npm", "install", "--ignore-scripts", "--silent", "--no-audit", "--no-fund", *NPM)
        if not (modules / "node_modules/.bin/tsc").exists() and subprocess.run(install, cwd=modules).returncode:
            raise unittest.SkipTest("npm has not installed " + " ".join(NPM))
        (self.place / "package.json").write_text('{"type": "module"}')
        (self.place / "node_modules").symlink_to(modules / "node_modules")
        shutil.copy(CLIENTS / "tour.ts", self.place)
        self.call("node_modules/.bin/openapi-typescript", "openapi.json", "-o", "api.d.ts")
        strict = ("--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext")
        self.call("node_modules/.bin/tsc", *strict, "tour.ts")
        self.tour("node", "tour.js")
