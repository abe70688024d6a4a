"""The page as it stood: what the browser showed at the capture is shown again, from the records of its snapshot,
without scripts and without a request to anybody else."""

import json
import re
import struct
import unittest
import urllib.error
import urllib.parse
import urllib.request
import zlib

import chromium
from harness.web import Handler
from served import Served


def picture(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x10\x80\xf0" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PAGE = """<!doctype html><html lang=en><title>Everything</title><link rel=stylesheet href=look.css><style id=live></style>
<h1>Everything</h1><img id=plain src=/plain.png>
<img id=chosen srcset="/small.png 100w, /large.png 400w" sizes=200px><picture><source srcset=/source.png media="(min-width: 300px)">
<img id=sourced src=/none.png></picture><img id=moved src=/moved.png>
<p class=inserted>rule</p><p class=adopted>sheet</p><p class=imported>import</p><div class=ground>.</div>
<form action=http://elsewhere.invalid/><input id=typed><input type=password id=secret><textarea id=area></textarea>
<select id=pick><option>one<option>two</select><input type=checkbox id=box></form><canvas id=drawn width=60 height=60></canvas>
<div id=host></div><iframe src=/inner.html></iframe><noscript><p>without scripts</p></noscript>
<a id=link href="javascript:window.ran=1">link</a><img id=bad src=x onerror="window.ran=1">
<video id=film src=/film.webm></video><link rel=preconnect href=http://elsewhere.invalid/>
<script>
live.sheet.insertRule('.inserted{color:rgb(1,2,3)}');
const sheet = new CSSStyleSheet(); sheet.replaceSync('.adopted{color:rgb(4,5,6)}'); document.adoptedStyleSheets = [sheet];
typed.value = 'typed words'; area.value = 'area words'; secret.value = 'Seeded-Secret'; pick.selectedIndex = 1; box.checked = true;
const pen = drawn.getContext('2d'); pen.fillStyle = 'rgb(7,8,9)'; pen.fillRect(0, 0, 60, 60);
host.attachShadow({mode: 'open'}).innerHTML = '<style>b{color:rgb(9,9,9)}</style><b>shadow</b><img src=/plain.png>';
document.body.append(Object.assign(document.createElement('p'), {id: 'made', textContent: 'made by a script'}));
</script>"""
CSS = {
    "/look.css": "/* url(nowhere.png) */@import 'more.css'; .ground{background:url(deep/ground.png);width:9px}",
    "/more.css": ".imported{color:rgb(10,20,30)}",
}
FILM = bytes(range(256)) * 400


class Site(Handler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        moved = {"/moved.png": "/plain.png", "/account": "/login?next=/account"}.get(path)
        kind, body = "text/html", b"<title>None</title>none"
        if path == "/":
            body = PAGE.encode()
        elif path == "/inner.html":
            body = b"<body><p id=inner>inside</p><img src=plain.png><script>window.ran=1</script>"
        elif path == "/login":
            body = b"<title>Log in</title><form method=post><input name=user><input type=password><button>Go</button></form>"
        elif path in CSS:
            kind, body = "text/css", CSS[path].encode()
        elif path == "/script.js":
            kind, body = "text/javascript", b"window.ran = 1"
        elif path == "/film.webm":
            kind, body = "video/webm", FILM
        elif path.endswith(".png") and path != "/none.png":
            body, kind = picture(*{"/small.png": (100, 50), "/large.png": (400, 200)}.get(path, (40, 30))), "image/png"
        self.send_response(302 if moved else 200)
        if moved:
            self.send_header("Location", moved)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@unittest.skipUnless(chromium.PROGRAM, "no Chromium here")
class Still(Served):
    SITE = Site

    @classmethod
    def capture(cls):
        cls.place.run("add", "--plugins", "screenshot,dom,title", cls.web.url + "/", cls.web.url + "/account")

    @property
    def snapshots(self):
        return {urllib.parse.urlsplit(row["url"]).path: row for row in self.rows}

    def still(self, path="/"):
        """The address of the page as it stood."""
        page = urllib.request.urlopen(self.front + "page/" + self.snapshots[path]["id"]).read().decode()
        return re.search(r'<iframe class="still-page"[^>]* src="([^"]+)"', page).group(1)

    def ask(self, url, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def record(self, path, snapshot="/", **headers):
        url = urllib.parse.quote(self.web.url + path, safe="")
        return self.ask(self.still(snapshot).replace("still.html", "r/" + url), **headers)

    def test_a_page_is_shown_as_it_stood(self):
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        href = self.still()
        browser.open(href)
        sizes = "Object.fromEntries([...document.images].map(i => [i.id, [i.naturalWidth, i.getBoundingClientRect().width]]))"
        shown = browser.value(sizes)
        self.assertEqual(shown.pop("bad")[0], 0)
        expected = {"plain": [40, 40], "chosen": [200, 200], "sourced": [40, 40], "moved": [40, 40], "drawn": [60, 60]}
        self.assertEqual(shown, expected)
        colours = {
            "inserted": "rgb(1, 2, 3)",
            "adopted": "rgb(4, 5, 6)",
            "imported": "rgb(10, 20, 30)",
        }
        for name, colour in colours.items():
            self.assertEqual(browser.value(f"getComputedStyle(document.querySelector('.{name}')).color"), colour)
        self.assertEqual(
            browser.value("[typed.value, area.value, pick.value, box.checked, secret.value]"),
            ["typed words", "area words", "two", True, ""],
        )
        self.assertEqual(
            browser.value(
                "[host.shadowRoot.querySelector('img').naturalWidth, "
                "getComputedStyle(host.shadowRoot.querySelector('b')).color]"
            ),
            [40, "rgb(9, 9, 9)"],
        )
        self.assertEqual(
            browser.value("[made.textContent, document.title, document.scripts.length, frames.length, window.ran]"),
            ["made by a script", "Everything", 0, 1, None],
        )
        self.assertNotIn("without scripts", browser.value("document.body.innerText"))
        ground = browser.value("getComputedStyle(document.querySelector('.ground')).backgroundImage")
        self.assertIn("deep%2Fground.png", ground)
        origin = "http://{0.netloc}/".format(urllib.parse.urlsplit(href))
        foreign = [url for url in browser.requests if not url.startswith((origin, "data:", "about:"))]
        self.assertEqual(foreign, [], "nothing is asked of anybody else")
        self.assertTrue(any("frame-1.html" in url for url in browser.requests))

    def test_the_bar_says_what_one_sees(self):
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        browser.open(self.front + "snapshot/" + self.snapshots["/"]["id"])
        browser.click(".ways .first")
        self.assertIn("/page/", browser.value("location.pathname"))
        bar = browser.value("document.querySelector('.still-bar').innerText")
        for words in ("Everything", self.web.url, "Captured"):
            self.assertIn(words, bar)
        self.assertEqual(browser.complaints, [])

    def test_records_have_ranges_and_never_the_type_of_a_script(self):
        status, headers, body = self.record("/film.webm", Range="bytes=256-511")
        self.assertEqual((status, headers["Content-Type"], body), (206, "video/webm", FILM[256:512]))
        for path in ("/plain.png", "/look.css", "/inner.html"):
            status, headers, _ = self.record(path)
            self.assertEqual(status, 200)
            self.assertIn("script-src 'none'", headers["Content-Security-Policy"])
            self.assertIn("sandbox", headers["Content-Security-Policy"])

    def test_a_snapshot_reaches_its_own_records_alone(self):
        self.assertEqual(self.record("/plain.png", "/account")[0], 404)
        self.assertEqual(self.record("/never-asked.png")[0], 404)
        still = self.still()
        for way in ("r/", "r/..%2F..%2Fmanifest-sha256.txt", "r/file%3A%2F%2F%2Fetc%2Fpasswd", "r/%00"):
            self.assertIn(self.ask(still.replace("still.html", way))[0], (400, 404), way)

    def test_an_export_shows_it_from_the_disk(self):
        self.place.holdfast("export", "--all", "--format", "files", "-o", self.place.path / "files")
        files = self.place.path / "files"
        self.assertEqual([str(one) for one in files.rglob("on_*.sh")], [])
        browser = chromium.Chromium()
        self.addCleanup(browser.close)
        browser.open((files / "index.html").as_uri())
        href = browser.value("[...document.links].map(a => a.href).find(a => a.includes('as-it-was'))")
        browser.open(href)
        shown = browser.value("['plain', 'chosen', 'moved'].map(id => document.getElementById(id).naturalWidth)")
        self.assertEqual(shown, [40, 200, 40])
        colour = "getComputedStyle(document.querySelector('.imported')).color"
        self.assertEqual(browser.value(colour), "rgb(10, 20, 30)")
        self.assertEqual([url for url in browser.requests if not url.startswith(("file:", "data:"))], [])

    def test_passwords_are_not_kept(self):
        found = [
            path for path in self.place.data.glob("archive/2*/**/dom/*.html") if "Seeded-Secret" in path.read_text()
        ]
        self.assertEqual([path for path in found if path.name == "still.html"], [])

    def test_a_login_form_instead_of_the_page_is_told(self):
        row = self.snapshots["/account"]
        self.assertNotEqual(row["outcome"], "succeeded")
        results = self.place.run("list", "results", "--snapshot", row["id"], "--json").records
        self.assertIn("asks to sign in", json.dumps(results))


if __name__ == "__main__":
    unittest.main()
