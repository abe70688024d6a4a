"""Lists: what can be asked for, and what is said of mistakes."""

import os
import pty
import re
import subprocess
import unittest

from harness.case import OK, REFUSED, USAGE, Case


class Both(Case):
    """A collection of two crawls, one of whose pages has failed."""

    @classmethod
    def setUpClass(cls):
        cls.owner = cls("place")
        cls.home = cls.owner.place(held=True)
        cls.home.hook(
            "page",
            "on_Snapshot__10_page.sh",
            '[[ $name == good* ]] || { echo "no $name" >&2; exit 1; }; echo "$url" >page.txt',
        )
        for words in (
            ("--label", "Both", "http://one.test/good", "http://two.test/bad"),
            ("--tag", "late,soon", "http://one.test:8080/good-too"),
        ):
            cls.owner.assertEqual(cls.home.run("add", *words).code, OK)

    @classmethod
    def tearDownClass(cls):
        cls.owner.doCleanups()

    def records(self, *arguments):
        result = self.home.holdfast(*arguments)
        return result.records

    def urls(self, *arguments):
        return [record["url"] for record in self.records("list", *arguments)]


class Lists(Both):
    def test_filters(self):
        good, bad, too = "http://one.test/good", "http://two.test/bad", "http://one.test:8080/good-too"
        self.assertEqual(self.urls("--outcome", "failed"), [bad])
        self.assertEqual(self.urls("--outcome", "succeeded"), [too, good])
        self.assertEqual(self.urls("--status", "queued", "--outcome", "failed"), [])
        self.assertEqual(self.urls("--host", "ONE.test"), [too, good])  # on all its ports
        self.assertEqual(self.urls("--host", "one.test", "--url", "too"), [too])
        self.assertEqual(self.urls("--host", "one.test", "--outcome", "failed"), [])
        self.assertEqual(self.urls("--tag", "late", "--host", "one.test"), [too])
        self.assertEqual(self.urls("failures", "--host", "two.test", "--since", "1h"), [bad])
        self.assertEqual(self.urls("failures", "--host", "one.test"), [])
        self.assertEqual(self.urls("-n", "1"), [too])
        self.assertEqual([c["label"] for c in self.records("list", "crawls", "--outcome", "partial")], ["Both"])
        self.assertEqual(len(self.urls("--since", "2h")), 3)
        self.assertEqual(self.urls("--since", "2999-01-01"), [])
        # A time is one of the user's zone: what is over there by 14 hours' difference is not over here.
        sealed = self.records("list", "-n", "1", "--columns", "created_at")[0]["created_at"][:19].replace("T", " ")
        self.assertEqual(len(self.home.run("list", "--since", sealed, env={"TZ": "UTC+12"}).records), 0)
        self.assertEqual(len(self.home.run("list", "--since", sealed, env={"TZ": "UTC-12"}).records), 3)

    def test_columns(self):
        self.assertEqual(
            self.records("list", "-n", "1", "--columns", "url,outcome"),
            [{"type": "Snapshot", "url": "http://one.test:8080/good-too", "outcome": "succeeded"}],
        )
        csv = self.home.run("list", "-n", "1", "--csv", "--columns", "tags")
        self.assertEqual(csv.out, 'tags\n"late, soon"\n')
        table = self.home.run("--table", "list", "-n", "1", "--columns", "outcome,url")
        self.assertRegex(table.out, "^outcome +url\nsucceeded +http://one.test:8080/good-too\n")
        csv = self.home.run("list", "-n", "1", "--csv", "--columns", "outcome,url")
        self.assertEqual(csv.out, "outcome,url\nsucceeded,http://one.test:8080/good-too\n")
        for label, shown in (("=1+1", "'=1+1"), ("@SUM(1,2)", '"\'@SUM(1,2)"'), ("a=b", "a=b"), ("'=", "'=")):
            crawl = self.home.run("add", "--bg", "--label", label, "http://formula.test/").records[0]["id"]
            csv = self.home.run("list", "crawls", "-n", "1", "--csv", "--columns", "label")
            self.assertEqual(csv.out, f"label\n{shown}\n")
            self.home.run("cancel", crawl)
            self.home.run("remove", "--yes", crawl)
        self.check_error(self.home.run("list", "--columns", "nothing"), USAGE, '"nothing"', "crawl_id")

    def test_mistakes(self):
        for arguments, words in (
            (["--outcome", "bad"], ["snapshots", '"bad"', "quarantined"]),
            (["crawls", "--outcome", "refused"], ["crawls", '"refused"', "empty"]),
            (["events", "--host", "one.test"], ["events", "host"]),
            (["--since", "soon"], ['"soon"', "2026-11-22 14:00"]),
            (["--host", "a..b"], ['"a..b"']),
        ):
            self.check_error(self.home.run("list", *arguments), USAGE, *words)

    def test_totals_and_types(self):
        status = self.records("status")[0]
        self.assertEqual((status["crawls"], status["archived"], status["failed"]), (2, 2, 1))
        self.assertRegex(status["last_sealed_at"], r"^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$")
        self.assertEqual(status["bytes"], sum(s["bytes"] for s in self.records("list")))
        self.assertEqual(self.records("host", "set", "one.test", "--delay", "1s")[0]["type"], "Control")
        self.assertEqual({h["type"] for h in self.records("host", "list")}, {"Host"})
        archived = self.records("add", "--only-new", "http://one.test/good")[0]
        self.assertRegex(archived["sealed_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def on_terminal(self, *arguments, **env):
        master, slave = pty.openpty()
        process = subprocess.Popen(
            self.home.command(*arguments),
            cwd=self.home.path,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**self.home.environment, **env},
        )
        os.close(slave)
        text = b""
        try:
            while piece := os.read(master, 65536):
                text += piece
        except OSError:
            pass  # the other end is closed
        os.close(master)
        self.assertEqual(process.wait(60), 0, text)
        return text.decode()

    def test_a_table_shows_what_matters(self):
        table = self.on_terminal("list", "crawls")
        head = table.splitlines()[0].split()
        self.assertIn("failed", head)
        self.assertIn("bytes", head)
        for absent in ("cancelled", "open"):  # 0 in every row
            self.assertNotIn(absent, head)
        self.assertRegex(table, r"\d B|KiB")
        snapshots = self.on_terminal("list")
        self.assertIn("\x1b[31mfailed", snapshots)
        self.assertNotIn("\x1b[", self.on_terminal("list", NO_COLOR="1"))


class Adding(Both):
    """These add to the collection."""

    def test_names_that_are_no_ids(self):
        """A URL as it was typed, and a crawl's label, stand for the newest; what changes things wants to know which."""
        self.assertEqual(self.records("show", "HTTP://two.test:80/bad")[0]["outcome"], "failed")
        self.assertEqual(self.records("show", "Both")[0]["label"], "Both")
        self.assertIn("failed", self.records("why", "http://two.test/bad")[0]["reason"])
        self.assertEqual(self.records("why", "Both")[0]["kind"], "crawl")
        self.assertEqual(self.home.run("add", "--label", "Both", "http://one.test/good").code, OK)
        newest = self.urls("-n", "1")
        self.assertEqual(newest, ["http://one.test/good"])
        self.assertEqual(
            self.records("show", "http://one.test/good")[0]["id"], self.records("list", "-n", "1")[0]["id"]
        )
        self.check_error(self.home.run("edit", "Both", "--tag", "x"), REFUSED, "more than one crawl", "the newest is")
        self.check_error(self.home.run("show", "http://three.test/"), REFUSED, "http://three.test/")

    def test_quiet(self):
        result = self.home.run("-q", "add", "http://one.test/good-quiet")
        self.assertEqual((result.code, result.err), (OK, ""), str(result))

    def test_verbose_tells_each_hook_as_it_starts_and_ends(self):
        result = self.home.holdfast("-v", "add", "http://one.test/good-verbose")
        self.assertRegex(result.err, r"http://one.test/good-verbose: \d+ hooks")
        hook = r"http://one.test/good-verbose (\w+/on_Snapshot\w+): "
        started = re.findall(hook + r"started(?: in the background)?, for \S.* at most", result.err)
        ended = re.findall(hook + r"\w+ in ", result.err)
        self.assertTrue(started, str(result))
        self.assertEqual(sorted(started), sorted(ended), str(result))


if __name__ == "__main__":
    unittest.main()
