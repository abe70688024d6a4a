"""import warc: WARC and WACZ files that were made elsewhere, whole, damaged and hostile."""

import base64
import gzip
import hashlib
import io
import json
import lzma
import os
import subprocess
import unittest
import zipfile
import zlib

from harness.full import FULL, some_of
from harness.case import FAILED_WORK, OK, Case
from harness.warc import brotli, http, members, record, zstd
from harness.wait import until


def page(title, words, kind="text/html"):
    body = f"<!doctype html><title>{title}</title><body><p>{words}</p></body>".encode()
    return http(body, kind)


SITE = [
    record("response", "http://old.test/", "2019-05-01T10:00:00Z", page("First page", "an osprey over the lake"), 1),
    record(
        "request",
        "http://old.test/",
        "2019-05-01T10:00:00Z",
        b"GET / HTTP/1.1\r\nHost: old.test\r\n\r\n",
        2,
        "application/http;msgtype=request",
        more=["WARC-Concurrent-To: <urn:uuid:00000000-0000-4000-8000-000000000001>"],
    ),
    record("response", "http://old.test/a.css", "2019-05-01T10:00:01Z", http(b"p { color: red }", "text/css"), 3),
    record(
        "response",
        "http://old.test/second",
        "2020-06-02T11:00:00Z",
        http(
            gzip.compress(b"<!doctype html><title>Second page</title><p>a heron in the reeds"),
            "text/html; charset=utf-8",
            more="Content-Encoding: gzip\r\n",
        ),
        4,
    ),
    record("response", "http://old.test/gone", "2020-06-03T11:00:00Z", http(b"none", "text/html", "404 Not Found"), 5),
]


