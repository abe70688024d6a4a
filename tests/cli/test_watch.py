"""Watches: a page that changes, with the real plugins and a real site. Notices are those of test_notice.py."""

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

from harness.case import OK, PROGRAM, REFUSED, USAGE, Case
from harness.environment import python_with
from harness.wait import free_port, until
from harness.web import Handler, LocalSite

PLUGINS = Path(__file__).resolve().parents[2] / "deploy" / "plugins"
YT_DLP = Path(PROGRAM or "/").parents[1] / "yt-dlp-tools"
WORDS = " ".join(f"Sentence {name} of the article is about the harbour and its boats." for name in ("one", "two"))


class Site(LocalSite):
    """Pages by path: bodies of HTML, or (type, body), or a status."""

    def __init__(self, **pages):
        self.pages, self.requests = pages, []
        site = self

        class Pages(Handler):
            def do_GET(self):
                site.requests.append(self.path)
                page = site.pages.get(self.path.strip("/"), 404)
                status, page = (page, "<p>No page") if isinstance(page, int) else (200, page)
                kind, body = page if isinstance(page, tuple) else ("text/html; charset=utf-8", page)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

        super().__init__(Pages)

    def show(self, price, more=""):
        self.pages["page"] = (
            f"<title>Lamp</title><h1>Lamp</h1><p>{WORDS}</p>"
            f"<p>Now <span id=price>{price}</span> only</p><p class=ad>Buy {price} boats</p>{more}"
        )


class WatchCase(Case):
    def setUp(self):
        self.home = self.place(held=True)
        for plugin in ("wget", "text", "title", "outlinks"):
            shutil.copytree(PLUGINS / plugin, self.home.plugins / plugin)
        self.site = Site()
        self.addCleanup(self.site.close)

    def watch(self, *words, page="page"):
        added = self.home.run("watch", "add", f"{self.site.url}/{page}", "--json", *words)
        self.assertEqual(added.code, OK, str(added))
        self.name = added.records[0]["id"]
        return self.name

    def capture(self, name=None):
        """Captures the page of a watch; returns the sentences of its notice, none without one."""
        name = name or self.name
        before = len(self.notices(name))
        self.home.holdfast("watch", "run-now", name)
        self.assertEqual(self.home.run("run").code, OK)
        notices = self.notices(name)
        self.assertLessEqual(len(notices), before + 1)
        return notices[0]["said"] if len(notices) > before else []

    def notices(self, name):
        return self.home.lines("list", "notices", "--schedule", name, "--json")


