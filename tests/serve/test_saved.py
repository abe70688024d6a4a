"""Pages saved in one's own browser: MHTML of Chromium and UnMHT, HTML of SingleFile, on the command line and uploaded."""

import base64
import json
import re
import unittest
import urllib.error
import urllib.parse
import urllib.request

import chromium
from harness.case import FAILED_WORK, OK, USAGE, Case
from harness.web import LocalSite
from test_still import Site, picture

PIXEL = picture(40, 30)
# As SingleFile 1.22 writes it: unquoted attributes, frames as srcdoc, everything else as data.
SINGLE_FILE = """<!DOCTYPE html> <html lang=en><!--
 Page saved with SingleFile 
 url: https://saved.example.test/article?id=7#part 
 saved date: Sat Nov 28 2026 09:00:00 GMT+0100 (Central European Standard Time)
--><head><meta charset=utf-8><title>A saved heron</title>
<meta http-equiv=content-security-policy content="default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'">
<style>p{color:rgb(1,2,3)} svg > path{fill:red} .q{background:url('data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>')}</style>
<link rel=canonical href=https://saved.example.test/article></head><body>
<p class=q>The heron waits in the reeds.</p><img id=plain src=data:image/png;base64,%s>
<svg id=drawn viewBox="0 0 9 9"><path d=M0,0L9,9 /><path id=second d=M9,0L0,9 /></svg>
<iframe id=inner srcdoc='&lt;p id=deep&gt;inside&lt;script&gt;top.ran=1&lt;/script&gt;' sandbox></iframe>
<div><template shadowrootmode=open><b>shadow</b></template></div><a id=next href=/next>next</a>
<img id=bad src=x onerror=window.ran=1><script>window.ran=1</script></body></html>"""
SINGLE_FILE = (SINGLE_FILE % base64.b64encode(PIXEL).decode()).encode()

BOUNDARY = "----=_Part_2D_1B"


def mhtml(*parts, url="http://un.example.test/page.html", date="Mon, 02 Mar 2015 10:00:00 +0100", end=True, more=""):
    head = f"From: <Saved by UnMHT>\r\nSubject: =?utf-8?Q?x?=\r\nDate: {date}\r\nMIME-Version: 1.0\r\n{more}"
    head += (
        f'Content-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="{BOUNDARY}"\r\n\r\nfor old readers\r\n'
    )
    pieces = [head.encode()]
    for place, kind, coding, body in parts:
        place = place or url
        pieces += [
            f"--{BOUNDARY}\r\nContent-Type: {kind}\r\nContent-Transfer-Encoding: {coding}\r\n".encode(),
            (place if ": " in place else f"Content-Location: {place}").encode(),
            b"\r\n\r\n",
            body,
            b"\r\n",
        ]
    return b"".join(pieces) + (f"--{BOUNDARY}--\r\n".encode() if end else b"")


UNMHT = mhtml(
    (None, "text/html; charset=windows-1252", "quoted-printable",
     b"<title>Caf=E9</title><img id=3Dplain src=3D\"a.png\"><img id=3Dby src=3D\"cid:p2@x\">=\r\n<p>un oiseau =E9gar=E9"),
    ("http://un.example.test/a.png", "image/png", "base64", base64.encodebytes(PIXEL)),
    ("Content-ID: <p2@x>", "image/png", "base64", base64.encodebytes(PIXEL)),
)  # fmt: skip


def form(**fields):
    """multipart/form-data, as the fetch of a browser sends it."""
    body = b""
    for name, value in fields.items():
        of_file = '; filename="page.html"\r\nContent-Type: text/html' if isinstance(value, bytes) else ""
        body += f'------Form7\r\nContent-Disposition: form-data; name="{name}"{of_file}\r\n\r\n'.encode()
        body += (value if isinstance(value, bytes) else value.encode()) + b"\r\n"
    return body + b"------Form7--\r\n", "multipart/form-data; boundary=----Form7"