def wacz(entries, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, body in entries.items():
            archive.writestr(name, body)
    return out.getvalue()


PIXEL = b"\x89PNG\r\n\x1a\n and some bytes of a picture"


def page_list(*pages):
    """pages.jsonl of a WACZ file: (URL, time, id)."""
    lines = [{"format": "json-pages-1.0", "id": "pages"}]
    lines += [{"id": name, "url": url, "ts": date, "title": name} for url, date, name in pages]
    return "\n".join(map(json.dumps, lines)) + "\n"


def revisit(url, date, of, number, body, more=()):
    """A record that refers to (URL, time), with another digest than SHA-1, as Browsertrix writes it."""
    digest = f"WARC-Payload-Digest: sha256:{hashlib.sha256(body).hexdigest()}"
    refers = (f"WARC-Refers-To-Target-URI: {of[0]}", f"WARC-Refers-To-Date: {of[1]}", digest)
    profile = "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    return record("revisit", url, date, http(b"", "image/png"), number, more=(profile, *refers, *more))


class ImportWarc(Case):
    def file(self, home, name, body):
        path = home.path / name
        path.write_bytes(body)
        return path

    def imported(self, home, name, body, count=None, code=OK):
        """Imports a file of this content, which must end so and bring so many pages."""
        done = home.holdfast("import", "warc", self.file(home, name, body), expect=code)
        if count is not None:
            self.assertEqual(done.records[-1]["imported"], count, str(done))
        return done

    def rows(self, home, query):
        done = home.holdfast("psql", "-Atc", query)
        return done.out.split()

    def check_site(self, home):
        pages = {one["url"]: one for one in home.run("list", "snapshots").records}
        self.assertEqual(
            {url: one["title"] for url, one in pages.items()},
            {"http://old.test/": "First page", "http://old.test/second": "Second page"},
        )
        self.assertEqual(
            self.rows(
                home, "select to_char(at at time zone 'UTC', 'YYYYMMDDHH24MISS') from holdfast.v_capture order by 1"
            ),
            ["20190501100000", "20190501100001", "20200602110000", "20200603110000"],
        )
        hits = home.run("search", "heron").records
        self.assertEqual([hit["url"] for hit in hits if "url" in hit], ["http://old.test/second"])
        self.check_whole(home)

    def test_pages_come_with_their_time_and_leave_again(self):
        home = self.place(held=True)
        for body, name in ((members(*SITE), "old.warc.gz"), (b"".join(SITE), "old.warc")):
            with self.subTest(name):
                home = self.place(held=True)
                self.imported(home, name, body, 2)
                self.check_site(home)
                again = home.run("import", "warc", home.path / name)
                self.assertEqual((again.code, again.records[-1]["imported"], again.records[-1]["known"]), (0, 0, 2))
        home.holdfast("export", "--all", "-o", home.path / "out.wacz")
        other = self.place(held=True)
        self.assertEqual(other.lines("import", "warc", home.path / "out.wacz")[-1]["imported"], 2)
        self.check_site(other)

    def test_titles_tags_notes_and_times_come_with_each_export(self):
        home = self.place(held=True)
        page = {"url": "http://old.test/", "ts": "2019-05-01T10:00:00Z", "bookmarked_at": "2015-02-03T04:05:06Z"}
        pages = [page, {"url": "http://old.test/second", "ts": "2020-06-02T11:00:00Z"}]
        lists = "".join(json.dumps(one) + "\n" for one in ({"format": "json-pages-1.0"}, *pages)).encode()
        self.imported(home, "old.wacz", wacz({"archive/old.warc.gz": members(*SITE), "pages/pages.jsonl": lists}), 2)
        ids = {one["url"]: one["id"] for one in home.run("list", "snapshots").records}
        marks = [
            "--tag",
            "birds & lakes",
            "--tag",
            "é",
            "--notes",
            '<b>See</b>\nthe "lake"',
            "--title",
            "An osprey <i>",
        ]
        home.holdfast("edit", ids["http://old.test/"], *marks)

        def told(place, *more):
            at = [f"to_char({one} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')" for one in ("bookmarked_at", *more)]
            query = f"select url, title, tags, notes, {', '.join(at)} from v_snapshot order by url"
            return place.holdfast("psql", "-Atc", query).out

        captured = "coalesce(started_at, sealed_at)"
        marked = 'http://old.test/|An osprey <i>|{"birds & lakes",é}|<b>See</b>\nthe "lake"|2015-02-03 04:05:06'
        expected = told(home, captured)
        self.assertIn(marked + "|2019-05-01 10:00:00\n", expected)
        records = "select url, at, status, digest from v_capture order by url, at"
        names = ("all.wacz", "warcs", "files", "files.zip", "all.html", "all.jsonl")
        for form, name in zip(("wacz", "warc", "files", "files", "bookmarks", "json"), names, strict=True):
            with self.subTest(form, name=name):
                home.holdfast("export", "--all", "--format", form, "-o", home.path / name)
                other = self.place(held=True)
                if form in ("bookmarks", "json"):  # lists, of pages that are then captured
                    other.holdfast("add", "--bg", home.path / name)
                    other.run("run")
                    self.assertIn(marked, told(other))
                    self.assertIn("http://old.test/second|Second page|{}||", told(other))
                    continue
                for known in (0, 2):
                    done = other.lines("import", "warc", home.path / name)[-1]
                    self.assertEqual((done["imported"], done["known"], done["problems"]), (2 - known, known, 0))
                self.assertEqual(told(other, captured), expected)
                self.assertEqual(self.rows(other, records), self.rows(home, records))
        self.assertEqual(home.run("export", "--all", "--tag", "none", "--format", "json", "-o", "-").code, FAILED_WORK)

    def test_pages_of_one_second_share_records_by_their_order(self):
        home = self.place(held=True)
        parts = ("one", "one.css", "two", "two.css")
        records = [
            record(
                "response",
                f"http://old.test/{name}",
                "2021-01-01T00:00:00Z",
                http(b"p { color: red }", "text/css") if name.endswith(".css") else page(name, "words"),
                number,
            )
            for number, name in enumerate(parts)
        ]
        self.imported(home, "fast.warc", b"".join(records))
        self.assertEqual(self.shared(home), ["one|one", "one|one.css", "two|two", "two|two.css"])

    def test_a_browser_s_requests_tell_pages_from_frames(self):
        home = self.place(held=True)
        records = []
        for number, (path, destination) in enumerate((("/", "document"), ("/frame", "iframe"), ("/two", "document"))):
            url, date = f"http://old.test{path}", f"2021-01-01T00:00:0{number}Z"
            records.append(record("response", url, date, page(path, "words"), 10 * number + 1))
            records.append(
                record(
                    "request",
                    url,
                    date,
                    f"GET {path} HTTP/1.1\r\nSec-Fetch-Dest: {destination}\r\n\r\n".encode(),
                    10 * number + 2,
                    "application/http;msgtype=request",
                    more=[f"WARC-Concurrent-To: <urn:uuid:00000000-0000-4000-8000-{10 * number + 1:012}>"],
                )
            )
        self.imported(home, "b.warc.gz", members(*records))
        urls = sorted(one["url"] for one in home.run("list", "snapshots").records)
        self.assertEqual(urls, ["http://old.test/", "http://old.test/two"])
        self.assertEqual(len(self.rows(home, "select url from holdfast.v_capture")), 3)

    def test_bodies_are_read_in_every_coding(self):
        home = self.place(held=True)
        codings = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli, "zstd": zstd, "br, gzip": None}
        # Headers that do not fit: a coding was undone already, or that of the transfer is not named.
        codings |= {"gzip, gzip": gzip.compress, "aws-chunked,gzip": gzip.compress}
        codings["x-gzip"] = lambda body: b"%x\r\n%s\r\n0\r\n\r\n" % (len(gzip.compress(body)), gzip.compress(body))
        records = []
        for number, (coding, packed) in enumerate(codings.items()):
            words = f"<!doctype html><title>As {coding}</title><p>bird{number} in the reeds" + " " * 300
            body = packed(words.encode()) if packed else gzip.compress(brotli(words.encode()))
            block = http(body, "text/html", more=f"Content-Encoding: {coding}\r\n")
            records.append(
                record("response", f"http://old.test/{number}", f"2020-01-01T00:0{number}:00Z", block, number)
            )
        broken = http(b"\x00 no brotli", "text/html", more="Content-Encoding: br\r\n")
        records.append(record("response", "http://old.test/broken", "2020-01-01T00:09:00Z", broken, 99))
        self.imported(home, "coded.warc.gz", members(*records), len(codings) + 1)
        titles = {one["url"].rpartition("/")[2]: one["title"] for one in home.run("list", "snapshots").records}
        expected = {str(number): f"As {coding}" for number, coding in enumerate(codings)}
        self.assertEqual({name: title for name, title in titles.items() if title}, expected)
        for number in range(len(codings)):
            hits = home.run("search", f"bird{number}").records
            self.assertEqual([hit["url"] for hit in hits if "url" in hit], [f"http://old.test/{number}"])

    def test_damaged_records_are_named_and_the_others_kept(self):
        home = self.place(held=True)
        parts = [gzip.compress(one) for one in SITE]
        where = len(parts[0]) + len(parts[1])
        parts[2] = parts[2][:-12] + bytes(4) + parts[2][-8:]
        done = self.imported(home, "broken.warc.gz", b"".join(parts) + b"the end is no record", 2, FAILED_WORK)
        defects = [one["path"] for one in done.records if one["type"] == "Defect"]
        self.assertIn(f"{home.path}/broken.warc.gz at {where}", defects)
        urls = self.rows(home, "select url from holdfast.v_capture order by 1")
        self.assertEqual(urls, [f"http://old.test/{name}" for name in ("", "a.css", "gone", "second")])

    def test_what_is_cut_is_used_as_far_as_it_goes(self):
        """Files of every form, whose last record ends within its own head, the head of HTTP, its body or its gzip data."""
        home = self.place(held=True)
        noise = " ".join(hashlib.sha256(b"%d" % number).hexdigest() for number in range(2000))

        def block(name):
            return page(name, "a heron " + noise)

        def warc(url, name):
            return record("response", url, "2019-05-01T10:00:00Z", block(name), 1)

        def arc(url, name):
            return f"{url} 192.0.2.1 20190501100000 text/html {len(block(name))}\n".encode() + block(name) + b"\n"

        arc_head = b"filedesc://x.arc 0.0.0.0 20210203040506 text/plain 7\n1 0 IA\n\n\n"
        expected, oddities = {}, 0
        for form in ("plain.warc", "each.warc.gz", "whole.warc.gz", "plain.arc", "each.arc.gz", "whole.arc.gz"):
            make = arc if "arc" in form.split(".") else warc
            for share in some_of((0.001, 0.003, 0.01, 0.5, 0.99, 1), 2):
                site = f"http://{form}.{share}.test/".replace("arc", "a")
                first, last = make(site, "first"), make(site + "last", "last")
                if form.startswith("each"):
                    parts = gzip.compress(arc_head) if make is arc else b"", gzip.compress(first), gzip.compress(last)
                    begin = len(parts[0]) + len(parts[1])
                    whole = b"".join(parts)
                else:
                    parts = (arc_head if make is arc else b"") + first, last
                    begin = len(parts[0])
                    whole = b"".join(parts)
                    if form.startswith("whole"):
                        begin = len(gzip.compress(parts[0]))
                        whole = gzip.compress(whole)
                cut = whole[: begin + int((len(whole) - begin) * share) - 5]
                readable = cut
                if form.endswith("gz"):
                    readable, rest = b"", cut
                    while rest:
                        member = zlib.decompressobj(31)
                        readable += member.decompress(rest) + member.flush()
                        rest = member.unused_data
                head, _, body = readable.rpartition(b"HTTP/1.1 200 OK\r\n")[2].partition(b"\r\n\r\n")
                name = f"{share}.{form}"
                done = home.run("import", "warc", self.file(home, name, cut))
                oddities += 1
                with self.subTest(name):
                    self.assertEqual(done.code, 1, str(done))
                    self.assertIn(f"{home.path / name} at ", done.out)
                    rows = self.rows(
                        home, f"select url || '|' || outcome from holdfast.v_snapshot where source = 'warc:{name}'"
                    )
                    self.assertIn(f"{site}|succeeded", rows)
                    if readable.count(b"HTTP/1.1 200 OK") == 2 and b"heron" in body:
                        whole = form != "each.warc.gz" and b"</body>" in body
                        self.assertIn(f"{site}last|{'succeeded' if whole else 'partial'}", rows)
                        expected[site + "last"] = body.rpartition(b" ")[0].split()[-1].decode()
        self.assertGreater(len(expected), 18 if FULL else 8)
        for url, word in expected.items():
            with self.subTest(url):
                texts = [hit["url"] for hit in home.run("search", word, "--limit", "100").records if "url" in hit]
                self.assertIn(url, texts)
        self.assertEqual(home.run("verify", "--all").code, 0)
        self.assertEqual(home.run("export", "--all", "-o", home.path / "all.wacz").code, 0)
        again = self.place(held=True)
        self.assertEqual(again.run("import", "warc", home.path / "all.wacz").code, 0)

    def test_a_wacz_file_has_its_own_list_of_pages(self):
        home = self.place(held=True)
        date = "2020-06-02T11:00:00Z"
        lines = [
            {"format": "json-pages-1.0", "id": "pages"},
            {"url": "http://old.test/second", "ts": date, "title": "Listed", "text": "a curlew calls"},
            {"url": "javascript:alert(1)", "ts": date},
            {"url": "http://old.test/", "ts": "long ago"},
        ]
        body = "\n".join(map(json.dumps, lines)) + "\n[}\n"
        entries = {"crawl/archive/data.warc.gz": members(*SITE), "crawl/pages/pages.jsonl": body}
        done = self.imported(home, "x.wacz", wacz(entries), 2, FAILED_WORK)
        told = " ".join(one["detail"] for one in done.records if one["type"] == "Defect")
        for word in ("line 5 is not JSON", "long ago", "javascript"):
            self.assertIn(word, told)
        second, first = home.run("list", "snapshots").records
        self.assertEqual((second["title"], first["started_at"][:10]), ("Listed", "2019-05-01"))
        self.assertEqual(len(self.rows(home, "select url from holdfast.v_capture")), 4)
        self.assertTrue(home.run("search", "curlew").records)

    def shared(self, home):
        """The URLs of each page's captures, as "page|capture", without the site."""
        query = "select s.url, c.url from v_capture c join v_snapshot s on s.id = c.snapshot_id order by 1, 2"
        return [one.replace("http://old.test/", "") for one in self.rows(home, query)]

    def test_records_of_pages_that_loaded_at_once_name_their_page(self):
        home, site = self.place(held=True), "http://old.test/"
        named = {name: (f"WARC-Page-ID: id-{name}",) for name in ("one", "two")}
        parts = (  # in the order in which they arrived; .png: one that another page loads under this name, too
            ("two.css", "two", "00.300", http(b"p { color: red }", "text/css")),
            ("one", "one", "00.100", page("One", "words")),
            ("frame", "one", "00.150", page("A frame", "words")),
            ("two", "two", "00.200", page("Two", "words")),
            ("one.css", "one", "00.900", http(b"p { color: red }", "text/css")),
            ("frame", "frame", "09.000", page("The frame as a page", "words")),
        )
        named["frame"] = ("WARC-Page-ID: id-frame",)
        records = [
            record("response", site + name, f"2024-01-01T00:00:{second}Z", block, number, more=named[of])
            for number, (name, of, second, block) in enumerate(parts)
        ]
        made = (
            ("urn:text:{}two", "01", "text/plain"),
            ("urn:fullPage:{}one", "02", "image/png"),
            ("urn:pageinfo:{}frame", "10", "application/json"),
            ("urn:text:{}one", "20", "text/plain"),
            ("urn:fullPage:{}one", "30", "image/png"),  # of the second time that the page was archived
        )
        made = [
            record("resource", name.format(site), f"2024-01-01T00:00:{second}.500Z", PIXEL, 50 + number, kind)
            for number, (name, second, kind) in enumerate(made)
        ]
        again = record("response", site + "one", "2024-01-01T00:00:29.000Z", page("One", "again"), 90)
        dates = {"one": "00.100", "two": "00.200", "frame": "09.000"}
        files = {
            "archive/rec.warc.gz": members(*records, again),
            "archive/screenshots.warc.gz": members(*made),
            "pages/pages.jsonl": page_list((site + "one", "2024-01-01T00:00:00.100Z", "id-one")),
            "pages/extraPages.jsonl": page_list(
                *((site + name, f"2024-01-01T00:00:{dates[name]}Z", f"id-{name}") for name in ("two", "frame")),
                (site + "one", "2024-01-01T00:00:29.000Z", "id-again"),
            ),
        }
        query = "select s.title, c.url from v_capture c join v_snapshot s on s.id = c.snapshot_id order by 1, 2"
        expected = (
            "again|one again|urn:fullPage:one frame|frame frame|urn:pageinfo:frame one|frame one|one one|one.css "
            "one|urn:fullPage:one one|urn:text:one two|two two|two.css two|urn:text:two"
        ).split()
        path = self.file(home, "btx.wacz", wacz(files))
        for place in (home, self.place(held=True)):  # the second takes what the first exports: other ids
            done = place.run("import", "warc", path)
            self.assertEqual((done.code, done.records[-1]["imported"]), (0, 4), str(done))
            rows = [one.replace(site, "").replace("id-", "") for one in self.rows(place, query)]
            self.assertEqual(rows, expected)
            path = home.path / "again.wacz"
            self.assertEqual(place.run("export", "--all", "-o", path).code, 0)

    def test_more_warc_files_than_a_process_may_open(self):
        home = self.place(held=True)
        entries = {
            f"archive/data-{number}.warc.gz": members(
                record("response", f"https://many.test/{number}", "2024-01-01T00:00:00Z", page("t", "w"), number)
            )
            for number in range(1500)
        }
        plain = record("response", "https://many.test/plain", "2024-01-01T00:00:00Z", page("plain", "w"), 2000)
        entries |= {"archive/a.warc": plain, "archive/b.warc.gz": gzip.compress(plain)}
        path = self.file(home, "many.wacz", wacz(entries))
        limited = ("sh", "-c", 'ulimit -n 256 && exec "$@"', "sh")  # also the hard limit
        done = home.run("import", "warc", "--dry-run", path, prefix=limited)
        self.assertEqual((done.code, done.records[-1]["found"]), (0, 1502), str(done))

    def test_wacz_files_that_are_elsewhere_are_named(self):
        about = json.dumps({"profile": "multi-wacz-package", "resources": [{"path": "https://example.org/a.wacz"}]})
        home = self.place(held=True)
        done = home.run("import", "warc", self.file(home, "several.wacz", wacz({"datapackage.json": about.encode()})))
        self.assertNotEqual(done.code, 0)
        self.assertIn("https://example.org/a.wacz", done.err)
        self.assertIn("download these files", done.err)

    def test_fractions_of_a_second_tell_pages_apart(self):
        parts = (("one", "00.100"), ("one.css", "00.200"), ("two.css", "00.700"), ("two", "00.600"))
        records = [
            record("response", f"http://old.test/{name}", f"2024-01-01T00:00:{second}Z", page(name, "words"), number)
            for number, (name, second) in enumerate(parts)
        ]
        listed = [(f"http://old.test/{name}", f"2024-01-01T00:00:{second}Z", "") for name, second in parts]
        pages = page_list(listed[0], listed[3])
        for name, more in (("all", ()), ("not all", (record("warcinfo", "", "2024-01-01T00:00:00Z", b"", 9),))):
            with self.subTest(name):
                home = self.place(held=True)
                files = {"archive/a.warc.gz": members(*more, *records), "pages/pages.jsonl": pages}
                self.imported(home, "a.wacz", wacz(files))
                # Whole seconds say nothing here: what stands before the document of the second is of the first.
                owner = "two" if name == "all" else "one"
                self.assertEqual(
                    sorted(self.shared(home)), sorted(["one|one", "one|one.css", f"{owner}|two.css", "two|two"])
                )

    def test_a_revisit_record_may_refer_to_another_url(self):
        home, site, date = self.place(held=True), "http://old.test/", "2024-01-01T00:00:0{}Z"
        digest = f"WARC-Payload-Digest: sha256:{hashlib.sha256(PIXEL).hexdigest()}"
        first = (site + "a.png", date.format(1))
        records = [
            record("response", site + "one", date.format(0), page("One", "words"), 1),
            record("response", *first, http(PIXEL, "image/png"), 2, more=(digest,)),
            record("response", site + "two", date.format(4), page("Two", "words"), 3),
            revisit(site + "b.png", date.format(5), first, 4, PIXEL),
        ]
        self.imported(home, "two.warc.gz", members(*records))
        self.assertEqual(self.shared(home), ["one|a.png", "one|one", "two|b.png", "two|two"])
        refers = "select url, refers_to from v_capture where mime = 'warc/revisit'"
        self.assertEqual(self.rows(home, refers), [f"{site}b.png|test,old)/a.png"])
        self.check_whole(home)
        ids = {one["url"]: one["id"] for one in home.run("list", "snapshots").records}
        home.holdfast("export", ids[site + "two"], "-o", home.path / "two.wacz")
        with zipfile.ZipFile(home.path / "two.wacz") as archive:
            held = b"".join(gzip.decompress(archive.read(one)) for one in archive.namelist() if "/originals-" in one)
        self.assertIn(PIXEL, held)
        self.assertEqual(home.run("remove", "--yes", ids[site + "one"]).code, 0)
        self.assertEqual(self.shared(home), ["two|b.png", "two|two"])
        kept = "select count(*) from v_capture where file like 'kept/%' and url like '%/a.png'"
        self.assertEqual(self.rows(home, kept), ["1"])
        self.check_whole(home)
        other = self.place(held=True)
        self.assertEqual(other.run("import", "warc", home.path / "two.wacz").code, 0)
        self.check_whole(other)
        self.assertEqual(home.run("remove", "--yes", ids[site + "two"]).code, 0)
        self.assertEqual(self.rows(home, "select count(*) from v_capture"), ["0"])
        # Without its original, the record is told.
        self.imported(home, "alone.warc.gz", members(*records[2:]))
        told = home.run("verify", "--all")
        self.assertEqual([one["kind"] for one in told.records if one["type"] == "Defect"], ["no original"], str(told))

    def test_a_page_whose_payload_is_in_another_file(self):
        """The title, the text and the payload come from there, whichever file is read first."""
        url, other = "http://old.test/page", "http://old.test/other?a=1"
        whole = page("Kept elsewhere", "a bittern booms")
        digest = (
            "WARC-Payload-Digest: sha1:" + base64.b32encode(hashlib.sha1(whole.split(b"\r\n\r\n")[1]).digest()).decode()
        )
        first = record("response", url, "2024-01-01T00:00:00Z", whole, 1, more=(digest,))
        # Of the same URL, with another body: not what the revisit means.
        decoy = record("response", url, "2024-03-01T00:00:00Z", page("Another", "nothing"), 2)
        head = http(b"", "text/html")
        again = record("revisit", url, "2024-02-01T00:00:00Z", head, 3, more=(digest,))
        refers = (f"WARC-Refers-To-Target-URI: {url}", "WARC-Refers-To-Date: 2024-01-01T00:00:00Z", digest)
        moved = record("revisit", other, "2024-02-02T00:00:00Z", head, 4, more=refers)
        listed = page_list((url, "2024-02-01T00:00:00Z", ""), (other, "2024-02-02T00:00:00Z", ""))
        places = {
            "first": [["first.warc.gz", "again.warc.gz"]],
            "last": [["again.warc.gz", "first.warc.gz"]],
            "earlier": [["first.warc.gz"], ["again.warc.gz"]],
            "plain": [["again.warc", "first.warc"]],
            "both ways": [["again.wacz", "first.wacz"]],
        }
        records = {"first": [first], "again": [decoy, again, moved]}
        for name, runs in places.items():
            with self.subTest(name):
                home = self.place(held=True)
                for files in runs:
                    paths = []
                    for file in files:
                        stem, _, kind = file.partition(".")
                        held = records[stem]
                        body = b"".join(held) if kind == "warc" else members(*held)
                        if kind == "wacz":
                            pages = listed.replace('"title": ""', '"x": ""') if stem == "again" else ""
                            body = wacz({"archive/a.warc.gz": body, "pages/pages.jsonl": pages})
                        paths.append(self.file(home, file, body))
                    home.holdfast("import", "warc", *paths)
                titles = {(one["url"], one["title"]) for one in home.run("list", "snapshots").records}
                self.assertLessEqual({(url, "Kept elsewhere"), (other, "Kept elsewhere")}, titles)
                found = {one["url"] for one in home.run("search", "bittern").records if "url" in one}
                self.assertLessEqual({url, other}, found)
                self.check_whole(home)
                ids = [one["id"] for one in home.run("list", "snapshots").records if one["url"] == other]
                self.assertEqual(home.run("export", *ids, "-o", home.path / "out.wacz").code, 0)
                with zipfile.ZipFile(home.path / "out.wacz") as archive:
                    held = b"".join(
                        gzip.decompress(archive.read(one)) for one in archive.namelist() if one.endswith(".warc.gz")
                    )
                self.assertIn(b"a bittern booms", held)

    def test_a_page_is_exported_with_what_its_browser_had_in_the_cache(self):
        site, date = "http://old.test/", "2024-01-01T00:00:0{}Z"
        style = b"p { color: red }"
        noted = json.dumps({"urls": {site + name: {"status": 200} for name in ("two", "a.css", "none.css")}}).encode()
        records = [
            record("response", site + "one", date.format(0), page("One", "words"), 1),
            record("response", site + "a.css", date.format(1), http(style, "text/css"), 2),
            record("response", site + "b.css", date.format(1), http(style + b" ", "text/css"), 3),
            record("response", site + "two", date.format(4), page("Two", "words"), 4),
            record("resource", f"urn:pageinfo:{site}two", date.format(5), noted, 5, "application/json"),
            record("resource", f"urn:pageinfo:{site}two", date.format(6), b"[", 6, "application/json"),
        ]
        for name, taken in (("noted", records[:5]), ("damaged", (*records[:4], records[5]))):
            with self.subTest(name):
                home = self.place(held=True)
                self.imported(home, name + ".warc.gz", members(*taken), 2)
                crawl = home.run("list", "crawls").records[0]["id"]
                two = home.run("list", "snapshots", "--crawl", crawl, "--url", "two").records[0]["id"]
                for chosen, extra in ((two, ["a.css"] if name == "noted" else []), (crawl, [])):
                    home.holdfast("export", chosen, "--format", "warc", "-o", home.path / chosen)
                    lines = (home.path / chosen / "index.cdxj").read_text().splitlines()
                    captures = [json.loads(line.split(" ", 2)[2]) for line in lines]
                    added = [one["url"] for one in captures if one["filename"].startswith("originals-")]
                    self.assertEqual(added, [site + name for name in extra])

    def check_whole(self, home):
        home.holdfast("verify", "--all")
        self.assertEqual(self.rows(home, "select * from holdfast.check_invariants()"), [])

    def many(self, home, count):
        """A file with so many pages."""
        site, date = "http://old.test/{}", "2020-01-01T00:{:02}:00Z"
        pages = (
            record("response", site.format(n), date.format(n), page(f"Page {n}", "words"), n) for n in range(count)
        )
        return self.file(home, "many.warc.gz", members(*pages))

    def test_an_import_that_is_killed_is_completed_by_the_next(self):
        home = self.place(held=True)
        path = self.many(home, 50)
        importing = home.start("import", "warc", path)
        until("some pages are there", lambda: len(home.attempts()) >= 3, 60)
        importing.kill()
        importing.communicate()
        done = home.holdfast("import", "warc", path)
        told = done.records[-1]
        self.assertEqual(told["imported"] + told["known"], 50, told)
        self.assertEqual(self.rows(home, "select count(*), count(distinct url) from holdfast.v_capture"), ["50|50"])
        self.check_whole(home)

    def test_exports_that_cannot_be_finished_leave_nothing_and_say_why(self):
        home = self.place(held=True)
        self.assertEqual(home.run("import", "warc", self.many(home, 5)).code, 0)
        for kind in ("wacz", "files"):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run(
                    home.command("export", "--all", "--format", kind, "-o", "-"),
                    env=home.environment,
                    cwd=home.path,
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    timeout=60,
                )
            self.assertEqual(done.returncode, 73, done.stderr)
            self.assertIn("No space left on device", done.stderr)
        real, link, pipe = (home.path / name for name in ("real.wacz", "link.wacz", "pipe"))
        real.touch()
        link.symlink_to(real)
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            for output in (link, pipe):
                self.assertEqual(home.run("export", "--all", "-o", output).code, 0)
            read = reader.stdout.read()
        self.assertTrue(link.is_symlink() and pipe.is_fifo(), "neither is replaced")
        for content in (real.read_bytes(), read):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                self.assertIsNone(archive.testzip())
        lost = next(home.data.glob("archive/2*/*/*/*/a*/warc/*.warc.gz"))
        lost.unlink()
        done = home.holdfast("export", "--all", "-o", "all.wacz", expect=1)
        self.assertIn(str(lost.relative_to(home.data / "archive")), done.err)
        self.assertIn("1 files are missing", done.err)
        with zipfile.ZipFile(home.path / "all.wacz") as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(sum(name.startswith("archive/") for name in archive.namelist()), 4)
            described = json.loads(archive.read("datapackage.json"))["resources"]
            self.assertEqual(
                {one["path"] for one in described} | {"datapackage.json", "datapackage-digest.json"},
                set(archive.namelist()),
            )
        self.assertFalse(list(home.path.glob("*.partial")))

    def test_hostile_files_end_in_clear_errors(self):
        home = self.place(held=True)
        home.run("status")
        one = SITE[0]
        whole = members(one)
        outside = home.path.parent / "evil.warc.gz"
        zeros = bytes(200 << 20)
        of_length = lambda length: record("response", "http://x.test/", "2020-01-01T00:00:00Z", b"x", 1, length=length)
        cases = {
            "empty.warc": (b"", "no page"),
            "text.warc.gz": (b"this is no archive at all, but text", "no page"),
            "short.warc.gz": (whole[: len(whole) // 4], "no page"),
            "bomb.warc.gz": (gzip.compress(one + zeros + zeros), "expands more|longer than its Content-Length"),
            "huge.warc": (of_length(2**63), "no page"),
            "wrap.warc.gz": (gzip.compress(of_length(2**64 - 1)), "no page"),
            "minus.warc": (of_length(-1), "no page"),
            "long.warc": (of_length(1 << 39), "ends after 5 of"),
            "head.warc": (b"WARC/1.1\r\n" + b"A: " + b"b" * (1 << 20), "no page"),
            "not.wacz": (b"PK\3\4 and nothing more", "no WARC file"),
            "none.wacz": (wacz({"readme": b"x"}), "no WARC file"),
            "up.wacz": (wacz({"../evil.warc.gz": whole, "archive/../../evil.warc.gz": whole}), "no WARC file"),
            "bomb.wacz": (wacz({"archive/a.warc": zeros}, zipfile.ZIP_DEFLATED), "unpacks to more"),
            "cut.wacz": (wacz({"archive/a.warc.gz": whole})[:200], "no page|WACZ"),
        }
        for name, (body, expected) in cases.items():
            with self.subTest(name):
                done = home.run("import", "warc", self.file(home, name, body))
                self.assertNotIn(done.code, (0, 70), str(done))
                self.assertRegex(done.err + done.out, expected)
                self.assertIn(name, done.err + done.out)
        self.assertFalse(outside.exists())
        self.assertFalse(list(home.path.rglob("evil*")))
        home.holdfast("import", "warc", home.path / "none.warc", expect=64)

    def test_a_file_without_pages_does_not_end_the_import(self):
        home = self.place(held=True)
        body = b"a picture"
        digest = "WARC-Payload-Digest: sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
        refers = ("http://old.test/p.png", "2019-05-01T10:00:01Z")
        files = {
            "revisit.warc": revisit("http://old.test/again.png", "2021-01-01T00:00:00Z", refers, 9, body),
            "empty.warc": b"",
            "info.warc": record(
                "warcinfo", "", "2019-05-01T10:00:00Z", b"software: x\r\n", 8, "application/warc-fields"
            ),
            "text.warc.gz": b"no archive",
            "bad.wacz": b"PK\3\4 and nothing more",
            "good.warc.gz": members(*SITE),
            "last.warc.gz": members(
                record("response", refers[0], refers[1], http(body, "image/png"), 1, more=[digest]),
            ),
        }
        paths = [self.file(home, name, content) for name, content in files.items()]
        done = home.run("import", "warc", *paths)
        self.assertEqual(done.code, FAILED_WORK, str(done))
        bad = {one["path"].rpartition("/")[2] for one in done.records if one["type"] == "Defect"}
        self.assertEqual(
            bad, {"empty.warc", "info.warc", "text.warc.gz", "bad.wacz"} | {bad for bad in bad if " at " in bad}
        )
        self.assertEqual(done.records[-1]["imported"], 4, str(done))
        home.holdfast("import", "warc", paths[1], expect=64)

    def test_digests_are_compared_and_what_differs_is_told(self):
        whole = page("A title", "a heron")
        body = whole.partition(b"\r\n\r\n")[2]
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        chunked = http(chunks, "text/html", more="Transfer-Encoding: chunked\r\n")

        def named(algorithm, content, code=lambda digest: digest.hex()):
            return algorithm + ":" + code(hashlib.new(algorithm.replace("-", ""), content).digest())

        def base32(digest):
            return base64.b32encode(digest).decode()

        payload, block = "WARC-Payload-Digest", "WARC-Block-Digest"
        cases = [
            (whole, payload, named("sha1", body, base32), True),
            (whole, payload, named("sha1", body), True),
            (whole, payload, named("sha1", body).upper().replace("SHA1", "SHA1"), True),
            (whole, payload, named("sha-256", body), True),
            (whole, payload, named("sha256", body, base32), True),
            (whole, payload, named("md5", body), True),
            (whole, payload, "blake9:00", True),
            (whole, payload, named("sha1", body + b" ", base32), False),
            (whole, payload, named("sha256", whole), False),
            (whole, block, named("sha1", whole, base32), True),
            (whole, block, named("sha512", body), False),
            (chunked, payload, named("sha1", body, base32), True),
            (chunked, payload, named("sha1", chunks, base32), True),
            (chunked, payload, named("sha1", chunked, base32), False),
        ]
        records, expected = [], []
        for number, (content, header, digest, same) in enumerate(cases):
            url = f"http://digest.test/{number}"
            if not same:
                expected.append((header, sum(map(len, records))))
            records.append(
                record("response", url, "2020-01-01T00:00:00Z", content, number, more=[f"{header}: {digest}"])
            )
        for pack in (lambda one: one, gzip.compress):
            home = self.place(held=True)
            packed = [pack(one) for one in records]
            offset = {sum(map(len, records[:number])): sum(map(len, packed[:number])) for number in range(len(records))}
            done = self.imported(home, "digests.warc", b"".join(packed), len(records), FAILED_WORK)
            told = [(one["path"].rpartition(" ")[2], one["detail"]) for one in done.records if one["type"] == "Defect"]
            self.assertEqual(told, [(str(offset[at]), f"{header} is of other bytes") for header, at in expected])

    def test_a_page_is_partial_only_if_its_record_is(self):
        cases = {
            "cut": ("response", "WARC-Truncated: length", "partial"),
            "segment": ("response", "WARC-Segment-Number: 1", "partial"),
            "revisit": ("revisit", "WARC-Truncated: length", "succeeded"),  # as Heritrix and wpull have it
        }
        records = [
            record(kind, f"http://{name}.test/", "2019-05-01T10:00:00Z", page(name, "x"), number, more=[more])
            for number, (name, (kind, more, _)) in enumerate(cases.items())
        ]
        home = self.place(held=True)
        self.imported(home, "cut.warc.gz", members(*records))
        found = self.rows(home, "select host, outcome from holdfast.v_snapshot")
        self.assertEqual(set(found), {f"{name}.test|{outcome}" for name, (_, _, outcome) in cases.items()})

    def test_odd_files_are_read_and_the_oddity_is_told(self):
        """One page each, with its title and text, whatever program wrote the file."""
        url, date = "http://odd.test/", "2021-02-03T04:05:06Z"
        whole = page("A title", "cormorant words")
        body = whole.partition(b"\r\n\r\n")[2]
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

        def coded(bytes_, more):
            return members(record("response", url, date, http(bytes_, "text/html", more=more), 1))

        def one(**options):
            return record("response", url, options.pop("date", date), whole, 1, **options)

        digest = "WARC-Payload-Digest: sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
        original = record(
            "response", "http://other.test/", "2020-01-01T00:00:00Z", http(body, "image/png"), 2, more=[digest]
        )
        revisit = record("revisit", url, date, http(b"", "text/html"), 3, more=[digest])
        headless = record("revisit", url, date, b"", 3, more=[digest])
        arc = (
            b"filedesc://x.arc 0.0.0.0 20210203040506 text/plain 7\n1 0 IA\n\n\n"
            + f"{url} 192.0.2.1 20210203040506 text/html {len(whole)}\n".encode()
            + whole
            + b"\n"
        )
        listed = {"archive/a.warc.gz": members(one())}

        def with_pages(**fields):
            lines = [{"format": "json-pages-1.0", "id": "pages"}, {"url": url, **fields}]
            return wacz({**listed, "pages/pages.jsonl": "\n".join(map(json.dumps, lines)) + "\n"})

        cases = {
            "chunked-kept.warc.gz": (coded(body, "Transfer-Encoding: chunked\r\n"), ""),
            "chunked.warc.gz": (coded(chunked, "Transfer-Encoding: Chunked\r\n"), ""),
            "gzip-kept.warc.gz": (coded(body, "Content-Encoding: gzip\r\n"), ""),
            "br-kept.warc.gz": (coded(body, "Content-Encoding: br\r\n"), ""),
            "gzip-end.warc.gz": (coded(gzip.compress(body)[:-8], "Content-Encoding: gzip\r\n"), ""),
            "gzip-cut.warc.gz": (coded(gzip.compress(body)[:-12], "Content-Encoding: gzip\r\n"), ""),
            "deflate-cut.warc.gz": (coded(zlib.compress(body)[:-6], "Content-Encoding: deflate\r\n"), ""),
            "odd-coding.warc.gz": (coded(body, "Content-Encoding: utf-8\r\n"), ""),
            "both-kept.warc.gz": (coded(body, "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n"), ""),
            "gzip-unsaid.warc.gz": (coded(gzip.compress(body), ""), ""),
            "gzip-says-br.warc.gz": (coded(gzip.compress(body), "Content-Encoding: br\r\n"), ""),
            "short.warc.gz": (members(one(length=len(whole) - 1)), "at 0: is longer than its Content-Length"),
            "long.warc.gz": (members(one(length=len(whole) + 9)), 'at 0","detail":"ends after'),
            "minute.warc": (one(date="2021-02-03T04:05Z"), ""),
            "day.warc": (one(date="2021-02-03"), ""),
            "zone.warc": (one(date="2021-02-03T05:05:06+01:00"), ""),
            "revisit.warc.gz": (members(original, revisit), ""),
            "whole.warc.gz": (gzip.compress(original + revisit), ""),
            "whole.warc.xz": (lzma.compress(one()), ""),
            "old.arc": (arc, ""),
            "old.arc.gz": (gzip.compress(arc[:66]) + gzip.compress(arc[66:]), ""),
            "no-ts.wacz": (with_pages(), ""),
            "number.wacz": (with_pages(ts=1612325106000), ""),
            "soon.wacz": (with_pages(ts="soon"), 'has no time: \\"soon\\"'),
            "mac.wacz": (wacz({**listed, "__MACOSX/archive/._a.warc.gz": b"\0\5\x16\7"}), ""),
            "several.wacz": (wacz({"one.wacz": wacz(listed), "datapackage.json": "{}"}), ""),
        }
        home = self.place(held=True)
        for name, (content, oddity) in cases.items():
            with self.subTest(name):
                done = self.imported(home, name, content, code=FAILED_WORK if oddity else OK)
                self.assertIn(oddity, done.out)
                found = self.rows(
                    home,
                    "select s.url || '|' || replace(s.title, ' ', '_') || '|' || to_char(s.started_at at time zone 'UTC', 'YYYY-MM-DD')"
                    f" from holdfast.v_snapshot s where s.source = 'warc:{name}'",
                )
                self.assertEqual([row for row in found if row.startswith(url)], [f"{url}|A_title|2021-02-03"])
        texts = [path.read_text() for path in home.data.glob("archive/**/text/content.txt")]
        self.assertEqual(sum("cormorant words" in text for text in texts), len(cases))
        text = record("response", url + "t", date, http(b"cormorant words", "text/plain"), 1)
        home.run("import", "warc", self.file(home, "text.warc.gz", members(text)))
        self.assertIn(url + "t", home.run("search", "cormorant", "--json").out)
        self.imported(home, "bare.warc.gz", members(headless))


if __name__ == "__main__":
    unittest.main()
