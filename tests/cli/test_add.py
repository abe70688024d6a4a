"""Adding and reading, piped: JSON lines; and on a terminal: text for people."""

import json
import os
import pty
import re
import select
import shutil
import signal
import time
import unittest
from datetime import datetime, timedelta

from harness.case import FAILED_WORK, OK, REFUSED, USAGE, Case
from harness.collection import Embedded
from harness.wait import until


class Adding(Case):
    """One collection for all, since its server takes a while to come up; each test adds a crawl of its own."""

    @classmethod
    def setUpClass(cls):
        cls.home = Embedded()
        cls.home.hook(
            "title",
            "on_Snapshot__20_title.sh",
            'echo x >title.txt; echo \'{"type":"ArchiveResult","status":"succeeded","output_str":"Found"}\'',
        )
        # Keeps the server up between the tests' own commands, and does nothing else.
        cls.holder = cls.home.start("worker", env={"HOLDFAST_DISK_MINIMUM_FREE": "1000t"})
        until("the worker runs", lambda: cls.holder.poll() is None and cls.home.server_pid())

    @classmethod
    def tearDownClass(cls):
        cls.holder.terminate()
        result = cls.home.finish(cls.holder)
        try:
            assert result.code == OK, str(result)
        finally:
            cls.home.close(cls())

    def runTest(self):  # for tearDownClass
        pass

    def add(self, *arguments, **options):
        """Queued, then worked on by `run`; what `add` said, and the crawl's id."""
        result = self.home.holdfast("add", "--bg", *arguments, **options)
        self.assertEqual([record["type"] for record in result.records], ["Crawl"])
        return result.records[0]

    def work(self):
        self.home.holdfast("run")

    def records(self, *arguments):
        result = self.home.holdfast(*arguments)
        return result.records

    def test_hooks_know_the_machine_and_tag_what_they_find(self):
        self.addCleanup(shutil.rmtree, self.home.plugins / "finder")
        self.home.hook(
            "finder",
            "on_Snapshot__60_finder.sh",
            r"""echo "$MACHINE_ID" >machine.txt
                [[ $url == */source ]] || exit 0
                echo '{"type":"Snapshot","url":"https://site.test/found","title":"Found","tags":"birds"}'
                echo '{"type":"Snapshot","url":"https://site.test/plain"}'
                echo '{"url":"https://site.test/filed","tags":"old,birds"}' >urls.jsonl""",
        )
        crawl = self.add("--depth", "1", "--tag", "mine", "https://site.test/source")
        self.work()
        found = self.records("list", "snapshots", "--crawl", crawl["id"])
        kept = {s["url"].rpartition("/")[2]: s for s in found}
        tags = {"source": ["mine"], "found": ["birds", "mine"], "plain": ["mine"], "filed": ["birds", "mine", "old"]}
        self.assertEqual({name: s["tags"] for name, s in kept.items()}, tags)
        self.assertEqual(kept["found"]["title"], "Found")
        [machine] = {path.read_text() for path in self.home.data.glob("archive/*/*/*/*/a*/finder/machine.txt")}
        self.assertRegex(machine.strip(), "^[0-9a-f-]{32,36}$")

    def test_run_ends_when_only_a_paused_host_is_left(self):
        self.assertEqual(self.home.run("pause", "--host", "closed.test").code, OK)
        crawl = self.add("https://closed.test/waits", "https://open.test/goes")
        self.work()
        state = {s["url"]: s["status"] for s in self.records("list", "snapshots", "--crawl", crawl["id"])}
        self.assertEqual(state, {"https://closed.test/waits": "queued", "https://open.test/goes": "sealed"})
        self.assertEqual(self.home.run("resume", "--host", "closed.test").code, OK)
        self.work()
        self.assertEqual(self.records("list", "queue", "--crawl", crawl["id"]), [])

    def test_in_the_background_then_run(self):
        crawl = self.add("https://site.test/bg1", "https://site.test/bg2")
        self.assertEqual((crawl["status"], crawl["seeds"]), ("queued", 2))
        status = self.records("status")[0]
        self.assertEqual(status["type"], "Status")
        self.assertGreaterEqual(status["crawls_to_do"], 1)
        self.work()
        snapshots = self.records("list", "snapshots", "--crawl", crawl["id"])
        self.assertEqual(
            {(s["url"], s["status"], s["outcome"], s["title"]) for s in snapshots},
            {(f"https://site.test/bg{n}", "sealed", "succeeded", "Found") for n in (1, 2)},
        )
        self.assertEqual(self.records("status")[0]["crawls_to_do"], 0)
        shown = self.records("show", crawl["id"])
        self.assertEqual([record["type"] for record in shown], ["Crawl", "Snapshot", "Snapshot"])
        self.assertEqual((shown[0]["total"], shown[0]["succeeded"], shown[0]["open"]), (2, 2, 0))
        one = self.records("show", snapshots[0]["id"])
        self.assertEqual(sorted(record["type"] for record in one), ["ArchiveResult", "ArchiveResult", "Snapshot"])
        self.assertTrue((self.home.data / "archive" / one[0]["directory"] / "index.html").exists())
        self.assertTrue((self.home.data / "archive/crawls" / crawl["id"] / "index.html").exists())

    def test_from_a_file_with_titles_and_tags(self):
        file = self.home.path / "urls.jsonl"
        lines = [
            "# mixed",
            "https://site.test/file1",
            json.dumps({"url": "https://site.test/file2", "title": "Given <title> ä", "tags": ["one", "two"]}),
            json.dumps({"url": "https://site.test/file3", "tags": "three, four", "unknown": 1}),
            "",
        ]
        file.write_text("\r\n".join(lines), encoding="utf-8")
        crawl = self.add("--tag", "all,of-them", "--label", "From a file", "--plugins", "page", str(file))
        self.work()
        got = {s["url"]: (s["title"], sorted(s["tags"])) for s in self.records("list", "--crawl", crawl["id"])}
        self.assertEqual(
            got,
            {
                "https://site.test/file1": ("", ["all", "of-them"]),
                "https://site.test/file2": ("Given <title> ä", ["all", "of-them", "one", "two"]),
                "https://site.test/file3": ("", ["all", "four", "of-them", "three"]),
            },
        )
        self.assertEqual(self.records("show", crawl["id"])[0]["label"], "From a file")
        tagged = self.records("list", "snapshots", "--tag", "three")
        self.assertEqual([s["url"] for s in tagged], ["https://site.test/file3"])

    def test_what_is_there_is_not_added_again(self):
        urls = ["https://site.test/again/1", "https://site.test/again/2"]
        self.add(*urls)
        self.work()
        crawls = len(self.records("list", "crawls", "--limit", "1000"))
        for flag in ("--only-new", "--update"):
            with self.subTest(flag=flag):
                result = self.home.holdfast("add", flag, *urls)
                self.assertEqual(
                    [(record["type"], record["url"]) for record in result.records], [("Archived", url) for url in urls]
                )
                for record in result.records:
                    self.assertTrue(os.path.exists(record["path"]), record)
                    self.assertRegex(record["sealed_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        code, text = on_terminal(self.home, "add", "--only-new", urls[0])
        self.assertEqual(code, OK, text)
        self.assertRegex(text, r"again/1: already archived on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+, /.*index\.html")
        # No crawl was added by any of these.
        self.assertEqual(len(self.records("list", "crawls", "--limit", "1000")), crawls)
        # What an earlier command printed names the snapshots.
        self.assertEqual(
            [record["type"] for record in self.home.run("why", "-", given=result.out).records], ["Why", "Why"]
        )
        # Together with a new one, the old ones are named and the new one is added.
        mixed = self.home.run("add", "--bg", "--only-new", urls[0], "https://site.test/again/3")
        self.assertEqual([record["type"] for record in mixed.records], ["Archived", "Crawl"])
        self.work()
        self.assertEqual(
            [s["url"] for s in self.records("list", "--crawl", mixed.records[1]["id"])], ["https://site.test/again/3"]
        )
        # Too old counts as not there.
        self.assertEqual(self.add("--only-new", "--max-age", "0.001s", urls[0])["type"], "Crawl")
        self.work()

    def test_what_failed_is_tried_again(self):
        self.home.hook("page", "on_Snapshot__10_page.sh", 'echo "no" >&2; exit 1')
        try:
            crawl = self.add("--plugins", "page", "https://site.test/failed-once")
            self.work()
        finally:
            self.home.hook("page", "on_Snapshot__10_page.sh", 'echo "$url" >page.txt')
        self.assertEqual(self.records("show", crawl["id"])[0]["outcome"], "failed")
        for flag in ("--only-new", "--update"):
            again = self.add(flag, "--plugins", "page", "https://site.test/failed-once")
            self.assertEqual(again["type"], "Crawl")
            if flag == "--update":
                self.work()
            else:
                self.home.run("cancel", again["id"])
        self.assertEqual(self.records("show", again["id"])[0]["outcome"], "succeeded")

    def test_one_bad_line_costs_that_line(self):
        file = self.home.path / "mixed.txt"
        file.write_text('https://site.test/line1\nnot a url\nhttps://site.test/line3\n{"url": 5}\n')
        crawl = self.home.holdfast("add", "--bg", file)
        self.assertEqual((crawl.records[0]["seeds"], crawl.records[0]["left_out"]), (2, 2))
        for word in ("2 lines", f"{file}:2: ", f"{file}:4: ", "--strict"):
            self.assertIn(word, crawl.err)
        before = len(self.records("list", "crawls", "--limit", "1000"))
        self.check_error(self.home.run("add", "--bg", "--strict", file), REFUSED, f"{file}:2: ", "nothing was added")
        self.assertEqual(len(self.records("list", "crawls", "--limit", "1000")), before)
        self.work()

    def test_tags(self):
        crawl = self.add("https://site.test/tagged/1", "https://site.test/tagged/2", "--label", "Tagged")["id"]
        self.work()
        one = self.records("list", "--crawl", crawl, "--url", "tagged/1")[0]["id"]
        url = {"1": "https://site.test/tagged/1", "2": "https://site.test/tagged/2"}

        def found(tag):
            return sorted(s["url"] for s in self.records("list", "snapshots", "--tag", tag))

        # Of a sealed snapshot, and of a crawl, which is found by its pages too.
        self.assertTrue(self.records("edit", one, "--tag", "alone,second")[0]["changed"])
        self.assertFalse(self.records("edit", one, "--tag", "alone")[0]["changed"])
        self.assertEqual(found("alone"), [url["1"]])
        self.records("edit", crawl, "--tag", "home", "--notes", "For later")
        self.assertEqual(found("home"), [url["1"], url["2"]])
        self.assertEqual([c["id"] for c in self.records("list", "crawls", "--tag", "home")], [crawl])
        # Without options it shows them, and changes nothing.
        shown = self.records("edit", one, crawl)
        self.assertEqual(
            [(r["type"], r["kind"], r["tags"]) for r in shown],
            [("Description", "snapshot", ["alone", "home", "second"]), ("Description", "crawl", ["home"])],
        )
        self.assertEqual((shown[1]["label"], shown[1]["notes"]), ("Tagged", "For later"))
        self.assertEqual(self.records("show", one)[0]["tags"], ["alone", "home", "second"])
        code, text = on_terminal(self.home, "edit", one)
        self.assertIn("tags alone, home, second", text)
        code, text = on_terminal(self.home, "list", "--crawl", crawl)
        self.assertIn("alone, home, second", text)
        self.records("edit", crawl, "--untag", "home")
        self.assertEqual(found("home"), [])
        self.assertEqual(found("alone"), [url["1"]])
        self.check_error(self.home.run("edit", one, "--label", "no"), USAGE, "only crawls")
        self.check_error(self.home.run("edit", crawl, "--title", "no"), USAGE, "only snapshots")
        self.assertEqual(self.records("check"), [])

    def test_a_sealed_page_is_edited_and_the_edits_are_on_record(self):
        crawl = self.add("https://site.test/edited")["id"]
        self.work()
        [page] = self.records("list", "snapshots", "--crawl", crawl)
        self.assertEqual(page["title"], "Found")

        def edit(*arguments):
            return self.records("edit", page["id"], *arguments)[0]

        def titled():
            return self.records("list", "snapshots", "--crawl", crawl)[0]["title"]

        self.assertTrue(edit("--title", "Wandering albatross", "--notes", "See page 2", "--tag", "birds")["changed"])
        self.assertFalse(edit("--title", "Wandering albatross")["changed"])
        self.assertEqual(titled(), "Wandering albatross")
        self.assertEqual(edit()["notes"], "See page 2")
        self.assertEqual([s["id"] for s in self.records("search", "albatross")], [page["id"]])
        edit("--title", "")
        self.assertEqual(titled(), "Found")
        text = self.home.run(
            "psql", "-At", "-c", f"select detail from holdfast.v_control where target = '{page['id']}'"
        )
        self.assertEqual(
            sorted(text.out.splitlines()),
            [
                'title "" -> "Wandering albatross", notes "" -> "See page 2", tags "" -> "birds"',
                'title "Wandering albatross" -> ""',
            ],
        )
        self.assertEqual(self.records("check"), [])
        [other] = self.records("retry", page["id"])
        self.work()
        # A new capture, with what people said of the old one.
        [again] = self.records("list", "snapshots", "--crawl", other["id"])
        self.assertEqual((again["tags"], again["outcome"]), (["birds"], "succeeded"))

    def test_run_works_on_one_crawl_or_snapshot_alone(self):
        left = self.add("https://site.test/left")["id"]
        mine = self.add("https://site.test/mine1", "https://site.test/mine2", "https://site.test/mine3")["id"]

        def states(crawl):
            return sorted((s["url"].rpartition("/")[2], s["status"]) for s in self.records("list", "--crawl", crawl))

        self.assertEqual(self.home.run("run", "--crawl", mine).code, OK)
        self.assertEqual(states(mine), [("mine1", "sealed"), ("mine2", "sealed"), ("mine3", "sealed")])
        self.assertEqual([c["status"] for c in self.records("show", left) if c["type"] == "Crawl"], ["queued"])

        # Of a crawl that waits: one snapshot, the last of its queue, on a host with limits and on one without.
        for host in ("quick.test", "slow.test"):
            if host == "slow.test":
                self.assertEqual(self.home.run("host", "set", host, "--parallel", "1").code, OK)
            crawl = self.add(*[f"https://{host}/{n}" for n in range(4)])["id"]
            self.records("pause", crawl)
            self.assertEqual(self.home.run("run", "--crawl", crawl).code, FAILED_WORK)  # it is paused
            self.assertEqual(states(crawl), [])
            self.records("resume", crawl)
            self.expand(crawl)
            wanted = [s["id"] for s in self.records("list", "--crawl", crawl) if s["url"].endswith("/3")]
            done = self.home.holdfast("run", "--snapshot", *wanted)
            self.assertEqual([(r["id"], r["outcome"]) for r in done.records], [(wanted[0], "succeeded")])
            self.assertEqual(states(crawl), [("0", "queued"), ("1", "queued"), ("2", "queued"), ("3", "sealed")])
            # What is sealed is not run again.
            self.assertEqual(self.home.run("run", "--snapshot", *wanted).code, OK)
        self.assertEqual([status for _, status in states(left)], ["queued"])  # expanded with the others
        self.check_error(self.home.run("run", "--snapshot", mine), USAGE, "is a crawl")
        self.check_error(self.home.run("run", "--daemon", "--crawl", mine), USAGE, "--daemon")
        self.work()

    def expand(self, crawl, count=4):
        """Its seeds become snapshots, and none of these is worked on."""
        worker = self.home.start("worker", "--kind", "crawl")
        until("the crawl is expanded", lambda: len(self.records("list", "--crawl", crawl)) == count)
        worker.terminate()
        self.assertEqual(self.home.finish(worker).code, OK)

    def test_resume_at_a_time(self):
        later = self.add("https://site.test/later")["id"]
        partly = self.add("https://site.test/partly1", "https://site.test/partly2")["id"]
        self.records("pause", later)
        self.records("resume", later, "--at", "2h", "--why", "tonight")
        shown = self.records("show", later)[0]
        self.assertEqual((shown["status"], shown["reason"]), ("queued", f"resumed by {shown['changed_by']}: tonight"))
        self.assertIn("resumed by", self.home.run("why", later).out)
        due = datetime.fromisoformat(shown["retry_at"].replace("Z", "+00:00"))
        self.assertGreater(due.timestamp(), time.time() + 7000)
        self.records("pause", later)
        self.records("resume", later, "--at", shown["retry_at"])  # a time as our own JSON has it
        self.assertEqual(self.records("show", later)[0]["retry_at"][:19], shown["retry_at"][:19])
        self.records("pause", later)
        self.records("resume", later)
        self.expand(partly, 2)
        page = self.records("list", "--crawl", partly)[0]["id"]
        self.records("pause", page)
        self.records("resume", page, "--at", "3h")
        self.assertEqual(self.home.run("run", "--snapshot", page, "--crawl", partly).code, USAGE)
        waiting = self.records("show", page)[0]
        self.assertEqual(waiting["status"], "queued")
        self.records("pause", page)
        self.records("resume", page)
        self.check_error(self.home.run("resume", "--all", "--at", "2h"), USAGE, "--at")
        self.check_error(self.home.run("resume", partly, "--at", "tomorrowish"), USAGE, "tomorrowish")
        self.work()

    def test_when_it_was_bookmarked(self):
        file = self.home.path / "marks.html"
        file.write_text(
            '<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DT><A HREF="https://site.test/marked" ADD_DATE="1614834367" '
            'TAGS="birds">Marked</A>\n'
        )
        lines = [
            {"url": "https://site.test/zoned", "bookmarked_at": "2021-03-04T06:06:07+01:00"},
            {"url": "https://site.test/stamped", "timestamp": "1614834367.89"},
            {"url": "https://site.test/wrong", "bookmarked_at": "last week"},
        ]
        jsonl = self.home.path / "marks.jsonl"
        jsonl.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.addCleanup(shutil.rmtree, self.home.plugins / "marks")
        self.home.hook(
            "marks",
            "on_Snapshot__60_marks.sh",
            r"""[[ $url == */marked ]] || exit 0
                echo '{"type":"Snapshot","url":"https://site.test/inner","bookmarked_at":"2020-01-02 03:04:05"}'""",
        )
        crawl = self.add("--depth", "1", file, jsonl)["id"]
        self.work()
        pages = {s["url"].rpartition("/")[2]: s for s in self.records("list", "snapshots", "--crawl", crawl)}
        self.assertEqual(
            {name: (s["bookmarked_at"] or "")[:19] for name, s in pages.items()},
            {
                "marked": "2021-03-04T05:06:07",
                "zoned": "2021-03-04T05:06:07",
                "stamped": "2021-03-04T05:06:07",
                "wrong": "",
                "inner": "2020-01-02T03:04:05",
            },
        )
        # It is in the files, too, from which a lost database is restored.
        index = self.home.data / "archive" / pages["marked"]["directory"] / "index.jsonl"
        first = json.loads(index.read_text().splitlines()[0])
        self.assertEqual(first["bookmarked_at"][:19], "2021-03-04T05:06:07")
        again = self.records("retry", pages["marked"]["id"])[0]["id"]
        self.work()
        [page] = self.records("list", "snapshots", "--crawl", again)
        self.assertEqual(page["bookmarked_at"][:19], "2021-03-04T05:06:07")

    def test_labels_do_not_grow(self):
        crawl = self.add("--label", "Once", "https://site.test/label")["id"]
        for _ in range(2):
            self.work()
            crawl = self.records("retry", crawl)[0]["id"]
        self.work()
        self.assertEqual(self.records("show", crawl)[0]["label"], "Once (again)")

    def test_times_are_those_of_the_reader(self):
        crawl = self.add("https://site.test/times")["id"]
        self.work()
        shown = self.records("show", crawl)[0]
        self.assertTrue(shown["created_at"].endswith("+00:00"), shown["created_at"])
        for arguments in (
            ["show", crawl],
            ["list", "workers"],
            ["why", crawl],
            ["events", "--crawl", crawl],
            ["status"],
        ):
            with self.subTest(arguments=arguments):
                code, text = on_terminal(self.home, *arguments, env={"TZ": "XYZ+5"})
                self.assertEqual(code, OK, text)
                self.assertRegex(text, r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d XYZ")
                self.assertNotIn("UTC", text)
        utc = datetime.fromisoformat(shown["created_at"])
        code, text = on_terminal(self.home, "show", crawl, env={"TZ": "XYZ+5"})
        self.assertIn((utc - timedelta(hours=5)).strftime("%Y-%m-%d %H:%M:%S XYZ"), text)
        self.assertRegex(text, r"age +\S+ (ms|s|min)")

    def test_all_ids_are_looked_up_before_anything_is_done(self):
        crawl = self.add("https://site.test/together")["id"]
        for verb in (
            ["pause", crawl, "ffffffffffff"],
            ["edit", crawl, "ffffffffffff", "--tag", "x"],
            ["priority", "5", crawl, "ffffffffffff"],
            ["keep", "1d", crawl, "ffffffffffff"],
        ):
            with self.subTest(verb=verb):
                self.check_error(self.home.run(*verb), REFUSED, "ffffffffffff")
        shown = self.records("show", crawl)[0]
        self.assertNotEqual(shown["status"], "paused")
        self.assertEqual((shown["tags"], shown["priority"], shown["keep_until"]), ([], 0, None))
        self.work()

    def test_filters_that_name_the_wrong_thing(self):
        crawl = self.add("https://site.test/filters")["id"]
        self.work()
        one = self.records("list", "--crawl", crawl)[0]["id"]
        self.check_error(self.home.run("list", "--crawl", one), USAGE, "is a snapshot")
        self.check_error(self.home.run("list", "results", "--snapshot", crawl), USAGE, "is a crawl")
        self.check_error(self.home.run("list", "failures", "--plugin", "nosuch"), USAGE, "nosuch", "page")

    def test_from_standard_input(self):
        text = "https://site.test/in1\nhttps://site.test/in1#again\n  https://site.test/in2  \n"
        for arguments in (["-"], []):
            crawl = self.add(*arguments, given=text)
            self.work()
            self.assertEqual(
                {s["url"] for s in self.records("list", "--crawl", crawl["id"])},
                {"https://site.test/in1", "https://site.test/in2"},
            )

    def test_options_before_and_after_the_url(self):
        for arguments in (
            ["--plugins", "page,title", "https://site.test/o"],
            ["https://site.test/o", "--plugins", "page"],
            ["-p", "page", "-t", "a", "https://site.test/o"],
            ["--tag", "a", "--tag", "b", "https://site.test/o"],
        ):
            with self.subTest(arguments=arguments):
                crawl = self.add(*arguments)
                self.assertEqual(crawl["seeds"], 1)
        self.work()

    def test_ids_from_a_pipe(self):
        crawl = self.add("--bg", "https://site.test/pipe/1", "https://site.test/pipe/2")["id"]
        listed = self.home.run("list", "crawls", "--url", "site.test/pipe/1").out
        said = self.home.run("pause", "-", given=listed).records
        self.assertEqual(
            [(record["action"], record["target"], record["changed"]) for record in said], [("pause", crawl, True)]
        )
        # What one verb says the next one reads; each id is taken once, however often and in whatever form it comes.
        again = self.home.run(
            "resume", "-", given="".join(json.dumps(record) + "\n" for record in said) + "\n# a note\n" + crawl + "\n"
        ).records
        self.assertEqual([(record["target"], record["changed"]) for record in again], [(crawl, True)])
        self.work()
        results = self.home.run("list", "results", "--crawl", crawl).out
        tried = self.home.run("retry", "-", given=results).records[0]
        self.assertEqual(tried["seeds"], 2)  # a result stands for its snapshot
        self.work()
        self.assertEqual(
            [record["type"] for record in self.home.run("why", "-", given=results).records], ["Why", "Why"]
        )
        for verb in (
            ["edit", "-", "--tag", "piped"],
            ["priority", "5", "-"],
            ["keep", "90d", "-"],
            ["remove", "--yes", "-"],
        ):
            with self.subTest(verb=verb):
                self.assertEqual(
                    [record["target"] for record in self.home.run(*verb, given=tried["id"] + "\n").records],
                    [tried["id"]],
                )
        self.assertEqual(self.home.run("retry", "-", given="").records[0]["seeds"], 0)
        wrong = self.home.run(
            "cancel", "-", given=crawl + '\n{"type":"Status","workers":1}\n{"type":"Crawl"}\n{"id":\n'
        )
        self.check_error(wrong, REFUSED, "standard input:2", "standard input:3", "standard input:4", "nothing was done")

    def test_settings(self):
        records = {record["key"]: record for record in self.records("--set", "lease=90s", "config")}
        self.assertEqual(records["lease"]["value"], "90s")
        self.assertEqual(records["urls.allow_private"]["origin"], "environment HOLDFAST_URLS_ALLOW_PRIVATE")
        self.assertEqual(records["database.url"]["value"], "(unset)")
        self.assertEqual(len(self.records("config", "heartbeat")), 1)

    def test_invariants_hold(self):
        self.assertEqual(self.records("check"), [])

    def test_text_for_people(self):
        crawl = self.add("https://site.test/people")
        self.work()
        for arguments, words in (
            (["status"], ["snapshots", "workers"]),
            (["list"], ["https://site.test/people", "succeeded"]),
            (["show", crawl["id"]], [crawl["id"], "page", "index.html"]),
            (["config"], ["(default)"]),
            (["list", "running"], ["none"]),
            (["check"], ["holds"]),
        ):
            with self.subTest(arguments=arguments):
                code, text = on_terminal(self.home, *arguments)
                self.assertEqual(code, OK, text)
                self.assertNotIn('{"', text)
                for word in words:
                    self.assertIn(word, text)


def on_terminal(place, *arguments, env=None, meanwhile=lambda text, press: None):
    """Runs the program on a terminal of its own; its exit code and all it wrote there. meanwhile sees what there is so far,
    and may press keys."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(place.path)
            os.execve(
                place.command()[0], place.command(*arguments), {**place.environment, "TERM": "xterm", **(env or {})}
            )
        finally:
            os._exit(127)
    text, status = "", None
    end = time.monotonic() + 120
    try:
        while status is None and time.monotonic() < end:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    text += os.read(terminal, 65536).decode("utf-8", "replace")
                except OSError:  # everybody has closed the other side
                    status = os.waitpid(pid, 0)[1]
                    break
            meanwhile(text, lambda keys: os.write(terminal, keys))
    finally:
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)
    if status is None:
        raise AssertionError(f"did not end in time:\n{text}")
    return os.waitstatus_to_exitcode(status), text


class Screen:
    """What a terminal shows of a text, as far as the progress goes: lines, going up, clearing."""

    def __init__(self):
        self.lines, self.row, self.column = [""], 0, 0

    def write(self, text):
        for part in re.findall(r"\x1b\[([0-9;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)", text):
            number, letter, control, plain = part
            if letter == "A":
                self.row = max(0, self.row - int(number or 1))
            elif letter == "K":
                self.lines[self.row] = self.lines[self.row][: self.column]
            elif letter == "J":
                self.lines[self.row] = self.lines[self.row][: self.column]
                del self.lines[self.row + 1 :]
            elif control == "\r":
                self.column = 0
            elif control == "\n":
                self.row, self.column = self.row + 1, 0
                while len(self.lines) <= self.row:
                    self.lines.append("")
            elif plain:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + plain + line[self.column + len(plain) :]
                self.column += len(plain)


class Terminal(Case):
    def test_progress_is_shown_and_no_json(self):
        home = self.place()
        home.hook("slow", "on_Snapshot__20_slow.sh", 'gate "$name"; echo done >done.txt')

        def meanwhile(text, press):
            if "0/2 snapshots" in text and "https://site.test/one" in text:
                home.open("one")
            if "1/2 snapshots" in text:
                home.open("two")

        code, text = on_terminal(home, "add", "https://site.test/one", "https://site.test/two", meanwhile=meanwhile)
        self.assertEqual(code, OK, text)
        for word in (
            "0/2 snapshots",
            "1/2 snapshots",
            "2/2 snapshots",
            "slow ",
            "https://site.test/one",
            "succeeded",
            "index.html",
        ):
            self.assertIn(word, text)
        self.assertNotIn('{"', text)
        self.assertEqual(len(home.attempts()), 2)

    def test_lines_of_the_log_stay_above_the_progress(self):
        home = self.place()
        home.hook("slow", "on_Snapshot__20_slow.sh", 'gate "$name"; echo done >done.txt')

        def meanwhile(text, press):
            for gate, words in (("one", "0/2 snapshots"), ("two", "1/2 snapshots")):
                if words in text:
                    home.open(gate)

        code, text = on_terminal(
            home,
            "add",
            "https://site.test/one",
            "https://site.test/two",
            meanwhile=meanwhile,
            env={"HOLDFAST_LOG_LEVEL": "info"},
        )
        self.assertEqual(code, OK, text)
        screen = Screen()
        screen.write(text)
        shown = [line for line in screen.lines if line]
        self.assertEqual(sum("snapshots, " in line and line.startswith("[") for line in shown), 1, "\n".join(shown))
        for name in ("one", "two"):
            self.assertEqual(sum(f"sealed https://site.test/{name}" in line for line in shown), 1, "\n".join(shown))

    def test_an_interrupt_from_the_keyboard(self):
        home = self.place()
        home.hook("slow", "on_Snapshot__20_slow.sh", 'gate "$name"; echo done >done.txt')
        pressed = []

        def meanwhile(text, press):
            if home.arrived("one") and not pressed:
                press(b"\x03")
                pressed.append(True)

        code, text = on_terminal(home, "add", "https://site.test/one", meanwhile=meanwhile)
        self.assertEqual(code, 130, text)
        self.assertIn("holdfast run", text)
        self.assertEqual(home.hooks(), [])
        self.assertIsNone(home.server_pid())


class Outcome(Case):
    def test_what_add_says_when_it_has_worked(self):
        home = self.place()
        home.hook(
            "bad", "on_Snapshot__20_bad.sh", '[[ $name == good ]] || { echo "no $name" >&2; exit 1; }; echo x >x.txt'
        )
        result = home.holdfast("add", "https://site.test/good")
        self.assertEqual([record["type"] for record in result.records], ["Snapshot", "Crawl"])
        snapshot, crawl = result.records
        self.assertEqual(
            (snapshot["status"], snapshot["outcome"], crawl["outcome"]), ("sealed", "succeeded", "succeeded")
        )
        self.assertTrue(os.path.exists(crawl["page"]))
        self.assertIsNone(home.server_pid())  # it is not needed any more
        # Its log goes to standard error, also as JSON there.
        for line in result.err.splitlines():
            json.loads(line)

        result = home.holdfast("add", "--plugins", "bad", "https://site.test/evil", expect=FAILED_WORK)
        self.assertEqual(result.records[-1]["outcome"], "failed")
        self.assertIn("no evil", home.run("list", "failures").out)


if __name__ == "__main__":
    unittest.main()
