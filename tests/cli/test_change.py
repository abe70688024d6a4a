"""Changes of pages: what the seal says of a capture, from the blocks that the text plugin leaves."""

import datetime
import json
import shutil
import subprocess
import threading
import unittest
from pathlib import Path

from harness.case import CONFIGURATION, OK, REFUSED, USAGE, Case
from harness.web import Handler, LocalSite

PLUGINS = Path(__file__).resolve().parents[2] / "deploy" / "plugins"
URL = "http://one.test/page"
ARTICLE = [f"Sentence {name} of the article is about the harbour and its boats." for name in ("one", "two", "three")]


class Changes(Case):
    def setUp(self):
        self.home = self.place(held=True)

    def serve(self, *texts, links=()):
        """What the page says from now on."""
        lines = [{"source": "file", "url": URL, "title": "Page"}]
        lines += [{"at": "main/p", "text": text, "links": list(links)} for text in texts]
        blocks = "\n".join(json.dumps(line) for line in lines)
        self.home.hook(
            "text", "on_Snapshot__56_text.sh", f"cat >blocks.jsonl <<'END'\n{blocks}\nEND\necho x >content.txt"
        )

    def capture(self):
        """Archives the page; returns the row of its snapshot."""
        done = self.home.run("add", "--wait", "--json", URL)
        self.assertEqual(done.code, OK, str(done))
        return next(record for record in done.records if record["type"] == "Snapshot")

    def test_a_capture_says_what_has_changed_since_the_last_one(self):
        self.serve(*ARTICLE, "It is 12:01:09")
        first = self.capture()
        self.assertEqual((first["change"], first["change_from"]), ("first", None))
        self.serve(*ARTICLE, "It is 12:01:17")
        learnt = self.capture()
        self.assertEqual((learnt["change"], learnt["change_from"]), ("same", first["id"]))
        self.assertTrue(learnt["facts"]["change_learnt"])
        self.serve(*ARTICLE, "It is 12:02:40", "A new line")
        changed = self.capture()
        self.assertEqual((changed["change"], changed["words_added"], changed["words_removed"]), ("text", 3, None))
        self.serve(*ARTICLE, "It is 12:03:11", "A new line", links=["http://two.test/"])
        self.assertEqual(self.capture()["change"], "links")
        listed = self.home.lines("list", "changes", "--json")
        self.assertEqual([row["change"] for row in listed], ["links", "text"])
        self.assertEqual(
            [row["id"] for row in self.home.lines("list", "changes", "--min", "5%", "--since", "1d", "--json")][-1],
            changed["id"],
        )
        self.assertEqual(self.home.lines("list", "changes", "--min", "100%", "--url", "text", "--json"), [])
        self.check_error(self.home.run("list", "changes", "--min", "much"), USAGE, "invalid share")
        words = self.home.run("diff", changed["id"], "--json").records[0]
        self.assertIn([{"added": "A new line"}], words["blocks"])
        page = self.home.run("diff", first["id"], changed["id"], "--html").out
        self.assertIn("<ins>A new line</ins>", page)

    def test_captures_at_the_same_time_find_a_change_once(self):
        self.serve(*ARTICLE)
        self.capture()
        self.serve(*ARTICLE)
        self.capture()
        self.serve(*ARTICLE, "A new line")
        for _ in range(4):
            self.home.run("add", "--bg", URL)
        self.assertEqual(self.home.run("run").code, OK)
        said = [row["change"] for row in self.home.lines("list", "snapshots", "--json")]
        self.assertEqual(sorted(said), ["first", "same", "same", "same", "same", "text"])

    def test_the_fingerprint_goes_with_the_last_snapshot(self):
        self.serve(*ARTICLE)
        one, two = self.capture(), self.capture()
        self.home.holdfast("remove", "--yes", one["crawl_id"])
        self.assertEqual(self.capture()["change"], "same")
        self.home.holdfast("remove", "--yes", two["crawl_id"])
        last = self.home.lines("list", "snapshots", "--json")
        self.home.holdfast("remove", "--yes", last[0]["crawl_id"])
        self.assertEqual(self.capture()["change"], "first")


