"""Before it is known who asks, nothing is read: bodies come after admission and are bounded in sum, and a request whose
client has gone is not worked on."""

import base64
import contextlib
import re
import socket
import subprocess
import unittest
from pathlib import Path

from harness.case import Case
from harness.wait import until
from test_pages import Site

LARGE = 60 << 20
ADDING = (
    "/api/v1/crawls",
    "/api/v1/schedules",
    "/do/addCrawl",
    "/api/v1/personas/x",
    "/do/pauseCrawl",
    "/",
    "/archive/x",
    "/sign-in",
)


class Bodies(Case):
    @classmethod
    def setUpClass(cls):
        cls.owner = cls("run_nothing")
        cls.site = Site(
            cls.owner, "--set", "serve.guest=none", "--set", "serve.changes_per_minute=100000", token="operator"
        )
        cls.reader = cls.site.place.run("token", "add", "bert").records[0]["token"]

    @classmethod
    def tearDownClass(cls):
        cls.site.close()
        cls.owner.doCleanups()

    def run_nothing(self):
        pass

    def setUp(self):
        self.wires = []
        self.addCleanup(lambda: [wire.close() for wire in self.wires])

    def memory(self):
        """Resident, in MiB; freed memory that the allocator keeps counts too."""
        status = Path(f"/proc/{self.site.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) >> 10

    def begin(self, path, *headers, method="POST", number=1):
        wire = socket.create_connection(("127.0.0.1", self.site.port), 30, (f"127.0.2.{number}", 0))
        self.wires.append(wire)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.site.port}", *headers]
        wire.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return wire

    def send(self, wire, size):
        """As much as the server takes."""
        sent = 0
        with contextlib.suppress(OSError):
            while sent < size:
                sent += wire.send(bytes(min(1 << 20, size - sent)))
        return sent

    def status(self, wire):
        answer = b""
        with contextlib.suppress(OSError):
            while b"\r\n" not in answer and (piece := wire.recv(65536)):
                answer += piece
        return int(answer.split()[1]) if answer else 0

    def test_a_body_without_a_token_that_may_change_something_is_not_read(self):
        wrong = base64.b64encode(b"any:wrong").decode()
        before = self.memory()
        number = 0
        for who in (
            (),
            ("Authorization: Bearer wrong",),
            (f"Authorization: Basic {wrong}",),
            ("Cookie: holdfast_x=y",),
            (f"Authorization: Bearer {self.reader}",),
        ):
            for path in ADDING:
                for length in (f"Content-Length: {LARGE}", "Transfer-Encoding: chunked"):
                    number += 1
                    with self.subTest(who=who, path=path, length=length):
                        wire = self.begin(path, *who, length, number=number)
                        if length.startswith("Transfer"):  # it may end within the bound
                            wire.sendall(b"%x\r\n" % LARGE)
                            self.send(wire, LARGE)
                        # Without the body: the head is enough for an answer.
                        self.assertIn(self.status(wire), (400, 401, 403, 405, 413, 429))
        self.assertLess(self.memory() - before, 40)
        self.assertEqual(self.site.get("/").status, 200)

    def test_bodies_are_bounded_in_sum(self):
        before = self.memory()
        wires = [
            self.begin(
                "/api/v1/crawls", f"Authorization: Bearer {self.site.token}", f"Content-Length: {LARGE}", number=n
            )
            for n in range(1, 10)
        ]
        sent = [self.send(wire, LARGE - 1) for wire in wires]
        taken = [size for size in sent if size == LARGE - 1]
        self.assertGreaterEqual(len(taken), 1, sent)
        self.assertLess(self.memory() - before, 300)
        self.assertEqual({self.status(wire) for wire, size in zip(wires, sent) if size < LARGE - 1} - {0}, {503})
        self.assertEqual(self.site.get("/crawls").status, 200)
        for wire in wires:
            wire.close()
        body = b'{"urls": ["http://127.0.0.1:9/after"]}'
        asked = {"Content-Type": "application/json"}
        until(
            "there is room again",
            lambda: self.site.get("/api/v1/crawls", method="POST", headers=asked, body=body).status == 201,
        )

    def test_a_request_whose_client_has_gone_is_not_worked_on(self):
        """Three threads answer; requests of clients that left do not keep them."""
        feed = (
            "<rss><channel>"
            + "<item><title>t</title><link>http://127.0.0.1:9/%d</link></item>" * 20000
            + "</channel></rss>"
        )
        body = ('{"dry_run": true, "text": "' + feed.replace('"', "'").replace("\n", " ") + '"}').encode()
        for number in range(1, 41):
            wire = self.begin(
                "/api/v1/crawls",
                f"Authorization: Bearer {self.site.token}",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                number=number,
            )
            wire.sendall(body)
            wire.close()
        self.assertEqual(self.site.get("/crawls").status, 200)


