"""Sample files of other programs, as their packages have them, record by record against what warcio and pywb read."""

import collections
import json
import os
import re
import subprocess
import tarfile
import unittest
from pathlib import Path

from harness.case import FAILED_WORK, OK, PROGRAM, Case

from harness.environment import REPLAY, python_with

SAMPLES = Path(os.environ.get("HOLDFAST_SAMPLES", Path(PROGRAM or "/").parents[1] / "samples"))
TOOLS = Path(os.environ.get("HOLDFAST_TEST_TOOLS", Path(PROGRAM or "/").parents[1] / "replay-tools"))
PACKAGES = {"pywb-2.10.0": "sample_archive/warcs", "Warcat-2.2.5": "example"}
# Lines "FILE all" or "FILE OFFSET": what warcio reads there, a JSON array for each record. The payload of a revisit
# record is that of the record it repeats, if the same lines have that.
READ = r"""
import hashlib, html, json, re, sys
from warcio.archiveiterator import ArchiveIterator

bodies, records = {}, []
for line in sys.stdin:
    name, _, offset = line.rstrip("\n").rpartition(" ")
    with open(name, "rb") as file:
        file.seek(0 if offset == "all" else int(offset))
        for record in ArchiveIterator(file, arc2warc=True):
            head, fields, kind = record.http_headers, record.rec_headers, record.rec_type
            if kind in ("response", "revisit", "resource"):
                mime = (head or fields).get_header("Content-Type") or ""
                digest, body = fields.get_header("WARC-Payload-Digest"), record.content_stream().read()
                if kind != "revisit":
                    bodies[digest] = body
                about = [kind, fields.get_header("WARC-Target-URI"), fields.get_header("WARC-Date")[:19]]
                records.append([*about, head.get_statuscode() if head else "", mime, digest, body])
            if offset != "all":
                break
for record in records:
    body = bodies.get(record[5], b"") if record[0] == "revisit" else record.pop()
    title = re.search(rb"<title[^>]*>(.*?)</title>", body, re.S | re.I)
    title = " ".join(html.unescape(title[1].decode()).split()) if title else ""
    print(json.dumps([*record[:6], hashlib.sha1(body).hexdigest(), title]))
"""


def samples():
    """The sample files, and the programs of pywb, which has warcio; fetched once."""
    pip = python_with(TOOLS, *REPLAY) / "pip"
    done = SAMPLES / ("with-" + "-".join(PACKAGES))
    if not done.exists():
        for package in PACKAGES:
            words = ["--quiet", "download", "--no-deps", "--no-binary", ":all:", "--dest", SAMPLES]
            subprocess.run([pip, *words, package.replace("-", "==")], check=True, timeout=600)
            with tarfile.open(SAMPLES / f"{package}.tar.gz") as archive:
                archive.extractall(SAMPLES)
        done.touch()
    return [path for name, place in PACKAGES.items() for path in sorted((SAMPLES / name / place).glob("*arc*"))]


class Samples(Case):
    def read(self, lines):
        done = subprocess.run(
            [TOOLS / "bin/python", "-c", READ],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def rows(self, home, query):
        done = home.holdfast("psql", "-Atc", query)
        return [json.loads(line) for line in done.out.splitlines()]

    def test_records_and_pages(self):
        paths, home, titled, compared = samples(), self.place(held=True), 0, 0
        # Read by no other program, or made wrong on purpose: see below.
        odd = ("bad.arc", "c1_warcinfo.warc", "example-bad.warc.gz.bad", "example-url-agnostic-revisit.warc.gz")
        for path in paths:
            if path.name in odd:
                continue
            with self.subTest(path.name):
                done = home.run("import", "warc", path)
                self.assertIn(done.code, (OK, FAILED_WORK), str(done))
                of_file = f"join holdfast.v_snapshot s on s.id = c.snapshot_id where s.source = 'warc:{path.name}'"
                captures = self.rows(
                    home,
                    "select json_build_array(c.file, c.record_offset, c.url_key, c.mime, coalesce(c.status, 0), c.digest,"
                    f" c.url, to_char(c.at at time zone 'UTC', 'YYYYMMDDHH24MISS')) from holdfast.v_capture c {of_file}",
                )
                whole = self.read([f"{path} all"])
                kept = self.read([f"{home.data}/archive/{file} {offset}" for file, offset, *_ in captures])
                count = collections.Counter(map(json.dumps, whole))
                self.assertEqual(collections.Counter(map(json.dumps, kept)), count, "warcio: type, status, payload")
                compared += len(whole)
                self.compare_with_pywb(path, captures)
                titled += self.compare_pages(home, path, whole)
        self.assertGreaterEqual(compared, 200)
        self.assertGreaterEqual(titled, 25)
        texts = [path.read_text() for path in home.data.glob("archive/**/text/content.txt")]
        self.assertGreaterEqual(len(texts), 25, "pages whose headers say chunked have their text")

    def compare_with_pywb(self, path, captures):
        """The index. pywb calls a method GETX and a head HTTPX/1.1 what they should be, spells __wb_method otherwise,
        folds the case of URLs that are none of HTTP, and gives no status to a revisit record."""
        done = subprocess.run(
            [TOOLS / "bin/cdx-indexer", "-j", path], check=True, capture_output=True, text=True, timeout=120
        )
        theirs, ours = collections.Counter(), collections.Counter()
        for line in done.stdout.splitlines():
            key, at, record = line.split(" ", 2)
            record = json.loads(record)
            revisit = record["mime"] == "warc/revisit"
            theirs[key, at, record["mime"], 0 if revisit else int(record.get("status", 0)), record["digest"]] += 1
        for _, _, key, mime, status, digest, url, at in captures:
            ours[key, at, mime, 0 if mime == "warc/revisit" else status, digest.removeprefix("sha1:")] += 1
        differs = {one[0] for one in (ours - theirs) + (theirs - ours)}
        allowed = {"example-extra.warc": "com,example)/?", "post-test.warc.gz": "org,httpbin)/post"}
        plain = {key for key in differs if not key.startswith(allowed.get(path.name, ("metadata:", "urn:")))}
        plain = {key for key in plain if not key.startswith("org,gnu)/software/wget/warc/")}
        self.assertEqual(plain, set(), "pywb: key, time, type, status, digest")

    def compare_pages(self, home, path, whole):
        rows = self.rows(
            home,
            "select json_build_array(url, to_char(started_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS'), coalesce(title,"
            f" '')) from holdfast.v_snapshot where source = 'warc:{path.name}'",
        )
        expected = {
            # As a URL of a page is written: a path, and nothing behind the host but that.
            (re.sub(r"^(https?://[^/?]+)(?=[?]|$)", r"\1/", url), date, title)
            for kind, url, date, status, mime, _, _, title in whole
            if kind in ("response", "revisit") and status < "300" and "html" in mime
        }
        if expected:
            self.assertEqual({tuple(row) for row in rows}, expected)
        return sum(bool(title) for _, _, title in expected)

    def test_what_cannot_be_used_is_named(self):
        paths = {path.name: path for path in samples()}
        home = self.place(held=True)
        for name, words in (
            ("bad.arc", "no ARC record begins here"),
            ("example-url-agnostic-revisit.warc.gz", "user name"),
            ("c1_warcinfo.warc", "no page"),
            ("example-bad.warc.gz.bad", '"imported":2'),
        ):
            with self.subTest(name):
                done = home.run("import", "warc", paths[name])
                self.assertIn(words, done.out + done.err)
                if "imported" not in words:
                    self.assertIn(name, done.out + done.err)


if __name__ == "__main__":
    unittest.main()
