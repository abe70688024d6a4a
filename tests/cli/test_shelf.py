"""Shelves: sets of pages by hand and by a rule, and the links that share them."""

import concurrent.futures
import shutil
from pathlib import Path

from harness.case import OK, REFUSED, USAGE, Case
from harness.web import Handler, LocalSite

PLUGINS = Path(__file__).resolve().parents[2] / "deploy" / "plugins"


class Pages(Handler):
    def do_GET(self):
        name = self.path.strip("/")
        self.send_page(f"<title>Page {name}</title><h1>Page {name}</h1><p>The solar wind of {name}.</p>")


class Shelves(Case):
    def setUp(self):
        self.home = self.place(held=True)
        for plugin in ("wget", "text", "title"):
            shutil.copytree(PLUGINS / plugin, self.home.plugins / plugin)
        self.site = LocalSite(Pages)
        self.addCleanup(self.site.close)

    def add(self, *names, tag="-"):
        self.home.holdfast("add", "--tag", tag, *(f"{self.site.url}/{name}" for name in names))
        rows = self.home.run("list", "snapshots", "--limit", "1000", "--json").records
        newest = {row["url"].rsplit("/", 1)[1]: row["id"] for row in reversed(rows)}
        return [newest[name] for name in names]

    def shelf(self, *words):
        done = self.home.run("shelf", *words, "--json")
        self.assertEqual(done.code, OK, str(done))
        return done.records

    def on(self, name):
        """The names of the pages on a shelf, in its order."""
        return "".join(row["url"].rsplit("/", 1)[1] for row in self.shelf("show", name)[1:])

    def refused(self, *words, says, code=REFUSED):
        self.check_error(self.home.run(*words), code, *says)

    def test_by_hand_in_any_order(self):
        a, b, c, d = self.add("a", "b", "c", "d")
        self.assertEqual(self.shelf("put", "read", c, a)[0]["pages"], 2)
        self.assertEqual(self.on("read"), "ca")
        self.assertFalse(self.shelf("put", "read", a, c)[0]["changed"], "what is there stays where it is")
        self.shelf("put", "read", d, b, "--place", "first")
        self.assertEqual(self.on("read"), "dbca")
        self.shelf("put", "read", a, "--place", f"before {b}")
        self.assertEqual(self.on("read"), "dabc")
        self.shelf("put", "read", d, a, "--place", f"after {b}")
        self.assertEqual(self.on("read"), "bdac")
        self.shelf("put", "read", b, "--place", "last")
        self.assertEqual(self.on("read"), "dacb")
        for turn in range(40):  # between the same two, again and again
            self.shelf("put", "read", (d, b)[turn % 2], "--place", f"after {a}")
        self.assertEqual(self.on("read"), "abdc")
        self.assertTrue(self.shelf("take", "read", a)[0]["changed"])
        self.assertFalse(self.shelf("take", "read", a)[0]["changed"])
        self.assertEqual(self.on("read"), "bdc")
        self.home.holdfast("remove", "--yes", d)
        self.assertEqual(self.on("read"), "bc", "a removed page is on no shelf")
        crawl = self.home.run("list", "crawls", "--json").records[0]["id"]
        self.shelf("put", "all of it", crawl)
        self.assertEqual(sorted(self.on("all of it")), ["a", "b", "c"])
        self.home.holdfast("remove", "--yes", crawl)
        self.assertEqual(self.on("all of it") + self.on("read"), "")
        self.assertEqual(self.home.holdfast("check").code, OK)

    def test_two_people_who_edit_one_shelf_lose_nothing(self):
        names = [chr(ord("a") + at) for at in range(12)]
        ids = self.add(*names)
        self.shelf("put", "ours", ids[0])
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            places = ("first", "last", f"after {ids[0]}")
            done = [
                pool.submit(self.shelf, "put", "ours", one, "--place", places[at % 3]) for at, one in enumerate(ids[1:])
            ]
            self.assertTrue(all(one.result()[0]["changed"] for one in done))
        self.assertEqual(sorted(self.on("ours")), names)
        seen = self.home.run("list", "shelves", "--json").records[0]["version"]
        self.shelf("edit", "ours", "--description", "What we read", "--version", str(seen))
        self.refused(
            *("shelf", "edit", "ours", "--description", "Mine", "--version", str(seen)), says=["was changed by", "hint"]
        )
        self.assertEqual(self.shelf("show", "ours")[0]["description"], "What we read")

    def test_a_rule_stays_live(self):
        first = self.add("a", "b", tag="news")
        self.shelf("add", "news", "--tag", "news")
        self.shelf("add", "wind", "--words", '"solar wind"', "--host", "127.0.0.1")
        self.shelf("add", "a's", "--url", "/a", "--captures", "all")
        self.shelf("add", "later", "--since", "2999-01-01")
        self.assertEqual([self.on(one) for one in ("news", "wind", "a's", "later")], ["ba", "ba", "a", ""])
        self.add("c")
        again = self.add("a", tag="news")
        self.assertNotEqual(again[0], first[0])
        self.assertEqual([self.on(one) for one in ("news", "wind", "a's")], ["ab", "acb", "aa"], "each page once")
        self.assertEqual(self.shelf("show", "news")[1]["id"], again[0], "the newest capture of it")
        self.refused("shelf", "put", "news", again[0], says=["is filled by a rule"])
        self.shelf("edit", "a's", "--url", "-", "--captures", "newest", "--tag", "news")
        self.assertEqual(self.on("a's"), "ab")
        self.shelf("edit", "news", "--tag", "-")
        self.shelf("put", "news", first[1])
        self.assertEqual(self.on("news"), "b", "without a rule, by hand")
        self.refused("shelf", "edit", "news", "--tag", "news", says=["by hand"])

    def test_what_is_on_a_shelf_or_shared_is_kept(self):
        for _ in range(5):
            self.home.holdfast("add", "--full", f"{self.site.url}/a")
        rule = """select snapshot_id from holdfast.unchanged_spare('{"after": 0, "every": 0}')"""

        def spare():
            return self.home.holdfast("psql", "--role", "owner", "-Atqc", rule).out.split()

        first, *_, last = spare()
        self.assertNotEqual(first, last)
        self.shelf("put", "kept", first)
        self.assertEqual(first in spare(), False)
        shared = self.home.run("share", "add", last, "--json").records[0]
        self.assertRegex(shared["link"], r"^http://127\.0\.0\.1:\d+/share/[0-9a-f]{64}/$")
        self.assertEqual(last in spare(), False)
        self.home.holdfast("share", "revoke", shared["id"])
        self.shelf("take", "kept", first)
        self.assertEqual([first in spare(), last in spare()], [True, True])
        self.refused("share", "revoke", "ffffffff", says=["there is no link"])
        self.refused("share", "add", says=["one thing to share"], code=USAGE)
        self.refused("share", "add", "--shelf", "never", says=["there is no shelf"])
        self.refused("share", "add", "https://never.example/", says=["nothing is archived"])
        self.refused("share", "add", last, "--expires", "6000d", says=["cannot expire after"])

    def test_what_cannot_be_is_said(self):
        (a,) = self.add("a")
        self.shelf("put", "  \u202eمرحبا 🎉/x ", a)
        self.assertEqual(self.home.run("list", "shelves", "--json").records[0]["name"], "\u202eمرحبا 🎉/x")
        self.refused("shelf", "show", "nowhere", says=['there is no shelf "nowhere"', "holdfast shelf list"])
        self.refused("shelf", "put", "read", "ffffffff", says=["nothing is called"])
        self.refused("shelf", "put", "two\nlines", a, says=["invalid name"])
        self.refused("shelf", "add", "bad", "--since", "yesterday week", says=["invalid rule", "yesterday week"])
        self.refused("shelf", "add", "bad", "--crawl", "7f3a", says=["invalid rule", "7f3a"])
        self.refused("shelf", "add", "bad", "--words", "!", says=["no word to search for"])
        self.refused("shelf", "add", "x" * 201, says=["too long"], code=USAGE)
        self.refused("shelf", "put", "read", a, "--place", "upstairs", says=["not a place", "upstairs"])
        self.assertEqual([row["pages"] for row in self.home.run("list", "shelves", "--json").records], [1])
        self.shelf("add", "empty")
        self.refused("shelf", "add", "empty", says=["there is already a shelf"])
        self.refused("shelf", "edit", "empty", "--cover", a, says=["is not on shelf"])
        self.refused("shelf", "edit", "empty", "--cover", "x", says=["not a snapshot"])