class Ending(Case):
    def test_requests_that_wait_for_the_database_end_with_a_reason_or_with_the_server(self):
        """The threads that answer end before what they use."""
        site = Site(self)
        psql = site.place.start("psql", "--role", "owner", "-XAqt", stdin=subprocess.PIPE)
        psql.stdin.write("begin; lock table crawl, snapshot, process; select 'locked';\n")
        psql.stdin.flush()
        self.assertEqual(psql.stdout.readline(), "locked\n")
        answer = site.get("/crawls")
        self.assertEqual((answer.status, "SQLSTATE 57014" in answer.text), (503, True), answer.text)
        wires = [socket.create_connection(("127.0.0.1", site.port), 30) for _ in range(3)]
        for wire in wires:
            self.addCleanup(wire.close)
            wire.sendall(f"GET /crawls HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n\r\n".encode())
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
        until(
            "the requests wait",
            lambda: site.place.run("psql", "--role", "owner", "-XAtc", waiting).out.strip() == "3",
        )
        tasks = Path(f"/proc/{site.process.pid}/task")
        before = len(list(tasks.iterdir()))
        site.process.terminate()
        until("threads without a request end", lambda: len(list(tasks.iterdir())) < before)
        self.assertIsNone(site.process.poll())
        psql.stdin.write("commit;\n")
        psql.stdin.close()
        psql.stdin = None
        self.assertEqual(site.place.finish(psql).code, 0)
        self.assertEqual(site.place.finish(site.process).code, 0)


class CrossSite(Case):
    def test_a_browser_sends_basic_by_itself(self):
        site = Site(self, "--set", "serve.guest=none", token="operator")
        self.addCleanup(site.close)
        basic = "Basic " + base64.b64encode(f"any:{site.token}".encode()).decode()
        for scheme, other, expected in (
            (basic, {"Origin": "https://evil.example"}, 403),
            (basic, {"Sec-Fetch-Site": "cross-site"}, 403),
            (basic, {"Sec-Fetch-Site": "same-site"}, 403),
            (basic, {}, 303),
            (f"Bearer {site.token}", {"Origin": "https://evil.example"}, 303),
        ):
            with self.subTest(scheme=scheme[:6], other=other):
                answer = site.post("/do/pauseCollection", {}, {"Authorization": scheme, **other})
                self.assertEqual(answer.status == 403, expected == 403, answer.text)

    def test_signing_out_ends_the_token_of_a_link(self):
        site = Site(self, "--set", "serve.guest=none")
        line = site.process.stdout.readline()
        self.addCleanup(site.close)
        secret = re.search(r"link=(\w+)", line)[1]
        answer = site.post("/sign-in", {"link": secret})
        cookie = answer.headers["Set-Cookie"].split(";")[0]
        self.assertEqual(site.get("/crawls", headers={"Cookie": cookie}).status, 200)
        self.assertEqual(site.post("/sign-out", {}, {"Cookie": cookie}).status, 303)
        self.assertEqual(site.get("/crawls", headers={"Cookie": cookie}).status, 401)


if __name__ == "__main__":
    unittest.main()
