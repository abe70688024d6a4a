"""The index of WARC files: the CDX API, byte ranges, exports; stock pywb replays the collection in Chromium."""

import contextlib
import gzip
import hashlib
import http.client
import http.server
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
import zlib
from pathlib import Path
from urllib.parse import quote

from chromium import PROGRAM as CHROMIUM
from chromium import WITH_WINDOWS, Chromium
from harness.full import FULL, only_in_full
from harness.case import PROGRAM, Case
from harness.collection import as_plain_user
from harness.wait import until
from harness.web import Handler, LocalSite
from harness.warc import brotli, members, record, zstd
from harness.warc import http as http_response

from harness.environment import REPLAY, python_with

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("HOLDFAST_TEST_TOOLS", Path(PROGRAM or "/").parents[1] / "replay-tools"))


WINDOW = (1440, 900)  # RESOLUTION: pages are captured in it


def tools():
    """The field's own tools."""
    return python_with(TOOLS, *REPLAY)


def wabac():
    """The service worker with which ReplayWeb.page reads archives; fetched once."""
    if not (TOOLS / "wabac.js").exists():
        with tempfile.TemporaryDirectory(dir=TOOLS) as place:
            pack = ["npm", "pack", "--silent", "--pack-destination", place, "@webrecorder/wabac@2"]
            subprocess.run(pack, check=True, timeout=600, cwd=place, stdout=subprocess.DEVNULL)
            with tarfile.open(next(Path(place).glob("*.tgz"))) as package:
                (Path(place) / "wabac.js").write_bytes(package.extractfile("package/dist/sw.js").read())
            (Path(place) / "wabac.js").rename(TOOLS / "wabac.js")
    return TOOLS / "wabac.js"


