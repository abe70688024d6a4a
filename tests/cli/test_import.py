"""Data directories of ArchiveBox become crawls and snapshots that are like own ones. The index is made with the tables
of a release; tests/compat/archivebox does the same with the releases themselves."""

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import unittest
import urllib.request
import zipfile
from pathlib import Path

from archivebox_directory import Directory
from harness.wait import until
from harness.case import FAILED_WORK, OK, REFUSED, USAGE, Case, Database

PAGES = 60


GUIDE = (Path(__file__).resolve().parents[2] / "deploy/archivebox.md").read_text()


def guide(part):
    """The commands below a heading of deploy/archivebox.md."""
    block = re.search(r"```sh\n(.*?)```", GUIDE[re.search(rf"^#+ {part}$", GUIDE, re.M).end() :], re.S)[1]
    return [line.split(" #")[0].strip() for line in block.splitlines()]


class Import(Case):
    held = True

    def setUp(self):
        self.home = self.place(held=self.held, filled=self.held)

    def records(self, *arguments, code=OK):
        result = self.home.holdfast(*arguments, expect=code)
        return result.records

    def take(self, data, *options, code=OK):
        """The last record is the summary; those before say what could not be taken."""
        *problems, summary = self.records("import", "archivebox", *options, data, code=code)
        self.assertEqual(summary["type"], "Import")
        self.assertEqual(len(problems), summary["problems"])
        return summary, problems

    def snapshots(self):
        return {
            s["source"].removeprefix("archivebox:"): s for s in self.records("list", "snapshots", "--limit", "1000")
        }


class Versions(Import):
    held = False  # until the dry run is over

    def check_version(self, version):
        old = Directory(self.home.path / "old", version, PAGES)
        named = old.break_things()
        old.add_pending()
        before = old.state()

        summary, _ = self.take(old.data, "--dry-run", code=FAILED_WORK)
        self.assertEqual((summary["imported"], summary["pending"]), (len(old.archived), len(old.pending)))
        self.assertFalse(self.home.data.exists(), "a dry run makes no collection")
        self.home.fill().hold()

        summary, problems = self.take(old.data, code=FAILED_WORK)
        said = "\n".join(p["path"] + ": " + p["detail"] for p in problems)
        for name in named:
            self.assertIn(name, said)
        self.assertEqual((summary["imported"], summary["known"]), (len(old.archived), 0))
        self.assertEqual(summary["pending"], len(old.pending))
        self.assertEqual(old.state(), before, "the source is as it was")

        again, told = self.take(old.data, code=FAILED_WORK)
        self.assertEqual(len(told), old.unusable, "what is known is not told again")
        self.assertEqual((again["imported"], again["known"]), (0, len(old.archived)))
        return old

    def check_rows(self, old):
        snapshots = self.snapshots()
        self.assertEqual(len(snapshots), len(old.archived))
        for page in old.archived:
            if "timestamp" not in page:
                continue
            snapshot = snapshots[page["timestamp"]]
            self.assertEqual(snapshot["tags"], page["tags"])
            self.assertEqual((snapshot["status"], snapshot["outcome"]), ("sealed", page["outcome"]), page)
        first, second = (snapshots[old.archived[n]["timestamp"]] for n in (0, 1))
        self.assertEqual(second["url"], "https://site1.test/v%C3%B6gel/1")
        self.assertEqual(second["title"], "Ünïcödé 鳥 🦅")
        self.assertEqual(first["created_at"][:19], "2021-03-04T05:06:07")
        bookmarked = "2021-03-04" if old.version == "0.7" else "2021-03-03"
        self.assertEqual(first["bookmarked_at"][:10], bookmarked)
        results = {r["plugin"]: r for r in self.records("list", "results", "--snapshot", first["id"])}
        self.assertEqual(
            {plugin: r["status"] for plugin, r in results.items()},
            {"title": "succeeded", "wget": "succeeded", "archivedotorg": "skipped"},
        )
        self.assertEqual(results["title"]["output"], "The title")
        files = {f["path"] for f in results["wget"]["output_files"]}
        self.assertIn("site0.test/index.html", files)
        self.assertIn("warc/1614834367.warc.gz", files)

    def check_use(self, old):
        """What people do with own pages."""
        self.assertEqual(self.records("check"), [])
        verification = self.records("verify", "--all")[-1]
        self.assertEqual(
            (verification["snapshots"], verification["defects"], verification["without_row"]), (len(old.archived), 0, 0)
        )
        found = self.records("search", "number20")
        self.assertEqual([hit["url"] for hit in found], ["https://site6.test/page/20?q=a+b"])
        tagged = self.records("list", "snapshots", "--tag", "日本", "--limit", "100")
        self.assertEqual(len(tagged), 2)
        self.home.holdfast("show", found[0]["id"], "--json")
        wacz = self.home.path / "all.wacz"
        self.assertEqual(self.home.run("export", "--all", "-o", wacz).code, OK)
        with zipfile.ZipFile(wacz) as archive:
            pages = archive.read("pages/pages.jsonl").decode().splitlines()[1:]
        # The page whose directory is missing and the one whose timestamp leads elsewhere have no WARC file.
        self.assertEqual(len(pages), len(old.archived) - 2)

    def check_text(self, version):
        old = self.check_version(version)
        self.check_rows(old)
        self.check_use(old)

    def test_0_7(self):
        self.check_text("0.7")

    def test_0_8(self):
        self.check_text("0.8")

    def test_0_9(self):
        self.check_text("0.9")
        [crawl] = self.records("list", "crawls")
        self.assertEqual((crawl["label"], crawl["notes"], crawl["tags"]), ("First", "Of March", ["birds"]))


