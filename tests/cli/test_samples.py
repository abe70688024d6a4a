"""Sample files of other programs, as their packages have them, against what warcio reads in them."""

import json
import os
import re
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path

from support import FAILED_WORK, OK, PROGRAM, Case

TOOLS = Path(os.environ.get("HOLDFAST_SAMPLES", Path(PROGRAM or "/").parents[1] / "samples"))
PYWB = "pywb-2.10.0"
# What warcio reads: the HTML documents that were answered well, with their titles.
READ = r"""
import html, json, re, sys
from warcio.archiveiterator import ArchiveIterator

pages, bodies = [], {}
with open(sys.argv[1], "rb") as file:
    for record in ArchiveIterator(file, arc2warc=True):
        head, fields = record.http_headers, record.rec_headers
        if record.rec_type not in ("response", "revisit") or not head:
            continue
        digest, body = fields.get_header("WARC-Payload-Digest"), record.content_stream().read()
        body = bodies.setdefault(digest, body) if record.rec_type == "response" else bodies.get(digest, b"")
        if "html" in (head.get_header("Content-Type") or "") and head.get_statuscode() < "300":
            title = re.search(rb"<title[^>]*>(.*?)</title>", body, re.S | re.I)
            title = " ".join(html.unescape(title[1].decode()).split()) if title else ""
            pages.append([fields.get_header("WARC-Target-URI"), fields.get_header("WARC-Date")[:19], title])
print(json.dumps(pages))
"""


def samples():
    """The directory of pywb's sample archive, and a Python with warcio; made once."""
    if not (TOOLS / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", TOOLS], check=True, timeout=120)
        pip = [TOOLS / "bin/pip", "--quiet"]
        subprocess.run([*pip, "install", "warcio", "setuptools", "wheel"], check=True, timeout=600)
        source = [*pip, "download", "--no-deps", "--no-binary", ":all:", "--dest", TOOLS, PYWB.replace("-", "==")]
        subprocess.run(source, check=True, timeout=600)
        with tarfile.open(TOOLS / f"{PYWB}.tar.gz") as package:
            package.extractall(TOOLS)
        (TOOLS / "done").touch()
    return TOOLS / PYWB / "sample_archive/warcs", TOOLS / "bin/python"


class Samples(Case):
    def test_sample_archive_of_pywb(self):
        directory, python = samples()
        home = self.place(held=True)
        names = (
            "dupes.warc.gz example-extra.warc example-url-agnostic-orig.warc.gz example-wget-1-14.warc.gz"
            " example-wpull.warc.gz example.arc example.arc.gz example.warc example.warc.gz example2.warc.gz iana.warc.gz"
        ).split()
        titled = 0
        for name in names:
            with self.subTest(name):
                read = subprocess.run(
                    [python, "-c", READ, directory / name], check=True, capture_output=True, text=True, timeout=60
                )
                expected = {
                    # As a URL of a page is written: a path, and nothing behind the host but that.
                    (re.sub(r"^(https?://[^/?]+)(?=[?]|$)", r"\1/", url), date, title)
                    for url, date, title in json.loads(read.stdout)
                }
                done = home.run("import", "warc", directory / name)
                self.assertIn(done.code, (OK, FAILED_WORK), str(done))
                query = (
                    "select json_build_array(url, to_char(started_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS'),"
                    f" coalesce(title, '')) from holdfast.v_snapshot where source = 'warc:{name}'"
                )
                rows = home.run("psql", "-Atc", query).out.splitlines()
                self.assertEqual({tuple(json.loads(row)) for row in rows}, expected)
                titled += sum(bool(title) for _, _, title in expected)
        self.assertGreaterEqual(titled, 25)
        texts = [path.read_text() for path in home.data.glob("archive/**/text/content.txt")]
        self.assertGreaterEqual(len(texts), 25, "pages whose headers say chunked have their text")

    def test_what_cannot_be_used_is_named(self):
        directory, _ = samples()
        home = self.place(held=True)
        for name, words in (
            ("bad.arc", "no ARC record begins here"),
            ("example-url-agnostic-revisit.warc.gz", "user name"),
        ):
            with self.subTest(name):
                done = home.run("import", "warc", directory / name)
                self.assertIn(words, done.out + done.err)
                self.assertIn(name, done.out + done.err)


if __name__ == "__main__":
    unittest.main()
