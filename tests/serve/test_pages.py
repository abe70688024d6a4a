"""holdfast serve: every page, the live data, the archived files, and those who try more than looking."""

import base64
import contextlib
import functools
import http.client
import http.server
import json
import os
import re
import select
import shutil
import signal
import socket
import threading
import unittest
import urllib.parse
import zlib
from pathlib import Path

from chromium import PROGRAM as BROWSER
from chromium import Chromium
from metrics_text import check_metrics
from harness.case import CONFIGURATION, REFUSED, UNAVAILABLE, Case
from harness.wait import until

HOSTILE = """<!doctype html><title>hostile</title><body><p id=p>as it was</p>
<img src=x onerror="document.getElementById('p').textContent='OWNED by onerror'">
<script>document.getElementById('p').textContent='OWNED by script';
fetch('/live.json').then(() => { document.getElementById('p').textContent='OWNED by fetch' });
try { top.location = 'https://evil.example/' } catch (e) {}</script>
<iframe srcdoc="<script>parent.document.body.textContent='OWNED by frame'</script>"></iframe></body>"""
MARKUP = "<script>alert(1)</script>\"'&"


def picture(width, height):
    """A PNG of one colour."""

    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    rows = (b"\0" + bytes([10, 86, 107]) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


# A picture of it has hundreds of colours; a blank one has one.
COLOURFUL = """<!doctype html><title>Colours</title><body style="margin:0;height:100vh;
background:linear-gradient(90deg, #c00, #cc0, #0c0, #0cc, #00c)"><h1>A page with colours</h1></body>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Site:
    """A collection with a few pages in it, and a server that shows it."""

    def __init__(self, case, *settings, token=None, listen="127.0.0.1:0"):
        self.case = case
        self.place = case.place()
        self.place.hook(
            "page",
            "on_Snapshot__10_page.sh",
            f"""
cat >hostile.html <<'HTML'
{HOSTILE}
HTML
echo "plain" >notes.txt
printf '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>' >picture.svg
mkdir sub && echo inside >sub/inside.txt
case $name in bad) echo "broken <b>pipe</b>" >&2; exit 3 ;; slow*) gate slow ;; esac
printf '{{"type": "ArchiveResult", "status": "succeeded", "output_str": "<script>alert(2)</script>"}}\\n'""",
        )
        self.place.hook(
            "screenshot",
            "on_Snapshot__20_screenshot.sh",
            f"""