class Use(Import):
    def test_update_runs_what_failed_and_leaves_the_rest(self):
        old = Directory(self.home.path / "old", "0.7", 8)
        self.take(old.data)
        self.home.hook("wget", "on_Snapshot__35_wget.sh", 'echo "$url" >page.html')
        self.home.holdfast("add", "--update", "--plugins", "wget", *(page["url"] for page in old.archived))
        own = [s["url"] for s in self.records("list", "snapshots", "--limit", "100") if not s["source"]]
        self.assertEqual(sorted(own), ["https://site0.test/page/7?q=a+b", "https://site3.test/page/3?q=a+b"])

    def test_the_next_run_adds_what_is_new(self):
        old = Directory(self.home.path / "old", "0.9", 5)
        self.take(old.data)
        old.page(5)
        old.index.commit()
        summary, _ = self.take(old.data)
        self.assertEqual((summary["imported"], summary["known"]), (1, 5))
        [crawl] = self.records("list", "crawls")
        self.assertEqual(crawl["total"], 6)
        self.assertEqual(self.records("check"), [])

    def test_an_upgraded_collection_is_the_same(self):
        """Ids stay when ArchiveBox moves a collection to a later version."""
        older = Directory(self.home.path / "older", "0.7", 5)
        newer = Directory(self.home.path / "newer", "0.9", 5)
        self.take(older.data)
        summary, _ = self.take(newer.data)
        self.assertEqual((summary["imported"], summary["known"]), (0, 5))

    def test_pages_of_one_url_are_all_kept(self):
        """What ArchiveBox tells apart by a fragment is one URL here."""
        old = Directory(self.home.path / "old", "0.7", 1)
        for number in (1, 2):
            key, _, at = old.snapshot(number, f"https://site0.test/page/0?q=a+b#2021-0{number}")
            old.result(key, "title", "succeeded", f"Capture {number}", at)
        old.index.commit()
        summary, _ = self.take(old.data, code=FAILED_WORK)  # they have no directories
        self.assertEqual((summary["imported"], summary["crawls"]), (3, 3))
        self.assertEqual({s["url"] for s in self.snapshots().values()}, {"https://site0.test/page/0?q=a+b"})
        self.assertEqual(self.take(old.data)[0]["known"], 3)
        self.assertEqual(self.records("check"), [])

    def test_links_share_files_and_change_nothing(self):
        old = Directory(self.home.path / "old", "0.7", 5)
        before = old.state()
        self.take(old.data, "--link")
        self.assertEqual(old.state(), before)
        page = old.data / "archive" / old.archived[2]["timestamp"] / "site2.test/index.html"
        [attempt] = [a for a in self.home.attempts() if (a / "wget/site2.test").exists()]
        self.assertEqual((attempt / "wget/site2.test/index.html").stat().st_ino, page.stat().st_ino)
        self.assertEqual(self.records("verify", "--all")[-1]["defects"], 0)

    def test_a_lost_database_is_adopted_with_what_was_imported(self):
        old = Directory(self.home.path / "old", "0.9", 5)
        self.take(old.data)
        before = self.snapshots()
        self.home.let_go()
        self.assertIsNone(self.home.server_pid())
        shutil.rmtree(self.home.data / "postgres")
        self.assertEqual(self.records("adopt", self.home.data / "archive")[0]["snapshots"], 5)
        after = self.snapshots()
        for stamp, snapshot in before.items():
            for column in ("id", "url", "title", "tags", "outcome", "bookmarked_at", "created_at", "sealed_at"):
                self.assertEqual(after[stamp][column], snapshot[column], column)
        self.assertEqual(self.take(old.data)[0]["known"], 5)

    def test_what_archivebox_has_not_archived_waits_as_a_paused_crawl(self):
        for version in ("0.7", "0.9"):
            old = Directory(self.home.path / version, version, 3)
            old.add_pending()
            summary, _ = self.take(old.data, "--pending")
            crawl = summary["pending_crawl"]
            self.take(old.data, "--pending")  # repeated
            [row] = [c for c in self.records("list", "crawls") if c["id"] == crawl]
            self.assertEqual(row["status"], "paused")
            self.assertEqual(self.home.run("resume", crawl).code, OK)
            self.assertEqual(self.home.run("run").code, OK)
            done = [s["url"] for s in self.records("list", "snapshots", "--crawl", crawl, "--limit", "50")]
            self.assertEqual(
                sorted(done),
                sorted(old.pending) if version == "0.7" else ["https://later.test/a", "https://later.test/b"],
            )