class Saved(Case):
    def rows(self, place):
        return place.run("list", "snapshots", "--json").records

    def imported(self, place, name, body, *more, code=OK):
        path = place.path / name
        path.write_bytes(body)
        done = place.run("import", "page", path, *more)
        self.assertEqual(done.code, code, str(done))
        return done

    def serve(self, place, **settings):
        env = {"HOLDFAST_SERVE_LISTEN": "127.0.0.1:0", **settings}
        process = place.start("serve", env=env)

        def end():
            process.terminate()
            place.finish(process)

        self.addCleanup(end)
        return process.stdout.readline().split()[1]

    def send(self, url, body, kind, token="", **headers):
        headers |= {"Content-Type": kind, "Accept": "application/json"}
        if token:
            headers["Authorization"] = "Bearer " + token
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def still(self, front, snapshot):
        page = urllib.request.urlopen(front + "page/" + snapshot).read().decode()
        return re.search(r'<iframe class="still-page"[^>]* src="([^"]+)"', page).group(1)

    def browser(self):
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        return browser

    def check_whole(self, place):
        self.assertEqual(place.run("verify", "--all").code, OK)
        self.assertEqual(place.holdfast("psql", "-Atc", "select * from holdfast.check_invariants()").out.strip(), "")

    def test_a_page_of_singlefile_is_a_snapshot_of_its_url_and_time(self):
        place = self.place(held=True)
        self.imported(place, "heron.html", SINGLE_FILE)
        (row,) = self.rows(place)
        self.assertEqual(
            (row["url"], row["title"], row["outcome"], row["source"]),
            ("https://saved.example.test/article?id=7", "A saved heron", "succeeded", "browser:heron.html"),
        )
        self.assertIn("2026-11-28T08:00:00", row["sealed_at"])
        hits = place.run("search", "reeds").records
        self.assertEqual([hit["url"] for hit in hits if "url" in hit], [row["url"]])
        again = place.run("import", "page", place.path / "heron.html").records[-1]
        self.assertEqual((again["imported"], again["known"]), (0, 1))
        # A newer save of the same page, and another page of the day: no new crawl for the second.
        self.imported(place, "later.html", SINGLE_FILE.replace(b"09:00:00", b"10:00:00"))
        self.imported(place, "other.html", SINGLE_FILE.replace(b"/article", b"/other"))
        crawls = place.run("list", "crawls", "--json").records
        self.assertEqual(sorted(len([r for r in self.rows(place) if r["crawl_id"] == c["id"]]) for c in crawls), [1, 2])
        self.assertIn("Saved in a browser, 2026-11-28", [crawl["label"] for crawl in crawls])
        self.check_whole(place)
        place.holdfast("export", "--all", "-o", place.path / "out.wacz")
        other = self.place(held=True)
        self.assertEqual(other.lines("import", "warc", place.path / "out.wacz")[-1]["imported"], 3)

    @unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
    def test_it_is_shown_as_it_stood_and_runs_nothing(self):
        place = self.place(held=True)
        self.imported(place, "heron.html", SINGLE_FILE)
        self.imported(place, "un.mhtml", UNMHT)
        front = self.serve(place)
        ids = {urllib.parse.urlsplit(row["url"]).hostname.split(".")[0]: row["id"] for row in self.rows(place)}
        browser = self.browser()
        browser.open(self.still(front, ids["saved"]))
        self.assertEqual(
            browser.value(
                "[plain.naturalWidth, getComputedStyle(document.querySelector('p')).color, second.parentNode.id,"
                " document.compatMode, document.scripts.length, window.ran, next.href, document.title]"
            ),
            [40, "rgb(1, 2, 3)", "drawn", "CSS1Compat", 0, None, "https://saved.example.test/next", "A saved heron"],
        )
        self.assertTrue(any("frame-1.html" in url for url in browser.requests))
        browser.open(self.still(front, ids["un"]))
        self.assertEqual(
            browser.value("[plain.naturalWidth, by.naturalWidth, document.querySelector('p').textContent]"),
            [40, 40, "un oiseau égaré"],
        )

    @unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
    def test_what_chromium_saves_is_shown_as_it_stood(self):
        site = LocalSite(Site)
        self.addCleanup(site.close)
        browser = self.browser()
        browser.open(site.url + "/")
        saved = browser.ask("Page.captureSnapshot", format="mhtml")["data"].encode()
        place = self.place(held=True)
        self.imported(place, "everything.mhtml", saved)
        (row,) = self.rows(place)
        self.assertEqual((row["url"], row["title"], row["outcome"]), (site.url + "/", "Everything", "succeeded"))
        front = self.serve(place)
        del browser.requests[:]
        browser.open(self.still(front, row["id"]))
        shown = browser.value("['plain', 'sourced', 'moved'].map(id => document.getElementById(id).naturalWidth)")
        self.assertEqual(shown, [40] * 3)
        self.assertEqual(browser.value("host.shadowRoot.querySelector('b').textContent"), "shadow")
        colours = "['inserted', 'imported'].map(n => getComputedStyle(document.querySelector('.' + n)).color)"
        self.assertEqual(browser.value(colours), ["rgb(1, 2, 3)", "rgb(10, 20, 30)"])
        self.assertTrue(any("frame-1.html" in url for url in browser.requests))
        self.assertEqual([url for url in browser.requests if site.url in url], [], "nothing is asked of the site")
        place.holdfast("export", "--all", "--format", "files", "-o", place.path / "files")
        browser.open((place.path / "files/index.html").as_uri())
        browser.open(browser.value("[...document.links].map(a => a.href).find(a => a.includes('as-it-was'))"))
        self.assertEqual(
            [browser.value("plain.naturalWidth"), browser.value(colours)], [40, ["rgb(1, 2, 3)", "rgb(10, 20, 30)"]]
        )
        self.check_whole(place)

    def test_hostile_files_cost_what_they_weigh(self):
        place = self.place(held=True)
        document = (None, "text/html", "8bit", b"<title>Root</title>")
        nested = b"".join(
            f"Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n".encode() for n in range(1000)
        )
        many = [(f"http://un.example.test/{n}.png", "image/png", "8bit", b"x") for n in range(25_000)]
        cases = {  # name: (file, exit code, words)
            "parts": (mhtml(document, *many), FAILED_WORK, "more than 20000 parts"),
            "nested": (mhtml(document, (None, "multipart/mixed; boundary=b0", "8bit", b"--b0\r\n" + nested)), FAILED_WORK, "parts"),
            "endless": (mhtml(document, end=False), FAILED_WORK, "it has no end"),
            "header": (mhtml(document, more="X-Long: " + "a" * (1 << 20) + "\r\n"), USAGE, "no page"),
            "headers": (mhtml(("X-Long: " + "a" * (1 << 20), "text/html", "8bit", b"<title>Root</title>"), document), USAGE, "--url"),
            "marks": (mhtml(document) + b"\n--" * 3_000_000, OK, ""),
            "lines": (mhtml((None, "text/html", "quoted-printable", b"=  " * 3_000_000 + b"<title>Root</title>")), OK, ""),
            "none": (mhtml(("http://a.test/", "image/png", "8bit", b"x")), USAGE, "no document"),
            "local": (mhtml(("file:///c:/x.html", "text/html", "8bit", b"x"), url="file:///c:/x.html"), USAGE, "no web page"),
            "dated": (mhtml(document, date="yesterday"), FAILED_WORK, "yesterday"),
            "styles": (mhtml((None, "text/html", "8bit", b"<style>" + b"/*<url(" * 1_000_000)), OK, ""),
            "frames": (mhtml((None, "text/html", "8bit", b"<iframe src=''></iframe>" * 100_000)), OK, ""),
        }  # fmt: skip
        for name, (body, code, words) in cases.items():
            with self.subTest(name):
                path = place.path / f"{name}.mhtml"
                path.write_bytes(body)
                done = place.run("import", "page", path, prefix=("prlimit", "--cpu=60", "--as=2147483648"))
                self.assertEqual(done.code, code, f"{name}: {str(done)[:2000]}")
                self.assertIn(words, str(done))
        outcomes = {row["source"]: row["outcome"] for row in self.rows(place)}
        self.assertEqual(outcomes["browser:endless.mhtml"], "partial")
        self.check_whole(place)

    def test_directories_and_pages_without_an_address(self):
        place = self.place(held=True)
        inside = place.path / "saved/deep"
        inside.mkdir(parents=True)
        (inside / "a.html").write_bytes(SINGLE_FILE)
        (inside / "b.mht").write_bytes(UNMHT)
        (inside / "notes.txt").write_text("see http://un.example.test/")
        (inside / "loop").symlink_to(inside)
        self.assertEqual(place.lines("import", "page", place.path / "saved")[-1]["imported"], 2)
        plain = place.path / "plain.html"
        plain.write_bytes(b"<!doctype html><title>Plain</title><p>words")
        self.check_error(place.run("import", "page", plain), USAGE, "--url")
        self.assertEqual(place.lines("import", "page", plain, "--url", "https://plain.test/")[-1]["imported"], 1)
        (place.path / "none").mkdir()
        self.check_error(place.run("import", "page", place.path / "none"), USAGE, "holds no saved page")

    def test_singlefile_sends_to_the_api(self):
        place = self.place(held=True)
        token = place.run("token", "add", "phone", "--role", "operator").records[0]["token"]
        reads = place.run("token", "add", "reads", "--role", "reader").records[0]["token"]
        front = self.serve(place)
        url = front + "api/v1/pages"
        body, kind = form(file=SINGLE_FILE, url="https://saved.example.test/article?id=7")
        self.assertEqual(self.send(url, body, kind)[0], 403)
        self.assertEqual(self.send(url, body, kind, reads)[0], 403)
        status, told = self.send(url, body, kind, token, Origin="chrome-extension://abc")
        self.assertEqual((status, told["added"], told["url"]), (201, True, "https://saved.example.test/article?id=7"))
        self.assertEqual(self.send(url, body, kind, token)[0], 200)
        by = place.holdfast("psql", "-Atc", "select created_by, label from holdfast.v_crawl").out.strip()
        self.assertEqual(by, "token phone|Saved in a browser, 2026-11-28")
        # Without SingleFile's comment, the address of the form counts.
        bare, kind = form(file=b"<!doctype html><title>Bare</title>words", url="https://bare.test/")
        status, told = self.send(url, bare, kind, token)
        self.assertEqual((status, told["url"]), (201, "https://bare.test/"))
        given = json.dumps({"file": base64.b64encode(UNMHT).decode()}).encode()
        self.assertEqual(self.send(url, given, "application/json", token)[0], 201)
        for wrong in (form(url="https://x.test/"), form(file=b"\x89PNG"), form(file=b"<p>x", url="javascript:1")):
            status, told = self.send(url, *wrong, token)
            self.assertEqual(status, 400, told)
        self.assertEqual(self.send(url, b"x" * (200 << 20), "multipart/form-data; boundary=x", token)[0], 413)
        self.assertEqual(len(self.rows(place)), 3)
        self.check_whole(place)

    @unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
    def test_a_file_dropped_on_the_form_becomes_a_page(self):
        place = self.place(held=True)
        place.holdfast("token", "add", "me", "--role", "operator")
        front = self.serve(place, HOLDFAST_SERVE_GUEST="operator")
        path = place.path / "heron.html"
        path.write_bytes(SINGLE_FILE)
        browser = self.browser()
        browser.open(front + "add")
        node = browser.ask("Runtime.evaluate", expression="document.querySelector('input[type=file]')")["result"]
        browser.ask("DOM.setFileInputFiles", files=[str(path)], objectId=node["objectId"])
        browser.click("form.add button")
        self.assertIn("/snapshot/", browser.value("location.pathname"))
        self.assertIn("A saved heron", browser.value("document.body.innerText"))
        self.assertEqual(browser.complaints, [])
        self.assertEqual([row["url"] for row in self.rows(place)], ["https://saved.example.test/article?id=7"])