@unittest.skipUnless(shutil.which("wget"), "needs wget")
class Kinds(Case):
    """Pages from a site, by the real hooks: what four captures of each say that follow each other at once."""

    PAGES = {
        "clock": ("<p>ただいま{}です", "20時43分05秒 20時43分52秒 21時08分30秒 21時09分11秒", "first same same same"),
        "digits": ("<p>آخر تحديث منذ {} دقائق في هذا المكان من المدينة", "٣ ٤ ٩ ٨", "first same same same"),
        "tags": (
            "<p>{}",
            [
                " ".join(f"<a href=/all/tag/{tag}>{tag}</a>" for tag in tags)
                for tags in ("abcd", "cadb", "dcba", "badc")
            ],
            "first same same same",
        ),
        "hits": (
            "<p>{} Aufrufe",
            ["Preis: 10 €<p>12.345", "Preis: 10 €<p>98.111", "Preis: 12 €<p>7.115", "Preis: 12 €<p>55.200"],
            "first same text same",
        ),
        "sold out": ("<button {}>Buy</button>", ["", "", "disabled", "disabled"], "first same text same"),
        "box": (
            "<label><input type=checkbox {}> Tested</label>",
            ["", "", "checked", "checked"],
            "first same text same",
        ),
        "struck": ("<p>Starts in {}", ["May", "May", "<del>May</del>", "<del>May</del>"], "first same text same"),
        "mail": ("<a href=mailto:{}@a.test>Write</a>", "ada ada bo bo", "first same links same"),
        "title": (
            "<title>({} of the council</title>",
            ["3) Draft", "7) Draft", "1) Decision", "9) Decision"],
            "first same title same",
        ),
    }

    def test_captures_of_each_kind(self):
        pages = self.pages = {}

        class Site(Handler):
            def do_GET(handler):
                body = pages.get(handler.path, "").encode()
                handler.send_response(200 if body else 404)
                handler.send_header("Content-Type", "text/html; charset=utf-8")
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

        site = LocalSite(Site)
        self.addCleanup(site.close)
        home = self.place(held=True)
        for plugin in ("wget", "text", "title"):
            shutil.copytree(PLUGINS / plugin, home.plugins / plugin)
        said = {name: [] for name in self.PAGES}
        paths = {f"/{number}": name for number, name in enumerate(self.PAGES)}
        for n in range(4):
            for path, name in paths.items():
                html, values, _ = self.PAGES[name]
                value = (values.split() if isinstance(values, str) else values)[n]
                pages[path] = "<p>" + "<p>".join(ARTICLE) + html.replace("{}", value) + f"<!--{n}-->"
            done = home.run("add", "--wait", "--json", *(site.url + path for path in paths))
            self.assertEqual(done.code, OK, str(done))
            for record in done.records:
                if record["type"] == "Snapshot":
                    said[paths["/" + record["url"].rsplit("/", 1)[1]]].append(record["change"])
        self.assertEqual(said, {name: kinds.split() for name, (_, _, kinds) in self.PAGES.items()})