[[ $name == shot* ]] || exit 10
base64 -d >screenshot.png <<<{base64.b64encode(picture(300, 900)).decode()}
[[ $name != *small ]] || cp screenshot.png thumbnail.jpg
[[ $name != *large* ]] || head -c 300000 /dev/zero >>screenshot.png""",
        )
        done = self.place.run(
            "add",
            "--label",
            f"label {MARKUP}",
            "--notes",
            f"note {MARKUP}",
            "--tag",
            "a tag",
            "--option",
            "PAGE_TIMEOUT=50",
            "http://127.0.0.1:9/good?x=<b>&y='\"",
            "http://127.0.0.1:9/bad",
        )
        case.assertIn(done.code, (0, 1), str(done))
        # token: its role
        self.token = token and self.place.run("token", "add", "anna", "--role", token).records[0]["token"]
        self.process = self.place.start("serve", *settings, env={"HOLDFAST_SERVE_LISTEN": listen})
        line = self.process.stdout.readline()
        case.assertTrue(line.startswith("Open http://"), line)
        self.port = int(re.search(r":(\d+)/", line).group(1))
        self.headers = {"Authorization": f"Bearer {self.token}"} if token else {}
        policy = self.get("/").headers["Content-Security-Policy"]
        files = re.search(r"img-src 'self' http://127\.0\.0\.1:(\d+)", policy)
        self.files = files and int(files.group(1))

    def post(self, path, fields, headers=None):
        body = urllib.parse.urlencode(fields).encode()
        return self.get(path, method="POST", headers=headers, body=body)

    def get(self, path, port=None, method="GET", host=None, headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True)
            connection.putheader("Host", host or f"127.0.0.1:{port or self.port}")
            for name, value in {**self.headers, **(headers or {})}.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            response.text = response.read().decode("utf-8", "replace")
            return response
        finally:
            connection.close()

    def raw(self, data, port=None):
        with socket.create_connection(("127.0.0.1", port or self.port), timeout=30) as wire:
            answer = b""
            try:
                wire.sendall(data)
                wire.shutdown(socket.SHUT_WR)
                while piece := wire.recv(65536):
                    answer += piece
            except TimeoutError:
                raise
            except OSError:
                pass  # hung up on, in the middle of it
            return answer

    def close(self):
        self.process.terminate()
        result = self.place.finish(self.process)
        self.case.assertEqual(result.code, 0, str(result))
        return result


class Pages(Case):
    @classmethod
    def setUpClass(cls):
        cls.owner = cls("test_nothing")
        cls.site = Site(cls.owner)

    @classmethod
    def tearDownClass(cls):
        cls.site.close()
        cls.owner.doCleanups()

    def test_nothing(self):
        pass

    def links(self, text, start):
        return sorted(set(re.findall(rf'href="({start}[^"]*)"', text)))

    def test_every_page_is_shown_and_nothing_foreign_becomes_markup(self):
        front = self.site.get("/")
        crawl = self.links(front.text, "/crawl/")
        self.assertEqual(len(crawl), 1)
        inside = self.site.get(crawl[0])
        snapshots = self.links(inside.text, "/snapshot/")
        self.assertEqual(len(snapshots), 2)
        pages = [
            f"{crawl[0]}?outcome=failed",
            "/",
            "/crawls",
            "/crawls?status=sealed&sort=failed",
            "/add",
            "/schedules",
            "/workers",
            "/hosts",
            "/failures",
            "/events",
            "/lists",
            "/results",
            "/search?q=good",
            "/search",
            *crawl,
            *snapshots,
        ]
        for path in pages:
            with self.subTest(path):
                page = self.site.get(path)
                self.assertEqual(page.status, 200)
                self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
                self.assertEqual(page.headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(page.headers["Cache-Control"], "no-store")
                self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
                self.assertNotIn("unsafe-inline", page.headers["Content-Security-Policy"])
                self.assertNotIn("<script>", page.text)
                self.assertNotIn("alert(1)</", page.text)
                self.assertNotRegex(page.text, r"<[^>]+\son\w+=")
                self.assertNotRegex(page.text, r"<[^>]+\sstyle=")
                self.assertIn("<main", page.text)
                self.assertEqual(re.findall(r'(?:src|href)="(?:https?:)?//(?!127\.0\.0\.1)[^"]*"', page.text), [])
        self.assertIn("label &lt;script&gt;", front.text)
        failed = self.site.get("/failures")
        self.assertIn("127.0.0.1:9/bad", failed.text)
        self.assertIn("broken", self.site.get("/failures?hooks=1").text)
        self.assertIn("with outcome", self.site.get(snapshots[0]).text)

    def test_the_error_output_of_a_hook_is_one_click_away(self):
        rows = self.site.place.run("list", "snapshots", "--url", "9/bad").records
        shown = self.site.get(f"/snapshot/{rows[0]['id']}").text
        found = re.search(rf'href="http://127\.0\.0\.1:{self.site.files}([^"]+)#([^"]+)"[^>]*>Error output<', shown)
        page = self.site.get(found.group(1), self.site.files).text
        result = page.partition(f'id="{found.group(2)}"')[2].partition('class="result"')[0]
        self.assertRegex(result, r"(?s)<details open>.*broken &lt;b&gt;pipe&lt;/b&gt;")

    def test_without_words_the_newest_snapshots_are_listed(self):
        self.assertIn(">http://127.0.0.1:9/bad<", self.site.get("/search").text)
        self.assertIn(">http://127.0.0.1:9/bad<", self.site.get("/search?tag=a+tag&outcome=failed").text)
        self.assertNotIn(">http://127.0.0.1:9/bad<", self.site.get("/search?outcome=succeeded").text)
        self.assertIn("There are no such snapshots.", self.site.get("/search?host=other.example").text)

    def test_a_search_ends(self):
        self.assertIn("No URL, title or tag has this.", self.site.get("/search?q=no+such+thing").text)
        self.assertNotIn("Search older", self.site.get("/search?q=no+such+thing").text)
        rows = self.site.place.run("list", "snapshots").records
        oldest = min(row["id"] for row in rows)
        self.assertEqual(self.site.get(f"/search?q=good&before={oldest}").status, 200)

    def test_search_finds_by_url_title_and_tag(self):
        for query, count in (("good", 1), ("127.0.0.1:9", 2), ("a%20tag", 2), ("no+such+thing", 0), ("", 2)):
            with self.subTest(query):
                page = self.site.get(f"/search?q={query}")
                self.assertEqual(page.status, 200)
                self.assertEqual(len(self.links(page.text, "/timeline" if query else "/snapshot/")), count)
        self.assertEqual(self.site.get("/search?q=%3Cscript%3E&before=x").status, 200)

    def test_live_data(self):
        crawl = self.links(self.site.get("/").text, "/crawl/")[0].split("/")[-1]
        snapshot = self.links(self.site.get(f"/crawl/{crawl}").text, "/snapshot/")[0].split("/")[-1]
        for page, sections in (
            ("/", {"numbers", "attention", "recent", "changed", "curves", "crawls", "running"}),
            ("/crawls", {"crawls"}),
            ("/workers", {"workers", "tree", "ended"}),
            ("/hosts", {"hosts"}),
            ("/schedules", {"schedules"}),
            ("/failures", {"failures"}),
            ("/events", {"events"}),
            (f"/crawl/{crawl}", {"crawl", "shown", "gallery"}),
            (f"/crawl/{crawl}?outcome=failed", {"crawl", "shown", "snapshots"}),
            (f"/crawl/{crawl}?before={snapshot}", {"crawl", "shown"}),
            (f"/snapshot/{snapshot}", {"head", "shot", "results"}),
            ("/webhooks", {"webhooks"}),
            ("/search", set()),
            ("/tokens", set()),
            ("/rubbish", set()),
        ):
            with self.subTest(page):
                answer = self.site.get("/live.json?at=" + urllib.parse.quote(page))
                self.assertEqual(answer.headers["Content-Type"], "application/json")
                told = json.loads(answer.text)
                self.assertEqual(set(told["sections"]), sections)
                self.assertEqual(set(told["digests"]), sections)
        # A page has the digests of what it shows, so that nothing is shown again that has not changed.
        for path in ("/events", f"/crawl/{crawl}", f"/snapshot/{snapshot}"):
            told = json.loads(self.site.get(f"/live.json?at={path}").text)
            shown = dict(re.findall(r'<div id="(\w+)" data-digest="(\w+)">', self.site.get(path).text))
            self.assertEqual({name: shown[name] for name in told["digests"]}, told["digests"])

    def test_tags_notes_and_times(self):
        crawl = self.links(self.site.get("/").text, "/crawl/")[0]
        snapshot = self.links(self.site.get(crawl).text, "/snapshot/")[0]
        for path in (crawl, snapshot):
            text = self.site.get(path).text
            tag = re.search(r'<ul class="tags"><li><a href="([^"]+)">a tag</a>', text)
            self.assertEqual(len(self.links(self.site.get(tag.group(1)).text, "/timeline")), 2)
            times = re.findall(r'<time datetime="(\S{10})T(\S{8})Z">(.*?)</time>', text)
            self.assertTrue(times)
            for day, time, words in times:
                self.assertEqual(words, f"{day} {time} UTC")
            self.assertNotRegex(re.sub(r"<time.*?</time>", "", text), r"\d{4}-\d\d-\d\d \d\d:\d\d")
        self.assertIn("note &lt;script&gt;", self.site.get(crawl).text)
        # One size for a snapshot: of its row, and on the page among its files.
        text = self.site.get(snapshot).text
        kept = r'<dt>Kept</dt><dd>([\d.]+ K?i?B <span class="sub">in \d+ files)</span>'
        files = re.search(r'href="http://127\.0\.0\.1:\d+([^"]+/index\.html)"', text).group(1)
        self.assertEqual(
            re.search(kept, text).group(1), re.search(kept, self.site.get(files, port=self.site.files).text).group(1)
        )

    def test_numbers_are_prometheus_text(self):
        answer = self.site.get("/metrics")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        check_metrics(self, answer.text)
        for kind in ("crawl", "snapshot", "seed", "delivery"):
            self.assertIn(f'holdfast_queue_depth{{kind="{kind}"}} 0', answer.text)
        self.assertEqual((self.site.get("/healthz").text, self.site.get("/readyz").text), ("ok\n", "ok\n"))

    def test_strange_requests(self):
        get = self.site.get
        for path in (
            "/nothing",
            "/crawl/",
            "/crawl/x",
            "/crawl/" + "0" * 36,
            "/crawl/00000000-0000-7000-8000-000000000000",
            "/snapshot/00000000-0000-7000-8000-000000000000",
            "/../",
            "/crawl/%27;drop",
        ):
            self.assertEqual(get(path).status, 404, path)
        self.assertEqual(get("/%zz").status, 400)
        self.assertEqual(get("/a%00b").status, 400)
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            self.assertEqual(get("/", method=method).status, 405, method)
            self.assertEqual(get("/", self.site.files, method=method).status, 405, method)
        self.assertIn(b" 403 ", self.site.raw(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000\r\n\r\n")[:20])
        head = get("/", method="HEAD")
        self.assertEqual((head.status, head.text), (200, ""))
        self.assertGreater(int(head.headers["Content-Length"]), 1000)
        self.assertNotIn(b" 200 ", self.site.raw(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 40000 + b"\r\n\r\n")[:20])
        self.assertNotIn(b" 200 ", self.site.raw(b"\x16\x03\x01 rubbish\r\n\r\n")[:20])
        for twofold in (
            b"Host: localhost",
            b"Transfer-Encoding: gzip",
            b"Transfer-Encoding: chunked, gzip",
            b"Content-Length: 0\r\nTransfer-Encoding: chunked",
            b"Content-Length: 1\r\nContent-Length: 0",
        ):
            answer = self.site.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + twofold + b"\r\n\r\n0\r\n\r\n")
            self.assertNotIn(b" 200 ", answer[:20], twofold)
            self.assertLessEqual(answer.count(b"HTTP/1.1 "), 1, "what comes behind it is not read")
        host = f"Host: 127.0.0.1:{self.site.port}\r\n".encode()
        behind = b"GET /style.css HTTP/1.1\r\n" + host + b"\r\n"  # would be answered if it were read
        for what, begin in (
            ("a blank before the colon", b"GET / HTTP/1.1\r\n" + host + b"Content-Length : 5\r\n\r\n"),
            ("a line feed alone", b"GET / HTTP/1.1\n" + host + b"\r\n"),
            ("a NUL", b"GET / HTTP/1.1\r\n" + host + b"X: a\0b\r\n\r\n"),
            ("a control character", b"GET / HTTP/1.1\r\n" + host + b"X: a\x01b\r\n\r\n"),
            ("a header without a name", b"GET / HTTP/1.1\r\n" + host + b": a\r\n\r\n"),
            ("a negative length", b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n"),
            ("a length with a sign", b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Content-Length: +3\r\n\r\nabc"),
            ("a length of two", b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Content-Length: 3, 4\r\n\r\nabc"),
            ("a length in hexadecimal", b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Content-Length: 0x3\r\n\r\nabc"),
            ("an immense length", b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Content-Length: %d\r\n\r\n" % 2**65),
            (
                "a chunk of 2^64",
                b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n1" + b"0" * 16 + b"\r\n",
            ),
            (
                "a chunk below zero",
                b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
            ),
            (
                "a chunk longer than said",
                b"POST /do/addCrawl HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
            ),
            ("another version", b"GET / HTTP/2.0\r\n" + host + b"\r\n"),
            ("no version", b"GET /\r\n"),
            ("a blank in the path", b"GET /a b HTTP/1.1\r\n" + host + b"\r\n"),
            ("another method", b"TRACE / HTTP/1.1\r\n" + host + b"\r\n"),
            ("a tunnel", b"CONNECT evil.example:443 HTTP/1.1\r\n" + host + b"\r\n"),
            ("no host", b"GET / HTTP/1.1\r\n\r\n"),
            ("the host of the target", b"GET http://evil.example/ HTTP/1.1\r\n" + host + b"\r\n"),
        ):
            with self.subTest(what):
                self.assertNotIn(b" 200 ", self.site.raw(begin)[:20])
                answers = self.site.raw(begin + behind)
                self.assertLessEqual(answers.count(b"text/css"), 1)
                if b"Transfer-Encoding" in begin or b"Length" in begin:
                    self.assertNotIn(b"text/css", answers, "what comes behind it is not read")
        self.assertEqual(get("/").status, 200, "and goes on after all that")

    def test_another_name_for_our_address_is_refused(self):
        for host in ("evil.example", f"evil.example:{self.site.port}", "127.0.0.1.evil.example"):
            self.assertEqual(self.site.get("/", host=host).status, 403, host)
        self.assertEqual(self.site.get("/", host=f"localhost:{self.site.port}").status, 200)
        _, path = self.archived()
        for host in ("evil.example", f"evil.example:{self.site.files}", "127.0.0.1.evil.example"):
            self.assertEqual(self.site.get(f"{path}/index.html", self.site.files, host=host).status, 403, host)
        self.assertEqual(
            self.site.get(f"{path}/index.html", self.site.files, host=f"localhost:{self.site.files}").status, 200
        )
        for host in ("x; script-src *", "<b>", "a/b"):
            self.assertEqual(self.site.get("/", host=host).status, 400, host)

    def test_one_peer_cannot_lock_out_others(self):
        def get_from(address):
            connection = http.client.HTTPConnection(
                "127.0.0.1", self.site.port, timeout=30, source_address=(address, 0)
            )
            try:
                connection.request("GET", "/healthz")
                return connection.getresponse().status
            except OSError:
                return 0
            finally:
                connection.close()

        wires = []
        try:
            for _ in range(300):
                wires.append(socket.create_connection(("127.0.0.1", self.site.port), timeout=30))
                with contextlib.suppress(OSError):
                    wires[-1].sendall(b"GET / HTTP/1.1\r\n")
            self.assertEqual(get_from("127.0.0.2"), 200)
            self.assertEqual(get_from("127.0.0.1"), 0)
        finally:
            for wire in wires:
                wire.close()
        until("the first has its connections back", lambda: get_from("127.0.0.1") == 200)

    def test_what_has_no_end_is_cut_off(self):
        """Nothing that a client sends is kept beyond a bound; it is not even read on."""
        head = f"POST /api/v1/crawls HTTP/1.1\r\nHost: 127.0.0.1:{self.site.port}\r\n"
        chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        for what, begin, piece in (
            ("a request line", "GET /", "x"),
            ("a header", head + "X: ", "x"),
            ("headers", head, "X: y\r\n"),
            ("a chunk's extension", chunked + "5;a=", "x"),
            ("a chunk's length", chunked, "0"),
            ("a trailer", chunked + "0\r\nX: ", "x"),
            ("trailers", chunked + "0\r\n", "X: y\r\n"),
        ):
            with self.subTest(what):
                with socket.create_connection(("127.0.0.1", self.site.port), timeout=30) as wire:
                    wire.sendall(begin.encode())
                    with self.assertRaises(OSError, msg="it took 64 MB"):
                        for _ in range(64):
                            wire.sendall(piece.encode() * ((1 << 20) // len(piece)))
        self.assertEqual(self.site.get("/healthz").status, 200)

    def test_clients_that_read_nothing_hold_up_no_other(self):
        wires = []
        try:
            for _ in range(24):  # more than the server has threads, fewer than an address may have without a request
                wires.append(socket.create_connection(("127.0.0.1", self.site.port), timeout=30))
                wires[-1].setblocking(False)
                with contextlib.suppress(OSError):  # the server stops reading when it cannot write
                    for _ in range(200):
                        wires[-1].send(b"GET /style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)
            self.assertEqual(self.site.get("/workers").status, 200)
        finally:
            for wire in wires:
                wire.close()
        self.assertEqual(self.site.get("/workers").status, 200)

    def test_health_does_not_wait_for_a_database_that_hangs(self):
        server = self.site.place.server_pid()
        stopped = [
            server,
            *(
                int(entry.name)
                for entry in Path("/proc").iterdir()
                if entry.name.isdigit() and self.parent(entry) == server
            ),
        ]
        wires = []
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            for _ in range(6):
                wires.append(socket.create_connection(("127.0.0.1", self.site.port), timeout=30))
                wires[-1].sendall(f"GET /workers HTTP/1.1\r\nHost: 127.0.0.1:{self.site.port}\r\n\r\n".encode())
            self.assertEqual(self.site.get("/healthz").status, 200)
            self.assertEqual(select.select(wires, [], [], 0)[0], [], "no other request has been answered meanwhile")
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            for wire in wires:
                wire.close()
        until("pages are shown again", lambda: self.site.get("/workers").status == 200)

    @staticmethod
    def parent(entry):
        try:
            return int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return 0

    def archived(self):
        for attempt in self.site.place.attempts():
            if (attempt / "page" / "hostile.html").exists():
                return attempt, "/" + str(attempt.relative_to(self.site.place.data / "archive"))
        raise AssertionError("nothing was archived")

    def test_archived_files_are_strangers(self):
        directory, path = self.archived()
        for name, kind in (
            ("page/hostile.html", "text/html"),
            ("page/picture.svg", "image/svg+xml"),
            ("page/notes.txt", "text/plain"),
            ("index.html", "text/html"),
            ("", "text/html"),
            ("page/sub/inside.txt", "text/plain"),
        ):
            with self.subTest(name):
                answer = self.site.get(f"{path}/{name}", self.site.files)
                self.assertEqual(answer.status, 200)
                self.assertTrue(answer.headers["Content-Type"].startswith(kind), answer.headers["Content-Type"])
                self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
                policy = answer.headers["Content-Security-Policy"]
                self.assertTrue(policy.startswith("sandbox"), policy)
                self.assertNotIn("allow-scripts", policy)
                self.assertNotIn("allow-same-origin", policy)
                self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])
                self.assertEqual(answer.headers["X-DNS-Prefetch-Control"], "off")
        self.assertEqual(self.site.get(path, self.site.files).status, 301)
        self.assertEqual(self.site.get(f"{path}/page/notes.txt", self.site.files).text, "plain\n")
        self.assertEqual(
            self.site.get(f"{path}/page/hostile.html", self.site.port).status, 404, "never on the page's origin"
        )
        head = self.site.get(f"{path}/page/notes.txt", self.site.files, method="HEAD")
        self.assertEqual((head.status, head.text, head.headers["Content-Length"]), (200, "", "6"))

    def test_no_path_leads_out(self):
        directory, path = self.archived()
        root = self.site.place.data / "archive"
        secret = self.site.place.path / "secret.txt"
        secret.write_text("the secret\n")
        link = directory / "page" / "leak.txt"
        link.symlink_to(secret)
        (directory / "page" / "up").symlink_to("../../../../../../..")
        (directory / "page" / "proc").symlink_to("/proc/self/root")
        self.addCleanup(lambda: [(directory / "page" / name).unlink() for name in ("leak.txt", "up", "proc")])
        depth = "../" * 12
        attempts = [
            f"{path}/page/leak.txt",
            f"{path}/page/up/secret.txt",
            f"{path}/page/proc{secret}",
            f"/{depth}etc/passwd",
            "//etc/passwd",
            f"{path}/{depth}etc/passwd",
            f"{path}/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/secret.txt",
            f"{path}/..%2f..%2f..%2f..%2f..%2f..%2fsecret.txt",
            f"{path}/page/..%5c..%5csecret.txt",
            "/%2fetc%2fpasswd",
            f"{path}//page/notes.txt",
            f"{path}/./page/notes.txt",
            "/.holdfast-archive",
            "/2026",
            "/",
            "/crawls/../.holdfast-archive",
            "/crawls/%2e%2e/.holdfast-archive",
        ]
        for attempt in attempts:
            with self.subTest(attempt):
                answer = self.site.raw(
                    f"GET {attempt} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode(), self.site.files
                )
                self.assertNotIn(b" 200 ", answer.split(b"\r\n")[0])
                self.assertNotIn(b"the secret", answer)
                self.assertNotIn(b"root:", answer)
        self.assertTrue((root / ".holdfast-archive").exists())
        self.assertEqual(self.site.get(f"{path}/page/a%00b", self.site.files).status, 400)


class SlowClients(Case):
    """Each comes from an address of its own, so that the bound on one peer does not refuse it."""

    def setUp(self):
        self.site = Site(self, "--set", "serve.client_timeout=2s")
        self.addCleanup(self.site.close)
        self.wires = []
        self.addCleanup(lambda: [wire.close() for wire in self.wires])

    def connect(self, number, port=None):
        wire = socket.create_connection(("127.0.0.1", port or self.site.port), 30, (f"127.0.1.{number}", 0))
        self.wires.append(wire)
        return wire

    def threads(self):
        return len(os.listdir(f"/proc/{self.site.process.pid}/task"))

    def connections(self):
        """Sockets that the server holds."""
        held = 0
        for entry in Path(f"/proc/{self.site.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                held += os.readlink(entry).startswith("socket:")
        return held

    def drip(self, wire, byte):
        """Sends one byte, and returns whether the server has hung up. Waiting for the answer is the pause."""
        try:
            wire.send(byte)
            return bool(select.select([wire], [], [], 0.05)[0]) and wire.recv(1) == b""
        except OSError:
            return True

    def test_one_that_sends_byte_by_byte_is_ended_while_others_are_served(self):
        self.assertEqual(self.site.get("/").status, 200)
        threads = self.threads()
        heads = [self.connect(n) for n in range(1, 101)]
        bodies = [self.connect(n) for n in range(101, 201)]
        for wire in heads:
            wire.sendall(b"GET / HTTP/1.1\r\nX-")
        for wire in bodies:
            wire.sendall(b"POST /api/v1/crawls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n")
        self.assertEqual([self.site.get(path).status for path in ("/", "/crawls", "/healthz")], [200] * 3)
        self.assertEqual(self.threads(), threads)
        for wire in (heads[0], bodies[0]):
            until("it is ended although it always sends", lambda wire=wire: self.drip(wire, b"x"))
        for wire in heads + bodies:  # and all that have stopped
            with contextlib.suppress(ConnectionResetError):
                while wire.recv(65536):  # bodies of strangers are refused before they are read
                    pass

    def test_one_that_never_reads_is_ended(self):
        place = self.site.place
        page = json.loads(place.run("list", "snapshots", "--json").out.splitlines()[0])
        (directory,) = place.data.glob(f"**/archive/**/{page['id']}/a*")
        # More than the buffers of a connection take.
        with open(directory / "page/large.bin", "wb") as file:
            file.truncate(200 << 20)
        path = str(directory / "page/large.bin").split("/archive/")[1]
        self.assertEqual(self.site.get(f"/{path}", self.site.files, "HEAD").status, 200)
        before = self.connections()
        for number in range(1, 51):
            wire = self.connect(number, self.site.files)
            wire.sendall(f"GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.site.files}\r\n\r\n".encode())
            wire.recv(1, socket.MSG_PEEK)
        self.assertEqual(self.site.get("/", self.site.files).status, 404, "others are served")
        until("their connections are closed", lambda: self.connections() <= before)


class BehindProxies(Case):
    """The limit on changes counts each client for itself, whatever a client claims to be."""

    def ask(self, site, forwarded, *more):
        data = "".join(f"X-Forwarded-For: {one}\r\n" for one in (forwarded, *more) if one)
        answer = site.raw(
            f"POST /api/v1/resume HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n{data}Content-Length: 0\r\n"
            "Connection: close\r\n\r\n".encode()
        )
        return int(answer.split()[1])

    def site(self, *settings):
        site = Site(self, "--set", "serve.guest=operator", "--set", "serve.changes_per_minute=1", *settings)
        self.addCleanup(site.close)
        return site

    def test_the_header_of_a_trusted_proxy_names_the_client(self):
        site = self.site("--set", "serve.trusted_proxies=127.0.0.0/8, 10.1.0.0/16, fd00::1")
        self.assertEqual(self.ask(site, "203.0.113.1"), 200)
        self.assertEqual(self.ask(site, "203.0.113.1"), 429)
        self.assertEqual(self.ask(site, "203.0.113.2"), 200)
        # What a client claims stands before its address. Proxies may be in a row, and write ports.
        self.assertEqual(self.ask(site, "198.51.100.7, 203.0.113.2"), 429)
        self.assertEqual(self.ask(site, "198.51.100.7", "203.0.113.2:4711, 10.1.2.3, ::ffff:10.1.2.4"), 429)
        self.assertEqual(self.ask(site, "[2001:db8::1]:80, fd00::1"), 200)
        self.assertEqual(self.ask(site, "2001:db8::ffff"), 429, "an IPv6 network is one client")
        self.assertEqual(self.ask(site, "rubbish"), 200, "the proxy itself")
        self.assertEqual(self.ask(site, None), 429)

    def test_without_the_setting_the_header_means_nothing(self):
        site = self.site()
        self.assertEqual(self.ask(site, "203.0.113.1"), 200)
        self.assertEqual(self.ask(site, "203.0.113.2"), 429)

    def test_archived_files_may_have_a_public_address(self):
        site = self.site("--set", "serve.files_url=https://files.example/")
        self.assertIn("img-src 'self' https://files.example", site.get("/").headers["Content-Security-Policy"])

    def test_wrong_settings_are_refused(self):
        place = self.place()
        place.run("add", "--bg", "http://127.0.0.1:9/")
        for setting in (
            "serve.trusted_proxies=10.0.0.0/33",
            "serve.trusted_proxies=proxy.example",
            "serve.files_url=https://files.example/sub/",
        ):
            done = place.holdfast("serve", "--set", setting, expect=CONFIGURATION)
            self.assertIn(setting.split("=")[0], done.err)


class Early(Case):
    def test_files_of_an_archive_that_was_made_later_are_shown(self):
        place = self.place()
        place.hook("page", "on_Snapshot__10_page.sh", "echo text >notes.txt")
        place.run("add", "--bg", "http://127.0.0.1:9/early")
        server = place.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"})
        self.addCleanup(lambda: (server.terminate(), place.finish(server)))
        port = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))

        def get(port, path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            self.addCleanup(connection.close)
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()

        place.run("run")
        snapshot = place.run("list", "snapshots").records[0]["id"]
        _, page = get(port, f"/snapshot/{snapshot}")
        files, path = re.search(r'href="http://127\.0\.0\.1:(\d+)(/[^"]*notes\.txt)"', page).groups()
        self.assertEqual(get(int(files), path), (200, "text\n"))


class Thumbnails(Case):
    def test_lists_show_small_pictures_only(self):
        site = Site(self)
        self.addCleanup(site.close)
        urls = [f"http://127.0.0.1:9/{name}" for name in ("shot", "shot-large", "shot-large-and-small")]
        done = site.place.holdfast("add", *urls)
        page = site.get(f"/crawl/{done.records[0]['crawl_id']}").text
        shown = re.findall(rf'<img loading="lazy" alt="" src="http://127.0.0.1:{site.files}/([^"]+)"', page)
        self.assertEqual(sorted(path.rsplit("/", 1)[1] for path in shown), ["screenshot.png", "thumbnail.jpg"])
        for path in shown:
            self.assertEqual(site.get(f"/{path}", site.files).status, 200, path)
        # The newest snapshots, and those whose name matches: the same pictures.
        for path in ("/search", "/search?q=127.0.0.1:9/shot"):
            found = re.findall(rf'src="http://127.0.0.1:{site.files}/([^"]+)"', site.get(path).text)
            self.assertEqual(sorted(found), sorted(shown), path)

    @unittest.skipUnless(BROWSER, "no Chromium here")
    def test_the_picture_of_a_real_page_is_not_blank(self):
        place = self.place()
        for name in ("browser", "screenshot"):
            shutil.copytree(Path(__file__).resolve().parents[2] / "deploy/plugins" / name, place.plugins / name)
        place.environment |= {"BROWSER_BINARY": BROWSER, "HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"}
        folder = place.path / "site"
        folder.mkdir()
        (folder / "index.html").write_text(COLOURFUL)
        handler = functools.partial(Quiet, directory=folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as origin:
            threading.Thread(target=origin.serve_forever, daemon=True).start()
            self.addCleanup(origin.shutdown)
            done = place.run("add", "--plugins", "browser,screenshot", f"http://127.0.0.1:{origin.server_port}/")
            origin.shutdown()
        self.assertEqual(done.code, 0, str(done))
        server = place.start("serve")
        browser = Chromium()
        try:
            front = re.search(r"http://\S+", server.stdout.readline())[0]
            crawl = done.records[0]["crawl_id"]
            for page in (f"crawl/{crawl}", "search", "search?q=127.0.0.1"):
                browser.open(front + page)
                source = browser.until("it has a picture", "document.querySelector('.thumb img')?.src")
                self.assertTrue(source.endswith("/screenshot/thumbnail.jpg"), source)
                browser.until("it is shown", "document.querySelector('.thumb img').naturalWidth > 200")
            (file,) = place.data.glob("archive/**/screenshot/thumbnail.jpg")
            self.assertGreater(browser.colours(file.read_bytes()), 200)
            (whole,) = place.data.glob("archive/**/screenshot/screenshot.png")
            self.assertGreater(browser.colours(whole.read_bytes()), 200)
        finally:
            browser.close()
            server.terminate()
            place.finish(server)


class Ports(Case):
    def test_a_busy_port_of_the_files_is_named(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = busy.getsockname()[1]
            place = self.place()
            place.run("add", "--bg", "http://127.0.0.1:9/")
            done = place.holdfast("serve", "--set", f"serve.listen=127.0.0.1:{port - 1}", expect=UNAVAILABLE)
            self.assertIn(f"cannot listen on 127.0.0.1:{port}", done.err)
            self.assertIn("set serve.files to another address or port", done.err)


class Removed(Case):
    def test_what_was_removed_is_shown_nowhere(self):
        site = Site(self)
        self.addCleanup(site.close)
        rows = {row["url"]: row for row in site.place.run("list", "snapshots", "--json").records}
        good, bad = (next(row["id"] for url, row in rows.items() if word in url) for word in ("/good", "/bad"))
        crawl = re.search(r'href="(/crawl/[^"]*)"', site.get("/").text).group(1)
        page = f"/crawls/{crawl.rpartition('/')[2]}/index.html"
        for text in (site.get(crawl).text, site.get(page, port=site.files).text):
            self.assertIn("/good", text)
            self.assertIn("/bad", text)
        site.place.holdfast("remove", "--yes", bad)
        inside = site.get(crawl).text
        self.assertIn(good, inside)
        self.assertNotIn(bad, inside)
        written = site.get(page, port=site.files).text
        self.assertRegex(written, r"<dt>Pages</dt><dd>1</dd>")
        listed = written.partition('id="pages"')[2]  # its seeds are still what they were
        self.assertIn("/good", listed)
        self.assertNotIn("/bad", listed)
        for link in re.findall(r'href="\.\./\.\./([^"]*)"', written):
            self.assertEqual(site.get("/" + link, port=site.files).status, 200)
        self.assertEqual(site.get(f"/snapshot/{bad}").status, 404)
        self.assertEqual(site.get(f"/snapshot/{good}").status, 200)


class Endpoints(Case):
    def test_the_role_of_guests_fits_the_address(self):
        place = self.place()
        for setting in ("serve.listen=0.0.0.0:0", "serve.files=0.0.0.0:0", "serve.listen=[::]:0"):
            result = place.run(
                "serve", "--set", "serve.listen=127.0.0.1:0", "--set", setting, "--set", "serve.guest=operator"
            )
            self.check_error(result, CONFIGURATION, "serve.guest")
        self.check_error(place.run("serve", "--set", "serve.guest=everybody"), CONFIGURATION, "serve.guest")
        self.check_error(place.run("serve", "--set", "serve.listen=nonsense:x"), CONFIGURATION, "serve.listen")

    def test_beyond_this_machine_a_token_is_needed(self):
        site = Site(self, listen="0.0.0.0:0", token="operator")
        self.addCleanup(site.close)
        self.assertEqual(site.get("/").status, 200)
        no_token = {"Authorization": ""}
        self.assertEqual(site.get("/", headers=no_token).status, 401)
        self.assertEqual(site.get("/metrics", headers=no_token).status, 401)
        for probe in ("/healthz", "/readyz"):
            self.assertEqual(site.get(probe, headers=no_token).status, 200, "probes have no token")

    def test_the_link_that_serve_prints_signs_one_browser_in(self):
        site = Site(self, "--set", "serve.guest=none", token="reader")
        self.addCleanup(site.close)
        path, secret = re.search(
            r"http://127\.0\.0\.1:\d+(/sign-in\?link=(\w+))$", site.process.stdout.readline()
        ).groups()
        stranger = {"Authorization": ""}
        for _ in range(2):  # a browser may look ahead
            self.assertIn(secret, site.get(path, headers=stranger).text)
        wrong = site.post("/sign-in", {"link": secret[:-1] + "x"}, headers=stranger)
        self.assertEqual((wrong.status, wrong.headers["Set-Cookie"]), (401, None))
        elsewhere = site.post("/sign-in", {"link": secret}, headers={**stranger, "Origin": "http://evil.example"})
        self.assertEqual(elsewhere.status, 403)
        entered = site.post("/sign-in", {"link": secret}, headers=stranger)
        self.assertEqual((entered.status, entered.headers["Location"]), (303, "/"))
        known = {**stranger, "Cookie": entered.headers["Set-Cookie"].split(";")[0]}
        self.assertIn("Sign out", site.get("/", headers=known).text)
        self.assertEqual(site.post("/do/pauseAll", {}, headers=known).status, 303, "an operator")
        self.assertEqual(site.post("/sign-in", {"link": secret}, headers=stranger).status, 401, "once")
        listed = site.place.run("token", "list").out
        self.assertRegex(listed, r"link-\d{4}-\d\d-\d\d-\w{6}\",\"role\":\"operator\",\"state\":\"valid")
        self.assertNotIn(secret, listed)

    def test_guests_ask_by_an_address_or_a_name_of_ours_wherever_it_listens(self):
        """Else a page elsewhere, whose name is made to lead here, reads with the browser of a guest."""
        site = Site(self, "--set", "serve.guest=reader", "--set", "serve.hosts=archive.example", listen="0.0.0.0:0")
        self.addCleanup(site.close)
        for host, status in (
            ("evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            (f"Archive.Example:{site.port}", 200),
            (socket.gethostname(), 200),
            ("localhost", 200),
            ("192.0.2.7", 200),
            ("[2001:db8::7]:80", 200),
        ):
            self.assertEqual(site.get("/", host=host).status, status, host)
            self.assertEqual(site.get("/x", site.files, host=host).status, {403: 403, 200: 404}[status], host)

    def test_a_token_is_asked_for_and_known_by_header_and_cookie(self):
        site = Site(self, "--set", "serve.guest=none", token="reader")
        self.addCleanup(site.close)
        token = site.token
        page = site.get("/")
        self.assertEqual(page.status, 200)
        no_token = {"Authorization": ""}
        basic = base64.b64encode(f"me:{token}".encode()).decode()
        self.assertEqual(site.get("/", headers={"Authorization": f"Basic {basic}"}).status, 200)
        for headers in (
            no_token,
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Bearer "},
            {"Authorization": "Basic " + basic[:-6]},
            {"Authorization": "Basic !"},
            {"Authorization": "Digest x"},
            {**no_token, "Cookie": "holdfast=" + token},
            {**no_token, "Cookie": "holdfast_="},
        ):
            for path in ("/", "/live.json?at=/", "/metrics", "/workers", "/search?q=good"):
                refused = site.get(path, headers=headers)
                self.assertEqual(refused.status, 401, (path, headers))
                self.assertNotIn("label", refused.text.replace("<label", "").replace("</label", ""))
        self.assertEqual(site.get(f"/?token={token}", headers=no_token).status, 401, "not in an address")

        def enter(given, path="/workers", **headers):
            return site.post("/sign-in", {"token": given, "next": path}, headers={**no_token, **headers})

        wrong = enter("wrong")
        self.assertEqual((wrong.status, wrong.headers["Set-Cookie"]), (401, None))
        self.assertIn("not valid", wrong.text)
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{site.files}"):
            self.assertEqual(enter(token, Origin=origin).status, 403, origin)
        self.assertEqual(enter(token, **{"Sec-Fetch-Site": "same-site"}).status, 403)
        entered = enter(token, Origin=f"http://127.0.0.1:{site.port}")
        self.assertEqual((entered.status, entered.headers["Location"]), (303, "/workers"))
        for path in ("\r\nX-Injected: yes", "\\evil.example/", "//evil.example/", "https://evil.example", "/a b"):
            led = enter(token, path)
            self.assertEqual((led.status, led.headers["Location"], led.headers["X-Injected"]), (303, "/", None), path)
        cookie = entered.headers["Set-Cookie"]
        self.assertIn("HttpOnly", cookie)
        self.assertIn("SameSite=Strict", cookie)
        self.assertNotIn("Secure", cookie)
        self.assertIn("Secure", enter(token, Origin=f"https://127.0.0.1:{site.port}").headers["Set-Cookie"])
        known = {**no_token, "Cookie": "a=b; " + cookie.split(";")[0]}
        self.assertEqual(site.get("/", headers=known).status, 200)
        self.assertIn("Sign out", site.get("/", headers=known).text)
        self.assertIn("Max-Age=0", site.post("/sign-out", {}, headers=known).headers["Set-Cookie"])
        self.assertNotIn(token, site.place.run("token", "list").out)

        crawl = re.search(r'href="(/crawl/[^"]*)"', page.text).group(1)
        snapshot = re.findall(r'href="(/snapshot/[^"]*)"', site.get(crawl).text)[0]
        open_page = re.search(
            rf'href="http://127\.0\.0\.1:{site.files}(/[^"]*index\.html)"', site.get(snapshot).text
        ).group(1)
        self.assertEqual(
            site.get(open_page, site.files, headers=no_token).status, 200, "a file's address is the permission"
        )
        self.assertRegex(open_page, r"^/[0-9a-f]{32}/\d{4}/")
        self.assertEqual(site.get(open_page[33:], site.files).status, 403)
        self.assertEqual(site.get("/" + "0" * 32 + open_page[33:], site.files).status, 403)

        stream = socket.create_connection(("127.0.0.1", site.port), 30)
        self.addCleanup(stream.close)
        stream.sendall(f"GET /live?at=/ HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        events = stream.makefile("rb")
        while not events.readline().startswith(b"data:"):
            pass
        self.assertEqual(site.place.run("token", "revoke", "anna").code, 0)
        self.assertEqual(site.get("/").status, 401, "at once")
        events.read()  # to its end
        until("its addresses of files are not valid", lambda: site.get(open_page, site.files).status == 403)
        self.assertEqual(site.get("/", headers=known).status, 401)

    def test_tokens_are_made_listed_and_revoked(self):
        place = self.place()
        made = place.holdfast("token", "add", "anna", "--role", "operator", "--expires", "1d")
        token = made.records[0]["token"]
        self.assertRegex(token, r"^hf_[0-9a-f]{64}$")
        (row,) = place.run("token", "list").records
        self.assertEqual((row["name"], row["role"], row["state"]), ("anna", "operator", "valid"))
        self.assertNotIn(token, place.run("psql", "-c", "select * from v_token").out)
        self.check_error(place.run("token", "add", "anna"), REFUSED, "already", "anna")
        self.check_error(place.run("token", "add", "An na"), REFUSED, "An na")
        self.check_error(place.run("token", "add", "b", "--expires", "soon"), CONFIGURATION, "soon")
        self.check_error(place.run("token", "revoke", "bert"), REFUSED, "bert")
        self.assertTrue(place.run("token", "revoke", "anna").records[0]["changed"])
        self.assertFalse(place.run("token", "revoke", "anna").records[0]["changed"])
        self.assertEqual(place.run("token", "list").records[0]["state"], "revoked")


if __name__ == "__main__":
    import unittest

    unittest.main()
