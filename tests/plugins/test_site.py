"""The test site keeps its word: expected.json is what following its links finds."""

import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from support import SITE, HookTest, Server

ENDLESS_OR_LARGE = ("/crawl/endless", "/crawl/large.bin")


class Site(HookTest):
    def find(self, path):
        """Paths that the page at `path` links; nothing for what is no page."""
        if path in ENDLESS_OR_LARGE:
            return []
        outcome = self.run_hook("outlinks", path)
        return [urlsplit(link["url"]).path for link in self.links(outcome)] if outcome.status == "succeeded" else []

    def test_expected_urls_are_those_that_following_links_finds(self):
        expected = json.loads((SITE.parent / "expected.json").read_text())
        seen, level = set(), [expected["seed"]]
        for depth in range(4):
            self.assertEqual(sorted(level), sorted(expected["depth"][str(depth)]), f"depth {depth}")
            seen.update(level)
            self.assertEqual(len(seen), expected["count"][str(depth)])
            level = sorted({found for path in level for found in self.find(path)} - seen)
        self.assertFalse(seen & set(expected["never"]))

    def test_every_link_of_the_index_leads_somewhere(self):
        paths = self.find("/")
        self.assertGreater(len(paths), 50)
        for path in paths:
            if (
                "slow" in path
                or "loop" in path
                or "endless" in path
                or "hostile-redirect" in path
                or path in ("/redirect/file", "/raw-location", "/odd")
            ):
                continue
            request = urllib.request.Request(self.url(path), method="HEAD")
            try:
                status = urllib.request.urlopen(request, timeout=20).status
            except urllib.error.HTTPError as error:
                status = error.code
            if (
                "missing" not in path
                and "/status/" not in path
                and path not in ("/error", "/no-head", "/cookies", "/password", "/no-content")
            ):
                self.assertEqual(status, 200, path)

    def test_the_large_file_has_the_size_it_says(self):
        with urllib.request.urlopen(self.url("/large.bin?mb=3")) as response:
            self.assertEqual(int(response.headers["Content-Length"]), 3 << 20)
            self.assertEqual(len(response.read()), 3 << 20)


class SiteProcess(HookTest):
    def test_ready_file_access_log_and_a_clean_end(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-site-") as directory:
            ready, log = Path(directory, "ready"), Path(directory, "log")
            command = [sys.executable, "-B", SITE, "--ready-file", ready, "--access-log", log]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                url = process.stdout.readline().strip()
                with urllib.request.urlopen(url + "leaf/1"):
                    pass
                deadline = time.monotonic() + 10  # the line is written once the answer has gone out
                while "/leaf/1" not in (log.read_text() if log.exists() else "") and time.monotonic() < deadline:
                    time.sleep(0.01)
                with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as endless:
                    endless.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
                    endless.recv(100)
                    process.send_signal(signal.SIGTERM)  # an open endless answer does not keep it
                    self.assertEqual(process.wait(10), 0)
            self.assertEqual(ready.read_text().strip(), url)
            when, method, path, status = log.read_text().splitlines()[0].split("\t")
            self.assertRegex(when, r"^\d{10}\.\d{6}$")
            self.assertEqual((method, path, status), ("GET", "/leaf/1", "200"))

    def test_the_demo_server_serves_and_ends(self):
        from support import DEMO

        server = Server(DEMO)
        with urllib.request.urlopen(server.url) as response:
            self.assertIn(b"Hollow Skerry", response.read())
        self.assertEqual(server.stop(), 0)