@unittest.skipUnless(shutil.which("wget"), "needs wget")
class Unchanged(Case):
    """Recaptures of a page whose site says that its files are unchanged."""

    def setUp(self):
        asked = self.asked = []
        files = self.files = {"/": b'<title>Page</title><p>Words</p><img src="/a.png">', "/a.png": b"picture one"}
        self.tagged = True
        self.answers = threading.Event()
        self.answers.set()

        class Site(Handler):
            def do_GET(handler):
                body = files.get(handler.path)
                tag = f'"{hash(body)}"' if self.tagged and body else ""
                asked.append(handler.path)
                if handler.path == "/a.png" and asked.count("/a.png") == 1:
                    self.answers.wait(60)
                handler.send_response(404 if body is None else 200)
                if tag:
                    handler.send_header("ETag", tag)
                handler.send_header("Content-Type", "image/png" if handler.path.endswith("png") else "text/html")
                handler.send_header("Content-Length", "0" if body is None else str(len(body)))
                handler.end_headers()
                if body is not None:
                    handler.wfile.write(body)

        self.site = LocalSite(Site)
        self.addCleanup(self.site.close)
        self.url = self.site.url + "/"
        self.home = self.collection(HOOK_PORTS="80," + self.url.rsplit(":", 1)[1].strip("/"))
        self.home.fill()
        self.home.hold()
        self.home.hook(
            "save",
            "on_Snapshot__30_save.sh",
            'wget -q -p --warc-file=page --no-warc-keep-log -P files -nd $url; echo run >>"$gates/../runs"; true',
        )
        self.home.hook("text", "on_Snapshot__56_text.sh", "cat ../save/files/index.html >content.txt")

    def capture(self, *options):
        self.asked.clear()
        done = self.home.run("add", "--wait", "--json", *options, self.url)
        self.assertEqual(done.code, OK, str(done))
        return next(record for record in done.records if record["type"] == "Snapshot")

    def runs(self):
        return (self.home.path / "runs").read_text().count("run")

    def check_files(self):
        found = self.home.lines("verify", "--all")
        self.assertEqual([(row["defects"], row["leftovers"]) for row in found], [(0, 0)])
        self.assertEqual(self.home.holdfast("check").code, OK)

    def test_no_hook_runs_and_the_files_are_those_of_the_last_capture(self):
        first = self.capture()
        self.assertIn("the next capture first asks the site", self.home.holdfast("why", first["id"]).out)
        second = self.capture()
        self.assertEqual((second["change"], second["change_from"], second["files_from"]), ("same", *[first["id"]] * 2))
        self.assertEqual(self.runs(), 1)
        self.assertEqual(set(self.asked), {"/", "/a.png", "/robots.txt"})
        self.check_files()
        said = self.home.holdfast("why", second["id"]).out
        self.assertIn("no hook ran, because the site sent the same files as for " + first["id"], said)
        text = self.home.data / "archive" / second["directory"] / "text" / "content.txt"
        self.assertEqual(text.stat().st_nlink, 2)
        third = self.capture()
        self.assertEqual((third["change_from"], third["files_from"]), (second["id"], first["id"]))
        # The first goes; the others keep its files, and the records to which theirs refer.
        self.home.holdfast("remove", "--yes", first["crawl_id"])
        self.home.holdfast("run")
        self.assertFalse((self.home.data / "archive" / first["directory"]).exists())
        self.check_files()
        self.assertEqual(text.read_bytes(), self.files["/"])
        sql = f"select count(*) from holdfast.originals_of(array['{third['id']}']::uuid[])"
        self.assertEqual(self.home.holdfast("psql", "--role", "owner", "-XAtc", sql).out.strip(), "2")
        again = self.capture()
        self.assertEqual((again["change"], again["files_from"], self.runs()), ("same", None, 2))

    def lines(self):
        return self.home.lines("list", "snapshots", "--json")

    def stale(self, meanwhile):
        """Captures the page; after the site was asked and before the seal, something else happens. Returns the row."""
        self.answers.clear()
        self.asked.clear()
        waiting = self.home.start("add", "--wait", "--json", self.url, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(waiting.wait)
        self.addCleanup(self.answers.set)
        self.home.until("the site is asked for the picture", lambda: "/a.png" in self.asked)
        meanwhile()
        self.answers.set()
        out, err = waiting.communicate(timeout=120)
        self.assertEqual(waiting.returncode, OK, out + err)
        rows = [json.loads(line) for line in out.splitlines()]
        return next(row for row in rows if row["type"] == "Snapshot")

    def test_a_recapture_whose_earlier_capture_was_removed_runs_hooks(self):
        first = self.capture()
        page = self.stale(lambda: self.home.holdfast("remove", "--yes", first["crawl_id"]))
        self.assertEqual((page["outcome"], page["files_from"], self.runs()), ("succeeded", None, 2))
        self.home.holdfast("run")
        self.check_files()

    def test_a_recapture_after_which_the_page_has_changed_is_refused_at_the_seal(self):
        """It has asked the site before another capture found the change: it is not the same as that one."""
        self.home.environment["HOLDFAST_CHANGES_LEARN"] = "0"
        self.capture()

        def change():
            self.files["/"] += b"<p>More</p>"
            self.assertEqual(self.home.run("add", "--wait", "--full", self.url).code, OK)
            self.assertEqual(self.home.lines("list", "changes", "--json")[0]["change"], "text")

        first = self.lines()[0]["id"]
        page = self.stale(change)
        self.assertEqual((page["outcome"], page["change"], page["attempts"]), ("succeeded", "same", 2))
        self.assertNotEqual(page["files_from"], first)
        (changed,) = [row for row in self.lines() if row["change"] == "text"]
        self.assertEqual(page["digest"], changed["digest"], "it shows what the page is now")
        self.check_files()

    def test_what_a_page_was_at_a_time(self):
        """The last capture until then, or the first; TimeGate chooses the same one."""
        pages = [self.capture() for _ in range(3)]
        seconds = [int(datetime.datetime.fromisoformat(page["started_at"]).timestamp()) for page in pages]

        def at(time, *words):
            return [row["id"] for row in self.home.lines("list", "snapshots", "--at", time, "--json", *words)]

        for second in {*seconds, seconds[1] - 1}:
            until = [page["id"] for page, began in zip(pages, seconds) if began <= second] or [pages[0]["id"]]
            self.assertEqual(at(f"{datetime.datetime.utcfromtimestamp(second)}Z", "--url", self.url), until[-1:])
        self.assertEqual(at("2000-01-01", "--url", self.url.upper().replace("HTTP", "http")), [pages[0]["id"]])
        self.assertEqual(at("2100-01-01", "--exact-url", self.url), [pages[2]["id"]])
        self.assertEqual(at("2100-01-01", "--url", "http://nowhere.test/"), [])
        self.check_error(self.home.run("list", "snapshots", "--at", "2026-03-01"), REFUSED, "at needs a URL")

    def test_captures_without_a_change_are_removed_by_a_rule(self):
        """All but what a change refers to, and the latest; files and records that others need stay."""
        pages = [self.capture() for _ in range(3)]
        self.files["/"] += b"<p>More</p>"
        pages += [self.capture() for _ in range(3)]
        self.assertEqual([page["change"] for page in pages], ["first", "same", "same", "text", "same", "same"])
        left = [page["id"] for page in pages if page not in (pages[1], pages[4])]
        listed = lambda: [row["id"] for row in self.home.lines("list", "snapshots", "--json")][::-1]  # noqa: E731
        self.check_error(self.home.run("remove", "--unchanged"), CONFIGURATION, "no setting says which captures")
        for rule, text in (("sometimes", "is no rule"), ("1 per 0s after 1d", "has no period"), ("none after x", "x")):
            got = self.home.run("remove", "--unchanged", "--set", "archive.keep_unchanged=" + rule)
            self.check_error(got, CONFIGURATION, text)
        for rule in ("none after 0s", "1 per 3650d after 0s"):
            shown = self.home.run("remove", "--unchanged", "--set", "archive.keep_unchanged=" + rule)
            self.assertEqual(shown.code, USAGE)
            for page in pages:
                self.assertEqual(page["id"] in shown.err, page["id"] not in left, shown.err)
        self.home.holdfast("remove", "--unchanged", "--yes", "--set", "archive.keep_unchanged=1 per 1s after 1d")
        self.assertEqual(len(listed()), 6)
        sql = lambda words: self.home.holdfast("psql", "--role", "owner", "-XAtc", words).out.strip()  # noqa: E731
        before = int(sql("select holdfast.archive_bytes()::bigint"))
        sql("update holdfast.maintenance_task set every = '50 ms', next_at = now() where name = 'unchanged'")
        # One is enough to get below the limit; below the next one, nothing is.
        for limit, there in ((before - 1, [page["id"] for page in pages if page is not pages[1]]), (1, left)):
            runner = self.home.start("runner", ARCHIVE_MAX_BYTES=limit)
            runs = int(sql("select runs from holdfast.maintenance_task where name = 'unchanged'"))
            self.home.until(
                "the task has looked at all twice",
                lambda: int(sql("select runs from holdfast.maintenance_task where name = 'unchanged'")) > runs + 4,
            )
            self.assertEqual(listed(), there)
            self.assertEqual(
                "more than archive.max_bytes (1 bytes)" in self.home.holdfast("status", "--table").out, limit == 1
            )
            runner.terminate()
            self.assertEqual(runner.wait(), OK)
        # A look at all captures that begins in their middle does not say that nothing is left.
        again = [self.capture(), self.capture()]
        sql("update holdfast.counted set upto = now(), full_since = null where what = 'unchanged'")
        task = "select holdfast.maintenance_unchanged(t) from holdfast.maintenance_task t where name = 'unchanged'"
        sql("update holdfast.maintenance_task set every = '1 day', next_at = now() + '1 day' where name = 'unchanged'")
        runner = self.home.start("runner", ARCHIVE_MAX_BYTES=1)
        self.home.until("it leads", lambda: sql("select holdfast.keep_rule() ->> 'max_bytes'") == "1")
        said = [(sql(task), sql("select count(*) from holdfast.archive_full()"))]
        while len(said) < 10 and said[-1][1] == "0":
            said.append((sql(task), sql("select count(*) from holdfast.archive_full()")))
        self.assertEqual(said[-1][1], "1")
        self.assertEqual([count for count, full in said if full == "1"], ["0"])
        self.assertIn(again[1]["id"], listed())
        self.assertNotIn(again[0]["id"], listed())
        runner.terminate()
        self.assertEqual(runner.wait(), OK)
        self.assertLess(int(sql("select holdfast.archive_bytes()::bigint")), before)
        self.assertFalse((self.home.data / "archive" / pages[1]["directory"]).exists())
        self.check_files()
        self.assertEqual(self.capture()["files_from"], pages[3]["id"])

    def test_a_picture_that_changed_lets_hooks_run(self):
        self.capture()
        self.assertIsNotNone(self.capture()["files_from"])
        self.files["/a.png"] = b"picture two"
        self.assertIsNone(self.capture()["files_from"])
        self.assertEqual(self.runs(), 2)
        self.check_files()

    def test_answers_without_tags_are_compared_by_their_bytes(self):
        self.tagged = False
        self.capture()
        self.assertIsNotNone(self.capture()["files_from"])
        self.files["/"] += b"<p>More</p>"
        self.assertEqual((self.capture()["change"], self.runs()), ("text", 2))

    def test_a_full_capture_can_be_asked_for(self):
        self.capture()
        self.assertIsNone(self.capture("--full")["files_from"])
        self.assertEqual(self.runs(), 2)
        self.assertIsNone(self.capture("--option", "PAGE_TIMEOUT=77")["files_from"])

    def test_a_site_that_fails_meanwhile_is_captured_by_hooks(self):
        self.capture()
        del self.files["/a.png"]
        self.assertIsNone(self.capture()["files_from"])
        self.assertEqual(self.runs(), 2)