class Cluster(Import):
    held = False  # its server is another

    def given(self, commands):
        """The part "On several machines" of the guide, with the addresses of here; the answer of the import."""
        summary = None
        for command in commands:
            for there, here in (
                ("postgresql://holdfast@db.example/holdfast", self.database.url()),
                ("/srv/archive", str(self.home.data / "archive")),
                ("~", str(self.home.path)),
            ):
                command = command.replace(there, shlex.quote(here))
            program, *words = shlex.split(command)
            if program == "export":
                self.home.environment |= [words[0].split("=", 1)]
            elif words[0] == "import":
                *_, summary = self.records(*words)
            else:
                self.assertEqual(self.home.run(*words).code, OK, command)
        return summary

    def test_what_waits_goes_on_on_three_workers(self):
        database = self.database = Database()
        self.addCleanup(database.close)
        self.home.environment["HOLDFAST_WORKER_SNAPSHOTS"] = "1"
        self.home.hook("page", "on_Snapshot__10_page.sh", 'gate "$name"; echo "$url" >page.txt')
        old = Directory(self.home.path / "archivebox", "0.7", PAGES)
        old.add_pending(40)
        *commands, worker = guide("On several machines")
        self.assertEqual(worker, "holdfast worker")
        at = next(n for n, command in enumerate(commands) if "resume" in command)
        summary = self.given(commands[:at])
        self.assertEqual((summary["imported"], summary["pending"]), (PAGES, 40))
        crawl = summary["pending_crawl"]
        # It was never there without its pause, so no worker can have claimed it between two commits.
        told = f"from holdfast.event where crawl_id = '{crawl}' and lifecycle = 'crawl'"
        self.assertEqual(database.sql(f"select string_agg(event, ' ' order by id) {told}"), "add pause")
        self.assertEqual(database.sql(f"select count(distinct xmin::text) {told}"), "1")

        workers = [self.home.start("worker") for _ in range(3)]
        self.given(commands[at:])
        # Each has one of them, because each has one slot.
        names = [url.rpartition("/")[2] for url in old.pending]
        until("three pages are in work", lambda: sum(map(self.home.arrived, names)) == 3)
        self.home.open("all")
        until(
            "it is done", lambda: database.sql(f"select status from holdfast.v_crawl where id = '{crawl}'") == "sealed"
        )
        for worker in workers:
            worker.terminate()
        for worker in workers:
            self.assertEqual(self.home.finish(worker).code, OK)

        done = self.records("list", "snapshots", "--crawl", crawl, "--limit", "100")
        self.assertEqual(sorted(s["url"] for s in done), sorted(old.pending))
        self.assertEqual({(s["status"], s["outcome"], s["attempts"]) for s in done}, {("sealed", "succeeded", 1)})
        owners = database.sql(
            f"select count(distinct owner_id) from holdfast.snapshot_sealed where crawl_id = '{crawl}'"
        )
        self.assertEqual(owners, "3")
        self.assertEqual(len(self.home.attempts()), PAGES + 40)
        self.assertEqual(self.records("check"), [])
        verification = self.records("verify", "--all")[-1]
        self.assertEqual(
            (verification["snapshots"], verification["defects"], verification["without_row"]), (PAGES + 40, 0, 0)
        )
        again, _ = self.take(old.data, "--pending")
        self.assertEqual((again["imported"], again["known"]), (0, PAGES))
        self.assertEqual(len(self.records("list", "crawls")), 2)