class Watches(WatchCase):
    def test_a_number_that_passes_a_bound_is_told_once(self):
        self.site.show("1.299,00 €")
        self.watch("--when", "number in '#price' below 100 or page is gone or back", "--label", "lamp")
        self.assertEqual(self.capture(), [])
        self.assertEqual(self.home.lines("watch", "list", "--json")[0]["last"]["number"], 1299)
        self.site.show("99,50 €")
        self.assertEqual(self.capture(), ["99.5 is below 100, before 1299"])
        self.site.show("98 €", "<p>More words that nothing selects</p>")
        self.assertEqual(self.capture(), [])
        self.site.pages["page"] = "<h1>Lamp</h1><p>" + WORDS
        self.assertEqual(self.capture(), ['"#price" finds nothing on the page'])
        self.assertEqual(self.capture(), [])
        self.site.show("97 €")
        self.assertEqual(self.capture(), ['"#price" is found again'])
        del self.site.pages["page"]
        self.assertEqual(self.capture(), ["the page is gone (HTTP 404)"])
        self.assertEqual(self.capture(), [])
        self.site.show("97 €")
        self.assertEqual(self.capture(), ["the page is back"])
        self.assertIn("It runs next at", self.home.holdfast("why", "lamp").out)
        shown = self.home.holdfast("watch", "show", "lamp").out
        self.assertIn("99.5 is below 100", shown)
        self.assertIn('"every":"1h"', shown)

    def test_only_what_is_selected_and_not_ignored_counts(self):
        self.site.show("10")
        self.watch("--select", "h1, p", "--ignore", ".ad", "--ignore", "/Now .* only/")
        self.capture()
        self.site.show("11")
        self.assertEqual(self.capture(), [])
        self.site.show("12", "<p>Sold out for ever</p><div>Not selected</div>")
        self.assertEqual(self.capture(), ["text: 4 words added, 0 removed"])
        self.assertEqual(self.home.holdfast("watch", "edit", self.name, "--ignore", "-", "--select", "-").code, OK)
        self.capture()
        self.site.show("13", "<p>Sold out for ever</p><div>Not selected</div>")
        self.capture()
        self.site.show("13", "<p>Sold out for ever, and a day more</p><div>Not selected</div>")
        self.assertEqual(self.capture(), ["text: 4 words added, 0 removed"])

    def test_noise_is_shown_and_learnt_again(self):
        self.watch("--label", "lamp")

        def noise():
            return [row["text"] for row in self.home.lines("watch", "show", "lamp", "--json") if row["type"] == "Noise"]

        for clock in ("12:01:09", "12:01:17"):
            self.assertEqual(noise(), [])
            self.site.show("10", f"<p>The harbour clock says {clock} today</p>")
            self.assertEqual(self.capture(), [])
        self.assertRegex(" ".join(noise()), "^[^ ]*p: The harbour clock says( 12)?( 01)? \u2026 today$")
        self.assertIn("watch relearn lamp", self.home.holdfast("watch", "show", "lamp", "--table").out)
        self.assertIn("learns again", self.home.holdfast("watch", "relearn", "lamp", "--table").out)
        self.assertEqual(noise(), [])
        self.site.show("10", "<p>A line of words instead</p>")
        self.assertEqual(self.capture(), [])
        self.assertEqual(self.home.lines("list", "snapshots", "--json")[0]["change"], "first")
        self.site.show("10", "<p>A row of words instead</p>")
        self.assertEqual(self.capture(), [])
        self.assertIn("A \u2026 of words instead", " ".join(noise()))

    def test_words_amounts_links_and_titles(self):
        self.site.show("10")
        words = self.watch(
            "--when", "word 'sold out' appears, word \"sold out\" goes or links changes by 2 links or title changes"
        )
        amount = self.watch("--when", "text changes by 20%", "--select", "p", "--ignore", ".ad")
        for name in (words, amount) * 2:  # what the second capture has of its own counts as noise
            self.assertEqual(self.capture(name), [])
        self.site.show("10", "<p>Sold out! <a href=/a>A</a></p>")
        self.assertEqual(self.capture(words), ['"sold out" appeared'])
        self.assertEqual(self.capture(amount), [])
        self.site.show("10", "<p><a href=/a>A</a> <a href=/b>B</a> <a href=/c>C</a></p><p>" + WORDS.upper())
        self.assertEqual(self.capture(words), ['"sold out" is gone', "links: 2 added, 0 removed"])
        self.assertEqual([said.split(":")[0] for said in self.capture(amount)], ["text"])
        self.site.pages["page"] = self.site.pages["page"].replace("<title>Lamp", "<title>Lamps and boats")
        self.assertEqual(self.capture(words), ['title: "Lamp" became "Lamps and boats"'])

    def test_the_interval_adapts_between_its_bounds(self):
        self.site.show("10")
        self.watch("--every", "10m..1h", "--label", "news")
        paces = []
        for text in ("", "", "", "<p>A new line here", "<p>Another line now", "<p>Something else again"):
            self.site.show("10", text)
            self.capture()
            paces.append(self.home.lines("watch", "list", "--json")[0]["pace"])
        self.assertEqual(paces[0], "00:10:00")
        self.assertGreater(paces[2], paces[1])
        self.assertLess(paces[5], paces[2])
        self.assertIn("between 10m and 1h", self.home.holdfast("why", "news").out)

    def test_notices_and_changes_of_a_tag_are_atom_feeds(self):
        self.site.show("10")
        self.watch("--label", "Lamps & <boats>", "--tag", "shop")
        for text in ("", "", "<p>A new line</p>", "<p>Another & <b>one</b> more</p>"):
            self.site.show("10", text)
            self.capture()
        listen = f"127.0.0.1:{free_port()}"
        server = self.home.start(
            "serve", env={"HOLDFAST_SERVE_LISTEN": listen, "HOLDFAST_SERVE_FILES": f"127.0.0.1:{free_port()}"}
        )
        until("the server", lambda: self.answers(f"http://{listen}/healthz"))
        newest = self.notices(self.name)[0]
        for query, title in ((f"watch={self.name}", "Lamps & <boats>"), ("tag=shop", "Changes: shop"), ("", "Watches")):
            feed = ElementTree.fromstring(urllib.request.urlopen(f"http://{listen}/atom?{query}", timeout=60).read())
            name = "{http://www.w3.org/2005/Atom}%s"
            self.assertEqual(feed.find(name % "title").text, title)
            entries = feed.findall(name % "entry")
            self.assertEqual(len(entries), 2)
            links = [link.get("href") for link in entries[0].findall(name % "link")]
            self.assertEqual(links, [f"http://{listen}/snapshot/{newest['snapshot_id']}", f"{self.site.url}/page"])
            self.assertEqual(entries[0].find(name % "summary").text, newest["said"][0])
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://{listen}/atom?watch=none", timeout=60)
        self.assertEqual(caught.exception.code, 404)
        caught.exception.close()
        server.terminate()
        server.wait(60)

    @staticmethod
    def answers(url):
        try:
            return urllib.request.urlopen(url, timeout=10).status == 200
        except OSError:
            return False

    def feed(self, *items, kind="rss"):
        urls = [(n, f"{self.site.url}/e{n}", guid) for n, guid in items]
        if kind == "rss":
            entries = "".join(
                f"<item><title>Entry {n}</title><link>{url}</link><guid>{guid}</guid>"
                f"<category>boats</category><pubDate>Mon, 02 Nov 2026 10:0{n % 10}:00 GMT</pubDate></item>"
                for n, url, guid in urls
            )
            page = ("application/rss+xml", f"<rss><channel><title>F</title>{entries}</channel></rss>")
        elif kind == "atom":
            entries = "".join(
                f"<entry><id>{guid}</id><title>Entry {n}</title><link href='{url}'/><category term='boats'/>"
                f"<published>2026-11-02T10:0{n % 10}:00Z</published></entry>"
                for n, url, guid in urls
            )
            page = (
                "application/atom+xml",
                f"<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title>{entries}</feed>",
            )
        elif kind == "json":
            items = [
                {
                    "id": guid,
                    "url": url,
                    "title": f"Entry {n}",
                    "tags": ["boats"],
                    "date_published": f"2026-11-02T10:0{n % 10}:00Z",
                }
                for n, url, guid in urls
            ]
            version = "https://jsonfeed.org/version/1.1"
            page = ("application/feed+json", json.dumps({"version": version, "title": "F", "items": items}))
        elif kind == "m3u":
            entries = "".join(f"#EXTINF:1,Entry {n}\n{url}\n" for n, url, _ in urls)
            page = ("audio/x-mpegurl", f"#EXTM3U\n{entries}")
        elif kind == "xspf":
            entries = "".join(
                f"<track><title>Entry {n}</title><location>{url}</location></track>" for n, url, _ in urls
            )
            page = (
                "application/xspf+xml",
                f"<playlist xmlns='http://xspf.org/ns/0/'><trackList>{entries}</trackList></playlist>",
            )
        else:
            entries = "".join(
                f"<url><loc>{url}</loc><lastmod>2026-11-02T10:0{n % 10}:00Z</lastmod></url>" for n, url, _ in urls
            )
            namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
            page = ("application/xml", f"<?xml version='1.0'?><urlset xmlns='{namespace}'>{entries}</urlset>")
        self.site.pages["feed"] = page

    def entries(self):
        rows = self.home.lines("list", "snapshots", "--json", "--limit", "100")
        return {row["url"].rsplit("/", 1)[1]: row for row in rows if "/e" in row["url"]}

    def test_feeds_of_each_kind(self):
        for n in range(1, 4):
            self.site.pages[f"e{n}"] = f"<h1>Entry {n}</h1><p>{WORDS}"
        for kind in ("atom", "json", "sitemap", "m3u", "xspf"):
            with self.subTest(kind):
                self.feed((1, "a"), (2, "b"), kind=kind)
                name = self.watch(page="feed")
                self.assertEqual(self.capture(), [])
                self.assertEqual(sorted(self.entries()), ["e1", "e2"])
                self.feed((3, "x"), (1, "y"), (2, "z"), kind=kind)  # other ids
                self.assertEqual(self.capture(), ["1 new entry"])
                entry = self.entries()["e3"]
                if kind in ("atom", "json"):  # the others have neither tags nor dates
                    self.assertEqual((entry["tags"], entry["bookmarked_at"][:16]), (["boats"], "2026-11-02T10:03"))
                self.assertEqual(self.capture(), [])
                self.home.holdfast("watch", "remove", name)
                for row in self.home.lines("list", "crawls", "--json"):
                    self.home.holdfast("remove", "--yes", row["id"])

    def test_a_feed_of_100000_entries_and_one_whose_urls_are_always_new(self):
        """No more than the limit is archived at each run, and reading the feed takes bounded memory."""
        for kind in ("rss", "json"):
            with self.subTest(kind):
                self.site.pages |= {f"e{n}": f"<h1>Entry {n}</h1><p>{WORDS}" for n in range(3)}
                self.feed(*((n, n) for n in range(100_000)), kind=kind)
                name = self.watch("--max-urls", "3", page="feed")
                self.assertEqual(self.capture(), [])
                self.assertEqual(len(self.entries()), 2)
                (read,) = [
                    row
                    for row in self.home.lines("list", "results", "--json", "--limit", "100")
                    if row["url"].endswith("/feed") and row["plugin"] == "outlinks"
                ]
                self.assertEqual(read["status"], "succeeded")
                self.assertLess(read["peak_memory_bytes"], 256 << 20)
                self.home.holdfast("watch", "remove", name)
                for row in self.home.lines("list", "crawls", "--json"):
                    self.home.holdfast("remove", "--yes", row["id"])
        self.watch("--max-urls", "3", page="feed")
        for run in range(1, 4):
            self.site.pages |= {f"e{n}": f"<p>{WORDS}" for n in range(run * 1000, run * 1000 + 3)}
            self.feed(*((n, n) for n in range(run * 1000, run * 1000 + 50)))
            self.assertEqual(self.capture(), ["2 new entries"] if run > 1 else [])
            self.assertEqual(len(self.entries()), 2 * run)

    def test_entries_of_a_feed_are_archived_once(self):
        for n in range(5):
            self.site.pages[f"e{n}"] = f"<h1>Entry {n}</h1><p>{WORDS} <a href=/other>Other</a>"
        self.feed((1, "a"), (2, "b"))
        self.watch(page="feed")
        self.assertEqual(self.capture(), [])
        self.feed((3, "x"), (1, "y"), (2, "z"))
        self.site.pages["e1"] += " changed"
        self.assertEqual(self.capture(), ["1 new entry"])
        self.assertEqual(self.capture(), [])
        rows = self.home.lines("list", "snapshots", "--json", "--limit", "100")
        entries = self.entries()
        self.assertEqual(
            sorted(row["url"].rsplit("/", 1)[1] for row in rows), ["e1", "e2", "e3", "feed", "feed", "feed"]
        )
        self.assertEqual((entries["e3"]["tags"], entries["e3"]["bookmarked_at"][:16]), (["boats"], "2026-11-02T10:03"))
        self.site.pages["feed"] = ("application/rss+xml", "<rss><channel><item>")
        self.assertEqual(self.capture(), ["the feed cannot be read any more"])
        del self.site.pages["feed"]
        self.assertEqual(self.capture(), ["the page is gone (HTTP 404)"])

    def test_the_pieces_of_a_stream_are_no_feed(self):
        pieces = "".join(f"#EXTINF:3,\n{self.site.url}/e{n}\n" for n in range(3))
        self.site.pages["feed"] = ("application/vnd.apple.mpegurl", f"#EXTM3U\n#EXT-X-TARGETDURATION:3\n{pieces}")
        self.watch(page="feed")
        self.capture()
        self.assertEqual(self.entries(), {})

    def test_a_channel_that_yt_dlp_lists(self):
        """The real program, on a page with several films."""
        try:
            programs = python_with(YT_DLP, "yt-dlp")
        except (OSError, subprocess.SubprocessError):
            self.skipTest("yt-dlp cannot be installed")
        self.home.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
        shutil.copytree(PLUGINS / "playlist", self.home.plugins / "playlist")

        def films(*names):
            self.site.pages |= {f"{name}.mp4": ("video/mp4", "film " + name) for name in names}
            text = "".join(f"<video src='{name}.mp4'></video>" for name in names)
            self.site.pages["page"] = f"<title>Channel</title>{text}"

        films("ea", "eb")
        self.watch("--option", "PLAYLIST_ENABLED=true")
        self.assertEqual(self.capture(), [])
        self.assertEqual(sorted(self.entries()), ["ea.mp4", "eb.mp4"])
        films("ec", "ea", "eb")
        self.assertEqual(self.capture(), ["1 new entry"])
        self.site.pages["page"] = f"<title>Page</title><p>{WORDS}"
        self.assertEqual(self.capture(), ["the feed cannot be read any more"])

    def test_a_page_of_50_mb_is_compared_up_to_a_bound(self):
        lines = "".join(f"<p>Line {n} of {WORDS}" for n in range(400_000))
        for words in ("first", "first", "second"):
            self.site.pages["page"] = f"<title>Long</title><p>The {words} words of a long page</p>{lines}"
            if words == "first" and not self.site.requests:
                self.assertGreater(len(self.site.pages["page"]), 50_000_000)
                self.watch()
            said = self.capture()
        self.assertEqual(said, ["text: 1 word added, 1 removed"])
        for row in self.home.lines("list", "results", "--json", "--limit", "100"):
            self.assertLess(row["peak_memory_bytes"] or 0, 1 << 30, row["plugin"])

    def test_a_number_that_is_none_is_not_taken(self):
        self.home.hook("odd", "on_Snapshot__99_odd.sh", """echo '{"type":"Facts","number":"many"}'""")
        self.site.show("10")
        self.watch("--when", "number in '#price' below 100")
        self.assertEqual(self.capture(), [])
        self.assertEqual([row["facts"]["number"] for row in self.home.lines("list", "snapshots", "--json")], [10])
        self.site.show("500")
        self.capture()
        self.site.show("20")
        self.assertEqual(len(self.capture()), 1)

    def test_a_long_feed_is_caught_up_with(self):
        for n in range(1, 4):
            self.site.pages[f"e{n}"] = f"<h1>Entry {n}</h1><p>{WORDS}"
        self.feed((1, "a"), (2, "b"), (3, "c"))
        self.watch("--max-urls", "2", page="feed")
        for n in range(1, 5):
            self.capture()
            rows = [row for row in self.home.lines("list", "snapshots", "--json") if "/e" in row["url"]]
            self.assertEqual(len(rows), min(n, 3))
        self.assertEqual([row["tags"] for row in rows], [["boats"]] * 3)

    def test_conditions_that_cannot_be(self):
        url = f"{self.site.url}/page"
        for words, code, said in (
            (("--when", "text changes by 3 links"), REFUSED, "cannot be measured"),
            (("--when", "it becomes nicer"), REFUSED, 'cannot read "it becomes nicer"'),
            (("--when", "text changes and more"), REFUSED, 'cannot read "and more"'),
            (("--when", "number below 3"), REFUSED, "needs a selector"),
            (("--when", "number in '#a' below 3", "--select", "#b"), REFUSED, "one selector"),
            (("--when", "look changes by 2%", "--select", "#b"), REFUSED, "whole page only"),
            (("--select", "a:hover"), USAGE, '":" is not supported'),
            (("--ignore", "/(/"), USAGE, "not a regular expression"),
            (("--every", "1d..2h"), REFUSED, "invalid interval"),
            (("--every", "often"), REFUSED, "invalid schedule"),
            (("--notify", "nobody"), REFUSED, 'no webhook "nobody"'),
        ):
            self.check_error(self.home.run("watch", "add", url, *words), code, said)
        self.check_error(self.home.run("schedule", "add", "--every", "1h..2h", url), REFUSED, "for watches")
        self.assertEqual(self.home.lines("watch", "list", "--json"), [])