def png_of(width, height, colours, rows):
    """A PNG file: `colours` 6 is RGBA; each of the rows begins with its filter, 0."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class RangesOfFiles(Handler):
    """Files by name, whole or a range of one: what a replayer in a browser asks for."""

    files = {}

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)

    def answer(self, with_body):
        kind, body = self.files.get(self.path.partition("?")[0], ("text/plain", None))
        self.send_response(200 if body is not None else 404)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if body is not None and asked:
            first, last = asked.groups()
            begin = int(first) if first else len(body) - int(last)
            end = min(int(last) + 1, len(body)) if first and last else len(body)
            self._headers_buffer.clear()
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(body)}")
            body = body[begin:end]
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if with_body:
            self.wfile.write(body or b"")


@contextlib.contextmanager
def served(files):
    """An origin with these files: {path: (type, bytes)}."""
    with LocalSite(type("Files", (RangesOfFiles,), {"files": files})) as site:
        yield site.url


@unittest.skipUnless(CHROMIUM, "chromium is not installed")
class Replay(Case):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        cls.bin = tools()
        case = cls("run_nothing")
        cls.home = case.place()
        cls.stack.callback(case.doCleanups)
        cls.home.environment["HOLDFAST_PLUGINS_PATH"] = str(ROOT / "deploy/plugins")
        with cls.demo_site() as cls.site:
            cls.added = cls.home.run("add", f"{cls.site}/index.html", f"{cls.site}/storm.html")
        case.assertEqual(cls.added.code, 0, str(cls.added))
        server = cls.home.start("serve", env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0"}, stderr=subprocess.DEVNULL)
        cls.stack.callback(cls.finish, server)
        cls.port = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))
        policy = cls.get(cls.port, "/")[1]["Content-Security-Policy"]
        cls.files = int(re.search(r"img-src 'self' http://127\.0\.0\.1:(\d+)", policy).group(1))

    @staticmethod
    @contextlib.contextmanager
    def demo_site():
        site = subprocess.Popen(
            [sys.executable, "-B", ROOT / "deploy/demo-site/serve.py"], stdout=subprocess.PIPE, text=True
        )
        try:
            yield site.stdout.readline().strip().rstrip("/")
        finally:
            site.terminate()
            site.wait(10)
            site.stdout.close()

    @staticmethod
    def finish(process):
        process.terminate()
        process.communicate(timeout=60)

    def run_nothing(self):
        pass

    @staticmethod
    def get(port, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def cdx(self, url, **more):
        query = "".join(f"&{name}={quote(str(value))}" for name, value in {**more, "output": "json"}.items())
        status, _, body = self.get(self.port, f"/cdx?url={quote(url, safe='')}{query}")
        self.assertEqual(status, 200, body)
        return [json.loads(line) for line in body.splitlines()]

    def test_captures_are_found_by_url_prefix_and_host(self):
        page = self.cdx(f"{self.site}/storm.html")
        self.assertEqual([one["url"] for one in page], [f"{self.site}/storm.html"])
        self.assertEqual((page[0]["status"], page[0]["mime"]), ("200", "text/html"))
        every = {one["url"] for one in self.cdx(f"{self.site}/*")}
        self.assertLess({f"{self.site}/index.html", f"{self.site}/storm.html", f"{self.site}/storm.png"}, every)
        self.assertEqual(every, {one["url"] for one in self.cdx(f"{self.site}/x", matchType="host")} | every)
        self.assertEqual(len(self.cdx(f"{self.site}/*", limit=1)), 1)
        self.assertEqual(self.cdx(f"{self.site}/storm.html", to="2000"), [])
        self.assertEqual(len(self.cdx(f"{self.site}/storm.html", **{"from": "2020", "closest": "20200101000000"})), 1)
        self.assertEqual(self.cdx(f"{self.site}/storm.html", to="202402", closest="20200101000000"), [])
        self.assertEqual(self.cdx(f"{self.site}/*", filter="!status:200"), [])
        self.assertEqual(self.cdx(f"{self.site}/nothing"), [])
        line = self.get(self.port, f"/cdx?url={quote(self.site + '/storm.html', safe='')}")[2].decode()
        self.assertRegex(line, r'^1,0,0,127:\d+\)/storm\.html \d{14} \{"url":"http://127')

    def test_what_cannot_be_asked_is_told(self):
        for query in (
            "",
            "url=",
            "url=x&matchType=all",
            "url=x&from=yesterday",
            "url=x&limit=0",
            "url=x&limit=-1",
            "url=x&sort=up",
            "url=x&output=xml",
            "url=x&filter=~status:2(",
            "url=x&filter=status",
            "url=x&closest=20261399",
        ):
            status, _, body = self.get(self.port, f"/cdx?{query}")
            self.assertEqual(status, 400, (query, body))

    def test_a_record_is_a_range_of_its_file(self):
        one = self.cdx(f"{self.site}/storm.html")[0]
        begin, end = int(one["offset"]), int(one["offset"]) + int(one["length"])
        status, headers, body = self.get(self.files, "/" + one["filename"], Range=f"bytes={begin}-{end - 1}")
        self.assertEqual((status, len(body)), (206, end - begin))
        self.assertTrue(headers["Content-Range"].startswith(f"bytes {begin}-{end - 1}/"))
        self.assertIn(f"WARC-Target-URI: {self.site}/storm.html".encode(), gzip.decompress(body))
        size = int(headers["Content-Range"].rpartition("/")[2])
        for asked, expected in (
            (f"bytes={size}-", 416),
            ("bytes=-10", 206),
            ("bytes=5-2", 200),
            ("bytes=0-99999999999999999999", 200),
            ("bytes=0-18446744073709551615", 206),
            ("bytes=0-1,5-6", 200),
            ("lines=1-2", 200),
        ):
            status, _, body = self.get(self.files, "/" + one["filename"], Range=asked)
            self.assertEqual(status, expected, asked)
            self.assertEqual(len(body), {206: 10 if asked == "bytes=-10" else size, 200: size, 416: 0}[status], asked)

    def test_verify_compares_the_index_with_the_files(self):
        self.home.holdfast("verify", "--all")
        storm = "where url like '%/storm.html'"
        for change, kind in (
            (f"update holdfast.capture set digest = 'sha1:OTHER' {storm}", "other record"),
            (f"update holdfast.capture set record_length = record_length - 1 {storm}", "other record"),
            (f"update holdfast.capture set record_offset = record_offset + 7 {storm}", "no record"),
            (f"update holdfast.capture set file = 'browser/none.warc.gz' {storm}", "no record"),
            (f"delete from holdfast.capture {storm}", "not indexed"),
            (f"update holdfast.capture set mime = 'warc/revisit' {storm}", "no original"),
        ):
            with self.subTest(change), self.index_to_change():
                self.sql(change)
                told = self.home.holdfast("verify", "--all", expect=1)
                defects = [one for one in told.records if one["type"] == "Defect"]
                self.assertIn(kind, {one["kind"] for one in defects})
                for one in defects:
                    self.assertRegex(one["path"], r"/a\d+/\w+/[\w.]+\.warc\.gz at \d+")

    def replays(self, *arguments, code=0):
        told = self.home.holdfast("verify", "--all", "--replay", *arguments, expect=code)
        return {one["url"].rpartition("/")[2]: one for one in told.records if one["type"] == "Replay"}

    def test_a_replay_looks_like_the_capture(self):
        pictures = self.home.path / "pictures"
        replays = self.replays("--pictures", pictures)
        self.assertEqual(set(replays), {"index.html", "storm.html"})
        for name, one in replays.items():
            print(f"\n{name}: {one}", file=sys.stderr)
            self.assertEqual((one["text"], one["resources"], one["missing"], one["problem"]), (1, 1, 0, ""), one)
            self.assertGreater(one["screenshot"], 0.999, one)
        self.assertEqual(len(list(pictures.glob("*-captured.png"))), 2)
        self.assertEqual(len(list(pictures.glob("*-replayed.png"))), 2)
        rows = self.home.run("psql", "-Atc", "select count(*) from holdfast.v_replay_quality where score > 0.999").out
        self.assertEqual(rows.strip(), "2")
        page = self.get(self.port, f"/snapshot/{replays['storm.html']['snapshot_id']}")[2].decode()
        self.assertIn("like the capture", page)
        self.assertEqual(len(self.replays("--every", "2")), 1)

    def test_what_is_sealed_is_replayed_at_the_lowest_priority(self):
        self.sql("delete from holdfast.replay_quality")
        following = self.home.start("verify", "--replay", "--follow")
        judged = ("psql", "-Atc", "select count(*) from holdfast.v_replay_quality where score > 0.999")
        until("both are replayed", lambda: self.home.run(*judged).out.strip() == "2", 120)
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, following.pid), 19)
        following.terminate()
        told = self.home.finish(following)
        self.assertEqual(told.code, 130, str(told))
        self.assertEqual(told.out.count('"Replay"'), 2, str(told))  # none of them twice

    def captured(self):
        """Of each page: its name, the time of its capture and its screenshot."""
        for name in ("index.html", "storm.html"):
            directory = self.home.run("list", "snapshots", "--url", name).records[0]["directory"]
            picture = self.home.data / "archive" / directory / "screenshot/screenshot.png"
            yield name, self.cdx(f"{self.site}/{name}")[0]["timestamp"], picture

    def check_picture(self, browser, replayer, name, captured, frame=""):
        """The page, in a frame or not, looks as it did; both pictures stay where HOLDFAST_TEST_SCREENSHOTS says."""
        page = f"{frame}.contentDocument" if frame else "document"
        title = re.search("<title>(.*?)</title>", (ROOT / f"deploy/demo-site/site/{name}").read_text())[1]
        browser.until(
            "the page is there",
            f"(page => page.readyState == 'complete' && page.title == {json.dumps(title)} && "
            "[...page.images].every(i => i.complete && i.naturalWidth > 0) && page.fonts.status == 'loaded')"
            f"({page})",
        )
        if frame:  # as high as what is in it
            browser.value(f"{frame}.height = {page}.documentElement.scrollHeight")
        replayed = browser.full_page(*WINDOW)
        score = browser.same_pixels(captured.read_bytes(), replayed)
        place = Path(os.environ.get("HOLDFAST_TEST_SCREENSHOTS", self.home.path))
        (place / f"{replayer}-{name}-replayed.png").write_bytes(replayed)
        (place / f"{replayer}-{name}-captured.png").write_bytes(captured.read_bytes())
        print(f"\n{replayer}: {name}: {score:.5f} of the pixels are equal", file=sys.stderr)
        self.assertGreater(score, 0.999, name)

    @contextlib.contextmanager
    def in_wabac(self, path):
        """Opens a WACZ file in ReplayWeb.page's reader: a browser, the URLs in its list, and what shows one of them."""
        files = {
            "/": ("text/html", b"<!doctype html><title>replay</title><body style='margin: 0'></body>"),
            "/wabac.js": ("text/javascript", wabac().read_bytes()),
            "/all.wacz": ("application/wacz", path.read_bytes()),
        }
        with served(files) as origin, contextlib.closing(Chromium()) as browser:
            browser.open(origin + "/")
            loaded = browser.value(
                "navigator.serviceWorker.register('/wabac.js').then(() => navigator.serviceWorker.ready)"
                ".then(registration => new Promise(done => {"
                "  navigator.serviceWorker.onmessage = ({data}) => {"
                "    if (data.msg_type === 'collAdded' || data.error) done(data.error || data.msg_type);"
                "  };"
                f"  const file = {{sourceUrl: '{origin}/all.wacz'}};"
                "  registration.active.postMessage({msg_type: 'addColl', name: 'all', file});"
                "}))"
            )
            self.assertEqual(loaded, "collAdded")
            listed = browser.value("fetch('/w/api/c/all?all=1').then(answer => answer.json()).then(all => all.pages)")

            def show(url, stamp):
                browser.open(origin + "/")  # an archived page is shown in a frame only
                browser.value(
                    'document.body.innerHTML = \'<iframe style="border: 0; display: block"'
                    f' width={WINDOW[0]} height={WINDOW[1]} src="/w/all/{stamp}mp_/{url}"></iframe>\''
                )

            yield browser, {page["url"] for page in listed}, show

    @unittest.skipUnless(shutil.which("npm"), "npm is not installed")
    def test_wabac_replays_an_export(self):
        path = self.home.path / "for-wabac.wacz"
        self.assertEqual(self.home.run("export", "--all", "-o", path).code, 0)
        with self.in_wabac(path) as (browser, listed, show):
            self.assertEqual(listed, {f"{self.site}/index.html", f"{self.site}/storm.html"})
            for name, stamp, picture in self.captured():
                show(f"{self.site}/{name}", stamp)
                self.check_picture(browser, "wabac", name, picture, "document.querySelector('iframe')")

    def test_a_replay_tells_what_is_missing(self):
        with self.index_to_change():
            self.sql("delete from holdfast.capture where url like '%/storm.png'")
            self.sql("delete from holdfast.capture where url like '%/index.html'")
            replays = self.replays(code=1)
        self.assertIn("ERR_NAME_NOT_RESOLVED", replays["index.html"]["problem"])
        self.assertEqual(replays["index.html"]["score"], 0)
        storm = replays["storm.html"]
        self.assertEqual((storm["missing"], storm["missing_urls"]), (1, [f"{self.site}/storm.png"]))
        self.assertLess(storm["screenshot"], 0.999)
        self.assertEqual(storm["text"], 1)

    def test_a_capture_checks_that_it_replays(self):
        words = " ".join(f"kittiwake{number}" for number in range(200))

        class Pages(Handler):
            def do_GET(self):
                script = (
                    "<script>fetch('/words?' + Math.random()).then(a => a.text()).then(t => p.innerText = t)</script>"
                )
                odd = script.replace("/words?' + Math.random()", "/odd'")
                body = {
                    "/same": f"<!doctype html><title>Same</title><p id=p>{odd}",
                    "/other": f"<!doctype html><title>Other</title><p id=p>{script}",
                }.get(self.path, words)
                self.send_response(299 if self.path.startswith("/odd") else 200, "")  # which has no usual phrase
                self.send_header("Content-Type", "text/html" if body != words else "text/plain")
                self.end_headers()
                self.wfile.write(body.encode())

        home = self.place()
        home.environment |= {
            "HOLDFAST_PLUGINS_PATH": str(ROOT / "deploy/plugins"),
            "HOLDFAST_CAPTURE_CHECK": "replay",
        }
        with LocalSite(Pages) as site:
            home.run("add", f"{site.url}/same", f"{site.url}/other")
        same, other = (home.run("list", "snapshots", "--url", name).records[0] for name in ("/same", "/other"))
        self.assertEqual((same["outcome"], same["facts"]["replay"], same["reason"]), ("succeeded", 1, None), same)
        self.assertEqual(other["outcome"], "partial", other)
        self.assertLess(other["facts"]["replay"], 0.9)
        self.assertIn("its records do not replay: ", home.run("why", other["id"]).out)
        scores = home.run("psql", "-Atc", "select count(*) from holdfast.v_replay_quality").out
        self.assertEqual(scores.strip(), "2")
        self.assertEqual(list((home.data / "work").glob("**/replay")), [])

    @only_in_full
    def test_equal_bodies_of_a_crawl_are_stored_once(self):
        home = self.place()
        home.environment["HOLDFAST_PLUGINS_PATH"] = str(ROOT / "deploy/plugins")
        home.environment.update(HOLDFAST_WORKER_SNAPSHOTS="1")
        with self.demo_site() as site:
            added = home.run("add", f"{site}/storm.html?a", f"{site}/storm.html?b", f"{site}/tides.html")
        self.assertEqual(added.code, 0, str(added))

        def rows(query):
            done = home.holdfast("psql", "-Atc", query)
            return done.out.splitlines()

        picture = "from holdfast.v_capture where url like '%/storm.png'"
        self.assertEqual(rows(f"select mime {picture} order by 1"), ["image/png", "warc/revisit"])
        self.assertGreater(int(rows("select bytes_saved from holdfast.v_status")[0]), 200_000)
        first = rows(f"select snapshot_id {picture} and mime = 'image/png'")[0]
        second = rows(f"select snapshot_id {picture} and mime = 'warc/revisit'")[0]
        for warc in home.data.rglob("page.warc.gz"):
            subprocess.run([self.bin / "warcio", "check", warc], check=True, timeout=60)
        self.check_replays(home, 3)
        self.check_export(home, second)
        self.assertEqual(home.run("remove", "--yes", first).code, 0)
        self.assertEqual(rows(f"select mime, split_part(file, '/', 1) {picture} order by 1")[0], "image/png|kept")
        self.assertFalse(list(home.data.glob(f"archive/2*/**/{first}")), "its files are deleted")
        home.holdfast("verify", "--all")
        self.check_export(home, second)
        self.check_adopted(home, rows(f"select file, url, digest {picture} order by file"))
        self.assertEqual(home.run("remove", "--yes", second).code, 0)
        self.assertEqual(rows(f"select mime {picture}"), [])
        style = [str(one.relative_to(home.data / "archive")) for one in home.data.glob("archive/kept/*/*/*/*")]
        self.assertEqual(rows("select file from holdfast.v_capture where file like 'kept/%'"), style)
        self.assertEqual(len(style), 1, "the last page refers to the style sheet of the first")
        self.assertEqual(home.run("remove", "--yes", home.run("list", "crawls").records[0]["id"]).code, 0)
        self.assertFalse(list(home.data.glob("archive/kept/*")))
        self.assertEqual(rows("select * from holdfast.check_invariants()"), [])

    def test_payloads_of_other_crawls_are_not_stored_again(self):
        home = self.place()
        home.environment.update(HOLDFAST_PLUGINS_PATH=str(ROOT / "deploy/plugins"))

        def rows(query):
            done = home.holdfast("psql", "-Atc", query)
            return done.out.splitlines()

        def records(crawl):
            where = f"from holdfast.v_capture where crawl_id = '{crawl}' and file not like 'kept/%'"
            return dict(row.split("|") for row in rows(f"select substring(url from '[^/]*$'), mime {where}"))

        def warcs(crawl):
            return sum(
                (home.data / "archive" / file).stat().st_size
                for file in rows(f"select distinct file from holdfast.v_capture where crawl_id = '{crawl}'")
            )

        with self.demo_site() as site:
            for more in ({}, {}, {"HOLDFAST_ARCHIVE_DEDUPLICATE": "off"}):
                home.holdfast("add", f"{site}/storm.html", env=more)
        first, second, third = sorted(rows("select id from holdfast.v_crawl"))
        self.assertEqual(records(first)["storm.png"], "image/png")
        self.assertEqual({records(second)[name] for name in ("storm.html", "storm.png")}, {"warc/revisit"})
        self.assertEqual(records(third), records(first))
        self.assertLess(10 * warcs(second), warcs(first))
        self.assertGreater(int(rows("select bytes_saved from holdfast.v_status")[0]), 200_000)
        for warc in home.data.rglob("page.warc.gz"):
            subprocess.run([self.bin / "warcio", "check", warc], check=True, timeout=60)
        self.assertEqual(home.run("remove", "--yes", third).code, 0)
        if FULL:
            self.check_alone(home, second, site)
        # The first goes: what the second refers to stays, alone.
        self.assertEqual(home.run("remove", "--yes", first).code, 0)
        self.assertFalse(list(home.data.glob("archive/2*/**/*.png.warc.gz")))
        self.assertEqual({row.split("|")[0] for row in rows("select id from holdfast.v_crawl")}, {second})
        self.assertTrue(list(home.data.glob(f"archive/kept/{first}/*/*/record.warc.gz")))
        self.check_replays(home, 1)
        self.check_alone(home, second, site)
        self.check_export(home, rows(f"select id from holdfast.v_snapshot where crawl_id = '{second}'")[0])
        lost = next(home.data.glob(f"archive/kept/{first}/*/*/record.warc.gz"))
        lost.rename(home.path / "lost")
        told = home.run("export", second, "-o", home.path / "lost.wacz")
        self.assertEqual((told.code, "missing  kept/" in told.err), (1, True), str(told))
        (home.path / "lost").rename(lost)
        self.assertEqual(home.run("remove", "--yes", second).code, 0)
        self.assertEqual(rows("select * from holdfast.v_capture"), [])
        self.assertFalse([one for one in home.data.glob("archive/*/**/*") if one.suffix == ".gz"])
        self.assertEqual(rows("select * from holdfast.check_invariants()"), [])

    def check_alone(self, home, crawl, site):
        """The crawl is exported with all that it refers to: it replays in wabac, and in another collection."""
        path = home.path / "alone.wacz"
        done = home.holdfast("export", crawl, "-o", path)
        subprocess.run([self.bin / "wacz", "validate", "-f", path], check=True, timeout=120, stdout=subprocess.DEVNULL)
        picture = next((home.data / "archive").glob("2*/**/screenshot.png"))
        if shutil.which("npm"):
            with self.in_wabac(path) as (browser, _, show):
                show(f"{site}/storm.html", "")
                self.check_picture(browser, "wabac-alone", "storm.html", picture, "document.querySelector('iframe')")
        other = self.place()
        for said in ("1 imported", "1 known"):
            done = other.run("import", "warc", path)
            self.assertEqual(done.code, 0, f"{said}: {done}")
        self.assertEqual(len(other.run("list", "snapshots").records), 1)
        self.assertEqual(other.run("verify", "--all").code, 0)
        told = other.run("verify", "--all", "--replay")
        replay = next(one for one in told.records if one["type"] == "Replay")
        self.assertEqual((told.code, replay["missing"], replay["problem"]), (0, 0, ""), str(told))

    def check_adopted(self, home, expected):
        """The rows that are made again from the files know what the removed snapshot has left to others."""
        copy = self.place()
        archive = copy.path / "archive"
        shutil.copytree(home.data / "archive", archive, symlinks=True)
        copy.environment.update(HOLDFAST_ARCHIVE_ROOT=str(archive))
        adopted = copy.run("adopt")
        kept = len(list(archive.glob("kept/*/*/*/*")))
        self.assertGreater(kept, 0)
        self.assertEqual((adopted.code, adopted.records[-1]["records"]), (0, kept), str(adopted))
        query = "select file, url, digest from holdfast.v_capture where url like '%/storm.png' order by file"
        self.assertEqual(copy.run("psql", "-Atc", query).out.splitlines(), expected)
        again = copy.run("adopt")
        self.assertEqual((again.code, again.records[-1]["records"]), (0, 0), str(again))
        self.check_replays(copy, 2)
        self.assertEqual(copy.run("psql", "-Atc", "select * from holdfast.check_invariants()").out, "")

    def check_replays(self, home, count):
        told = home.holdfast("verify", "--all", "--replay")
        replays = [one for one in told.records if one["type"] == "Replay"]
        self.assertEqual(len(replays), count)
        for one in replays:
            self.assertEqual((one["text"], one["resources"], one["missing"]), (1, 1, 0), one)
            self.assertGreater(one["screenshot"], 0.999, one)

    def check_export(self, home, snapshot):
        """A snapshot whose picture is a revisit record is exported with the picture."""
        path = home.path / "one.wacz"
        home.holdfast("export", snapshot, "-o", path)
        with zipfile.ZipFile(path) as archive:
            index = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
            lines = [json.loads(line.split(" ", 2)[2]) for line in index if "storm.png" in line]
            self.assertEqual({one["mime"] for one in lines}, {"image/png", "warc/revisit"})
            one = next(one for one in lines if one["mime"] == "image/png")
            begin, length = int(one["offset"]), int(one["length"])
            record = gzip.decompress(archive.read("archive/" + one["filename"])[begin : begin + length])
            self.assertTrue(record.rstrip().endswith((ROOT / "deploy/demo-site/site/storm.png").read_bytes().rstrip()))
        subprocess.run([self.bin / "wacz", "validate", "-f", path], check=True, timeout=120, stdout=subprocess.DEVNULL)

    def test_files_are_exported_for_people(self):
        for name in ("files", "files.zip"):
            path = self.home.path / name
            self.home.holdfast("export", "--all", "--format", "files", "-o", path)
            if name.endswith(".zip"):
                with zipfile.ZipFile(path) as archive:
                    self.assertIsNone(archive.testzip())
                    names, listed = archive.namelist(), archive.read("pages/pages.jsonl").decode()
            else:
                names = [str(one.relative_to(path)) for one in path.rglob("*") if one.is_file()]
                listed = (path / "pages/pages.jsonl").read_text()
            pages = [json.loads(line) for line in listed.splitlines()[1:]]
            self.assertEqual({one["url"] for one in pages}, {f"{self.site}/index.html", f"{self.site}/storm.html"})
            for one in pages:
                self.assertLess({f"{one['path']}/index.html", f"{one['path']}/screenshot/screenshot.png"}, set(names))
        self.assertIn("2 snapshots exported", self.home.run("export", "--all", "--format", "files", "-o", "files").err)

    def sql(self, statement):
        self.home.holdfast("psql", "--role", "owner", "-qc", statement)

    @contextlib.contextmanager
    def index_to_change(self):
        """Puts the index back afterwards."""
        self.sql("create table public.saved as select * from holdfast.capture")
        try:
            yield
        finally:
            self.sql(
                "delete from holdfast.capture; insert into holdfast.capture select * from public.saved;"
                " drop table public.saved"
            )

    def wayback(self, directory, path, *options, program=None, **environment):
        """pywb, which answers at this path, with what it finds in the directory: its port and process."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(directory / "log", "w") as log:
            wayback = subprocess.Popen(
                program or [self.bin / "wayback", "-b", "127.0.0.1", "-p", str(port), "-d", directory, *options],
                stdout=log,
                stderr=log,
                env={**os.environ, "REPLAY_PORT": str(port), **environment},
            )
        self.addCleanup(self.finish, wayback)

        def listens():
            self.assertIsNone(wayback.poll(), (directory / "log").read_text())
            with contextlib.suppress(OSError):
                return self.get(port, path)
            return None

        until("pywb listens", listens)
        return port, wayback

    def test_a_replay_undoes_the_codings_of_bodies(self):
        home, url = self.place(held=True), "http://coded.test/"
        page = b"<!doctype html><title>Coded</title><link rel=stylesheet href=a.css><img src=b.svg>" + b" " * 300
        style = b"body { background: #070 } " + b" " * 300
        picture = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>"
        parts = (
            ("", "text/html", "br", brotli(page)),
            ("a.css", "text/css", "zstd", zstd(style)),
            ("b.svg", "image/svg+xml", "gzip, br", brotli(gzip.compress(picture))),
        )
        records = [
            record(
                "response",
                url + name,
                f"2024-01-01T00:00:0{i}Z",
                http_response(body, kind, more=f"Content-Encoding: {how}\r\n"),
                i,
            )
            for i, (name, kind, how, body) in enumerate(parts)
        ]
        (home.path / "coded.warc.gz").write_bytes(members(*records))
        self.assertEqual(home.run("import", "warc", home.path / "coded.warc.gz").code, 0)
        told = home.holdfast("verify", "--all", "--replay")
        replay = next(one for one in told.records if one["type"] == "Replay")
        self.assertEqual((replay["resources"], replay["missing"], replay["problem"]), (1, 0, ""), replay)

    def test_an_imported_page_replays_with_what_its_browser_had_in_the_cache(self):
        """As Browsertrix leaves it: the style sheet is a record of the first page alone; a picture is a revisit record
        of another URL; the pictures of the pages have no background. The first was laid out for a window with a scroll
        bar, the second page is shorter than its window."""
        home, site, width = self.place(held=True), "http://cached.test/", 800
        html = (
            b"<!doctype html><title>T</title><link rel=stylesheet href=a.css><link rel=icon href=i.svg><img src=%s.svg>"
        )
        style = (
            b"body { margin: 0; height: 1000px; background: none } img { position: absolute; left: 50%; top: 900px }"
        )
        short = b"<style>body { height: 300px } img { top: 200px }</style>"
        svg = b"<svg xmlns='http://www.w3.org/2000/svg' width='99' height='60'><rect width='99' height='60' fill='#00f'/></svg>"
        icon = svg.replace(b"#00f", b"#f00")

        def whole(body, kind):
            return {"block": http_response(body, kind), "digest": hashlib.sha256(body).hexdigest()}

        parts = (
            ("response", "one", 0, whole(html % b"one", "text/html")),
            ("response", "a.css", 1, whole(style, "text/css")),
            ("response", "one.svg", 1, whole(svg, "image/svg+xml")),
            ("response", "two", 4, whole(html % b"two" + short, "text/html")),
            ("revisit", "two.svg", 5, {**whole(svg, "image/svg+xml"), "block": http_response(b"", "image/svg+xml")}),
            ("response", "i.svg", 5, whole(icon, "image/svg+xml")),
        )
        records = []
        for number, (kind, name, second, made) in enumerate(parts):
            more = [f"WARC-Payload-Digest: sha256:{made['digest']}"]
            if kind == "revisit":
                more += [f"WARC-Refers-To-Target-URI: {site}one.svg", "WARC-Refers-To-Date: 2024-01-01T00:00:01Z"]
            date = f"2024-01-01T00:00:0{second}Z"
            records.append(record(kind, site + name, date, made["block"], number, more=more))
        # RGBA: a blue box in the middle of the window, and nothing else
        box, empty = b"\0\0\xff\xff", bytes(4)
        for number, (name, seen, height, top) in enumerate((("one", width - 15, 1000, 900), ("two", width, 1020, 200))):
            row = empty * (width // 2) + box * 99 + empty * (seen - width // 2 - 99)
            rows = [b"\0" + (row if top <= y < top + 60 else empty * seen) for y in range(height)]
            picture = png_of(seen, height, 6, b"".join(rows))
            url, date = f"urn:fullPage:{site}{name}", f"2024-01-01T00:00:0{2 + 4 * number}Z"
            records.append(record("resource", url, date, picture, 50 + number, "image/png"))
        (home.path / "cached.warc.gz").write_bytes(members(*records))
        self.assertEqual(home.run("import", "warc", home.path / "cached.warc.gz").code, 0)
        told = home.holdfast("verify", "--all", "--replay", "--pictures", home.path)
        replays = [one for one in told.records if one["type"] == "Replay"]
        for one in replays:
            print(f"\n{one}", file=sys.stderr)
        shown = [[one[name] for name in ("url", "screenshot", "resources", "missing", "problem")] for one in replays]
        self.assertEqual(shown, [[f"{site}{name}", 1, 1, 0, ""] for name in ("one", "two")])

    def test_what_browsers_do_not_show_replays_if_it_is_sent(self):
        home = self.place(held=True)
        home.environment["HOLDFAST_PLUGINS_PATH"] = str(ROOT / "deploy/plugins")
        with self.demo_site() as site:
            self.assertEqual(home.run("add", f"{site}/regulations.pdf").code, 0)
        told = home.holdfast("verify", "--all", "--replay")
        replay = next(one for one in told.records if one["type"] == "Replay")
        shown = [replay[name] for name in ("score", "screenshot", "text", "resources", "missing", "problem")]
        self.assertEqual(shown, [1, None, None, 1, 0, ""], replay)

    def test_a_plain_user_replays(self):
        """Whose Chromium has a namespace of users with its network: from there, no other process can be looked into."""
        user, home = as_plain_user(), self.place(filled=False)
        if user:
            os.chown(home.path, user["user"], user["group"])
        home.environment["HOLDFAST_PLUGINS_PATH"] = str(ROOT / "deploy/plugins")
        with self.demo_site() as site:
            self.assertEqual(home.run("add", "-p", "browser", f"{site}/storm.html", **user).code, 0)
        told = home.holdfast("verify", "--all", "--replay", **user)
        replay = next(one for one in told.records if one["type"] == "Replay")
        self.assertEqual([replay[name] for name in ("score", "missing", "problem")], [1, 0, ""], replay)

    @unittest.skipUnless(shutil.which("npm"), "npm is not installed")
    def test_an_archive_of_other_tools_is_imported_and_replayed(self):
        """Chromium through pywb's recorder, packed by py-wacz; imported, exported, and shown by wabac."""
        directory = self.home.path / "recorder"
        directory.mkdir()
        subprocess.run([self.bin / "wb-manager", "init", "foreign"], cwd=directory, check=True, timeout=60)
        port, recorder = self.wayback(directory, "/", "--live", "--proxy", "foreign", "--proxy-record")
        proxy = (f"--proxy-server=127.0.0.1:{port}", "--proxy-bypass-list=<-loopback>")
        pages = ("index.html", "storm.html")
        with self.demo_site() as site, contextlib.closing(Chromium(flags=proxy, program=WITH_WINDOWS)) as browser:
            for name in pages:
                browser.open(f"{site}/{name}")
                browser.until("its pictures are there", "[...document.images].every(i => i.complete && i.naturalWidth)")
                (directory / f"{name}.png").write_bytes(browser.full_page(*WINDOW))
        recorder.terminate()
        recorder.wait(60)
        warcs = list((directory / "collections/foreign/archive").glob("*.warc.gz"))
        made = directory / "foreign.wacz"
        subprocess.run(
            [self.bin / "wacz", "create", "--detect-pages", "--text", "-o", made, "-f", *warcs], check=True, timeout=120
        )
        home = self.place(held=True)
        home.holdfast("import", "warc", made)
        urls = {one["url"] for one in home.run("list", "snapshots").records}
        self.assertEqual(urls, {f"{site}/{name}" for name in pages})
        home.holdfast("verify", "--all")
        told = home.run("verify", "--all", "--replay")
        replays = [one for one in told.records if one["type"] == "Replay"]
        self.assertEqual([(one["missing"], one["problem"]) for one in replays], [(0, "")] * 2, str(told))
        again = home.path / "again.wacz"
        self.assertEqual(home.run("export", "--all", "-o", again).code, 0)
        subprocess.run([self.bin / "wacz", "validate", "-f", again], check=True, timeout=120, stdout=subprocess.DEVNULL)
        with self.in_wabac(again) as (browser, listed, show):
            self.assertEqual(listed, urls)
            for name in pages:
                show(f"{site}/{name}", "")
                self.check_picture(
                    browser, "foreign", name, directory / f"{name}.png", "document.querySelector('iframe')"
                )

    def test_stock_pywb_replays_the_collection(self):
        directory = self.home.path / "pywb"
        directory.mkdir()
        (directory / "config.yaml").write_text(
            "framed_replay: false\ncollections:\n  archive:\n"
            f"    index: cdx+http://127.0.0.1:{self.port}/cdx\n"
            f"    archive_paths: http://127.0.0.1:{self.files}/\n"
        )
        port, _ = self.wayback(directory, "/archive/")
        stamp = self.cdx(f"{self.site}/storm.html")[0]["timestamp"]
        with contextlib.closing(Chromium()) as browser:
            browser.open(f"http://127.0.0.1:{port}/archive/{stamp}/{self.site}/storm.html")
            browser.until("the page is there", "document.title.length > 0 && document.body.innerText.length > 100")
            pictures = browser.until(
                "its pictures are there",
                "[...document.images].every(i => i.complete) && [...document.images].map(i => [i.naturalWidth, i.src])",
            )
            self.assertTrue(pictures)
            for width, source in pictures:
                self.assertGreater(width, 0, source)
            asked = [url for url in browser.requests if url.startswith("http")]
            self.assertIn(f"{self.site}/storm.png", " ".join(asked))
            for url in asked:
                self.assertTrue(url.startswith(f"http://127.0.0.1:{port}/"), url)
            for name, at, picture in self.captured():
                browser.open(f"http://127.0.0.1:{port}/archive/{at}mp_/{self.site}/{name}")
                self.check_picture(browser, "pywb", name, picture)
            self.check_links(port)

    def test_the_pywb_of_the_compose_file_signs_in_with_its_token(self):
        token = self.home.path / "replay_token"
        token.write_text(self.home.run("token", "add", "pywb", "--role", "reader").out)
        server = self.home.start(
            "serve",
            env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0", "HOLDFAST_SERVE_GUEST": "none"},
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(self.finish, server)
        page = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))
        self.assertEqual(self.get(page, "/cdx?url=x")[0], 401)
        policy = self.get(page, "/")[1]["Content-Security-Policy"]
        files = int(re.search(r"img-src 'self' http://127\.0\.0\.1:(\d+)", policy).group(1))
        directory = self.home.path / "replay"
        shutil.copytree(ROOT / "deploy/replay", directory)
        stamp = self.cdx(f"{self.site}/storm.html")[0]["timestamp"]
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "REPLAY_TOKEN_FILE": str(token),
            "REPLAY_PAGE": f"127.0.0.1:{page}",
            "REPLAY_FILES": f"127.0.0.1:{files}",
            "REPLAY_ADDRESS": "127.0.0.1",
        }
        port, _ = self.wayback(directory, "/archive/", program=["sh", directory / "start"], **environment)
        status, _, body = self.get(port, f"/archive/{stamp}mp_/{self.site}/storm.html")
        self.assertEqual(status, 200, body)
        self.assertIn((ROOT / "deploy/demo-site/site/storm.html").read_text().splitlines()[-2], body.decode())
        compose = (ROOT / "docker-compose.yml").read_text()
        for part in ("entrypoint: [sh, /replay/start]", "./deploy/replay:/replay:ro", "/replay:/run/secrets:ro"):
            self.assertIn(part, compose)

    def check_links(self, port):
        environment = {
            "HOLDFAST_SERVE_LISTEN": "127.0.0.1:0",
            "HOLDFAST_SERVE_REPLAY": f"http://127.0.0.1:{port}/archive",
        }
        server = self.home.start("serve", env=environment, stderr=subprocess.DEVNULL)
        self.addCleanup(self.finish, server)
        own = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))
        snapshot = self.home.run("list", "snapshots", "--url", "storm.html").records[0]["id"]
        page = self.get(own, f"/snapshot/{snapshot}")[2].decode()
        link = re.search(r'href="([^"]*)"[^>]*>Replay with scripts', page)[1]
        self.assertRegex(link, rf"^http://127\.0\.0\.1:{port}/archive/\d{{14}}/{self.site}/storm\.html$")
        self.assertEqual(self.get(port, link.partition(str(port))[2])[0] // 100, 2)
        refused = self.home.run(
            "serve",
            env={"HOLDFAST_SERVE_LISTEN": "127.0.0.1:8118", "HOLDFAST_SERVE_REPLAY": "http://localhost:8118/x/"},
        )
        self.check_error(refused, 78, "origin of its own")

    def test_an_export_is_a_valid_wacz_file(self):
        path = self.home.path / "all.wacz"
        self.home.holdfast("export", "--all", "-o", path)
        checked = subprocess.run(
            [self.bin / "wacz", "validate", "-f", path], capture_output=True, text=True, timeout=120
        )
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        with zipfile.ZipFile(path) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual({one.compress_type for one in archive.infolist()}, {zipfile.ZIP_STORED})
            warcs = {name: archive.read(name) for name in archive.namelist() if name.startswith("archive/")}
            index = gzip.decompress(archive.read("indexes/index.cdx.gz")).decode().splitlines()
            pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").splitlines()]
        self.assertEqual(index, sorted(index))
        for line in index:
            one = json.loads(line.split(" ", 2)[2])
            begin, length = int(one["offset"]), int(one["length"])
            record = gzip.decompress(warcs["archive/" + one["filename"]][begin : begin + length])
            self.assertIn(f"WARC-Target-URI: {one['url']}\r\n".encode(), record)
        self.assertEqual({page["url"] for page in pages[1:]}, {f"{self.site}/index.html", f"{self.site}/storm.html"})
        for page in pages[1:]:
            self.assertTrue(page["title"] and len(page["text"]) > 100, page)
        piped = subprocess.run(
            [PROGRAM, "export", "--all", "-o", "-"], env=self.home.environment, capture_output=True, timeout=120
        )
        self.assertEqual(piped.returncode, 0, piped.stderr)
        (self.home.path / "piped.wacz").write_bytes(piped.stdout)
        with zipfile.ZipFile(self.home.path / "piped.wacz") as archive:
            self.assertIsNone(archive.testzip())

    def test_an_export_that_finds_no_room_leaves_nothing_that_looks_whole(self):
        little = {"prefix": ("prlimit", "--fsize=100000"), "restore_signals": False}  # SIGXFSZ stays ignored
        for name, kind in (("full.wacz", "wacz"), ("full.zip", "files")):
            done = self.home.run("export", "--all", "--format", kind, "-o", name, **little)
            self.assertIn(done.code, (73, 74), str(done))
            self.assertIn("File too large", done.err)
            self.assertFalse(list(self.home.path.glob(f"*{name}*")))
        directory = self.home.path / "full-warcs"
        export = ("export", "--all", "--format", "warc", "-o", directory)
        done = self.home.run(*export, **little)
        self.assertIn(done.code, (73, 74), str(done))
        self.assertIn("File too large", done.err)
        self.assertFalse((directory / "index.cdxj").exists())
        done = self.home.holdfast(*export)
        self.assertEqual({one.name[0] for one in directory.iterdir()} & {"."}, set())
        for warc in directory.glob("*.warc.gz"):
            subprocess.run([self.bin / "warcio", "check", warc], check=True, timeout=60)

    def test_what_is_exported_can_be_chosen(self):
        snapshot = self.home.run("list", "snapshots", "--url", "storm.html").records[0]["id"]
        directory = self.home.path / "warcs"
        done = self.home.holdfast("export", snapshot, "--format", "warc", "-o", directory)
        urls = [
            json.loads(line.split(" ", 2)[2])["url"] for line in (directory / "index.cdxj").read_text().splitlines()
        ]
        self.assertIn(f"{self.site}/storm.html", urls)
        self.assertNotIn(f"{self.site}/index.html", urls)
        for warc in directory.glob("*.warc.gz"):
            subprocess.run([self.bin / "warcio", "check", warc], check=True, timeout=60)
        for choice, expected in (
            (["--host", "127.0.0.1"], 2),
            (["--host", "other.test"], 0),
            (["--until", "2020-01-01"], 0),
        ):
            chosen = self.home.path / "chosen"
            shutil.rmtree(chosen, ignore_errors=True)
            done = self.home.run("export", *choice, "--format", "warc", "-o", chosen)
            self.assertIn(f"{expected} snapshots exported", done.err)
        self.check_error(self.home.run("export", "-o", "x.wacz"), 64, "nothing to export")
        self.check_error(self.home.run("export", "--all", "-o", "no/such/x.wacz"), 74, "no/such/x.wacz")

    def test_removed_and_adopted_snapshots_leave_and_enter_the_index(self):
        copy = self.place()
        copy.environment.update(
            HOLDFAST_PLUGINS_PATH=self.home.environment["HOLDFAST_PLUGINS_PATH"],
            HOLDFAST_ARCHIVE_ROOT=str(copy.path / "archive"),
        )
        shutil.copytree(self.home.data / "archive", copy.path / "archive", symlinks=True)
        copy.holdfast("adopt")

        def indexed():
            return int(copy.run("psql", "-Atc", "select count(*) from holdfast.v_capture").out)

        before = indexed()
        self.assertGreater(before, 5)
        removed = copy.run("remove", "--yes", copy.run("list", "snapshots", "--url", "storm.html").records[0]["id"])
        self.assertEqual(removed.code, 0, str(removed))
        self.assertLess(0, indexed())
        self.assertLess(indexed(), before)