class Interrupted(Import):
    def test_a_killed_import_goes_on(self):
        old = Directory(self.home.path / "old", "0.7", 200)
        process = self.home.start("import", "archivebox", old.data)
        until("some pages are there", lambda: len(self.home.attempts()) >= 60, 60)
        process.send_signal(signal.SIGKILL)
        self.home.finish(process)
        summary, _ = self.take(old.data)
        self.assertEqual(summary["imported"] + summary["known"], 200)
        self.assertGreater(summary["imported"], 0)
        self.assertEqual(self.records("check"), [])
        verification = self.records("verify", "--all")[-1]
        self.assertEqual((verification["snapshots"], verification["defects"]), (200, 0))
        self.assertEqual(verification["without_row"], 0)
        left = [p for p in (self.home.data / "archive").rglob(".a*")]
        self.assertEqual(left, [])

    def test_sigint_ends_in_order(self):
        old = Directory(self.home.path / "old", "0.7", 200)
        process = self.home.start("import", "archivebox", old.data)
        until("some pages are there", lambda: len(self.home.attempts()) >= 60, 60)
        process.send_signal(signal.SIGINT)
        done = self.home.finish(process)
        self.assertEqual(done.code, 130, str(done))
        summary = json.loads(done.out.splitlines()[-1])
        self.assertEqual(len(self.home.attempts()), summary["imported"])


class Guide(Import):
    """deploy/archivebox.md: every command in it can be given."""

    STAY = ("serve", "psql", "run --daemon", "worker")  # they do not end by themselves

    def look(self):
        """The overview as `holdfast serve` shows it."""
        self.home.environment["HOLDFAST_SERVE_LISTEN"] = "127.0.0.1:0"
        server = self.home.start("serve")
        try:
            with urllib.request.urlopen(re.search(r"http://\S+", server.stdout.readline())[0], timeout=60) as page:
                return page.read().decode()
        finally:
            server.terminate()
            self.assertEqual(self.home.finish(server).code, OK)

    def test_the_whole_way(self):
        """Import, run, look. tests/deploy/package.py runs the first line, the installation."""
        old = Directory(self.home.path / "archivebox", "0.7", 8)
        old.add_pending()
        install, *commands, serve = guide("Coming from ArchiveBox")
        self.assertEqual((install, serve), ("apt install ./holdfast_*.deb", "holdfast serve"))
        for command in commands:
            done = self.home.run(*shlex.split(command.replace("~", str(self.home.path)))[1:])
            self.assertEqual(done.code, OK, f"{command}: {done}")
        snapshots = self.records("list", "snapshots", "--limit", "100")
        self.assertEqual({s["status"] for s in snapshots}, {"sealed"})
        own = [s["url"] for s in snapshots if not s["source"]]
        self.assertEqual(sorted(own), sorted(old.pending))
        self.assertIn("ArchiveBox archivebox, not archived yet", self.look())

    def test_commands(self):
        old = Directory(self.home.path / "archivebox", "0.9", 8)
        old.add_pending()
        table = re.search(r"^## Commands\n(.*?)^## ", GUIDE, re.S | re.M)[1]
        commands = [f"holdfast import archivebox {old.data}"] + [
            c for line in table.splitlines() for c in re.findall(r"`(holdfast [^`]*)`", line.split(" | ", 1)[-1])
        ]
        self.assertGreater(len(commands), 25)
        (self.home.path / "bookmarks.html").write_text('<a href="https://site.test/bookmark">One</a>')
        self.home.hook("title", "on_Snapshot__54_title.sh", "echo x >title.txt")
        self.home.hook("wget", "on_Snapshot__35_wget.sh", "echo x >page.html")
        for number, command in enumerate(commands):
            with self.subTest(command=command):
                words = shlex.split(command.replace("~", str(self.home.path)))[1:]
                known = {"URL": f"https://site.test/new{number}", "WORDS": "kestrel"}
                if "ID" in words:
                    known["ID"] = self.records("list", "snapshots", "--limit", "1")[0]["id"]
                if "CRAWL" in words:
                    known["CRAWL"] = next(c["id"] for c in self.records("list", "crawls") if c["label"] == "First")
                words = [known.get(word, word) for word in words]
                if any(command.removeprefix("holdfast ").startswith(stay) for stay in self.STAY):
                    words = [words[0], "--help"]
                done = self.home.run(*words)
                missing = words[0] == "doctor" and done.code == FAILED_WORK  # programs that this machine lacks
                self.assertTrue(done.code == OK or missing, str(done))


class Hostile(Import):
    def refused(self, data, code, *words):
        self.check_error(self.home.run("import", "archivebox", data), code, *words)

    def test_what_is_no_data_directory(self):
        empty = self.home.path / "empty"
        empty.mkdir()
        self.refused(empty, USAGE, "index.sqlite3", str(empty))
        (empty / "index.sqlite3").write_text("this is text, not a database " * 100)
        self.refused(empty, REFUSED, "not a database")
        (empty / "index.sqlite3").unlink()
        other = sqlite3.connect(empty / "index.sqlite3")
        other.execute("create table something (id)")
        other.commit()
        self.refused(empty, REFUSED, "core_snapshot")
        (empty / "index.sqlite3").unlink()
        os.mkfifo(empty / "index.sqlite3")
        self.refused(empty, REFUSED, "not a file")

    def test_a_locked_index_is_read(self):
        old = Directory(self.home.path / "old", "0.9", 3)
        old.index.execute("begin exclusive")
        self.assertEqual(self.take(old.data)[0]["imported"], 3)
        old.index.rollback()

    def test_a_damaged_index_gives_what_can_be_read(self):
        old = Directory(self.home.path / "old", "0.7", 60)
        old.index.close()
        with open(old.data / "index.sqlite3", "r+b") as file:
            file.seek(4096 * 5)
            file.write(os.urandom(4096))
        result = self.home.run("import", "archivebox", old.data)
        self.assertIn(result.code, (OK, FAILED_WORK, REFUSED), str(result))
        self.assertNotIn("terminate called", result.err)

    def test_rows_of_any_type_and_size(self):
        old = Directory(self.home.path / "old", "0.7", 3)
        stamp = old.archived[1]["timestamp"]
        old.index.execute("update core_snapshot set title = zeroblob(90000000) where timestamp = ?", (stamp,))
        old.index.execute("update core_archiveresult set output = ?, start_ts = 'never'", ("y" * 5_000_000,))
        old.index.execute("update core_tag set name = x'00ff0001' where name = 'birds'")
        old.index.commit()
        summary, problems = self.take(old.data, code=FAILED_WORK)
        self.assertEqual((summary["found"], summary["imported"]), (3, 2))
        self.assertIn("too big", problems[0]["detail"])


if __name__ == "__main__":
    unittest.main()
