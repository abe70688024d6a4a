"""A database that is lost: its rows are made again from the files."""

import json
import shutil
import unittest

from harness.case import FAILED_WORK, OK, REFUSED, USAGE, Case

COLUMNS = (
    "url",
    "title",
    "status",
    "outcome",
    "depth",
    "tags",
    "directory",
    "manifest_sha256",
    "bytes",
    "files",
    "http_status",
    "mime",
    "facts",
)
RESULT = ("plugin", "hook_name", "status", "output", "error", "output_files", "output_bytes", "wall_ms")
CRAWL = (
    "id",
    "label",
    "notes",
    "tags",
    "status",
    "outcome",
    "total",
    "succeeded",
    "partial",
    "failed",
    "bytes",
    "max_depth",
    "first_url",
    "created_by",
    "created_at",
    "plugins",
)


class Adopting(Case):
    def records(self, *arguments):
        result = self.home.holdfast(*arguments)
        return result.records

    def everything(self):
        """Everything that people see of it."""
        crawls = {c["id"]: {k: c[k] for k in CRAWL} for c in self.records("list", "crawls")}
        snapshots = {s["id"]: {k: s[k] for k in COLUMNS} for s in self.records("list", "snapshots")}
        results = sorted(
            json.dumps({k: r[k] for k in RESULT} | {"of": r["snapshot_id"]}, sort_keys=True)
            for r in self.records("list", "results")
        )
        return crawls, snapshots, results

    def lose_database(self):
        self.home.let_go()
        self.assertIsNone(self.home.server_pid())
        shutil.rmtree(self.home.data / "postgres")

    def setUp(self):
        self.home = self.place(held=True)
        self.home.hook(
            "title",
            "on_Snapshot__20_title.sh",
            """echo x >title.txt; echo '{"type":"Response","url":"'$url'","status":200,"mime":"text/html"}'
                       echo '{"type":"Resources","count":3,"missing":{"refused":1}}'
                       echo '{"type":"Facts","theme":"dark","cut":["load",{"A":0.5}]}'
                       echo '{\"type\":\"ArchiveResult\",\"status\":\"succeeded\",\"output_str\":\"Found\"}'""",
        )
        self.home.hook(
            "bad",
            "on_Snapshot__30_bad.sh",
            '[[ $name == good* ]] || { echo "no $name" >&2; exit 1; }; mkdir deep; echo x >deep/x.txt',
        )
        self.home.hook(
            "links",
            "on_Snapshot__40_links.sh",
            'echo "{\\"type\\":\\"Snapshot\\",\\"url\\":\\"https://site.test/good-link\\"}"',
        )
        done = self.home.run(
            "add",
            "--depth",
            "1",
            "--label",
            "First",
            "--tag",
            "one,two",
            "--notes",
            "Of May",
            "https://site.test/good",
            "https://site.test/evil",
        )
        self.assertEqual(done.code, OK, str(done))
        self.assertEqual(self.home.run("add", "https://site.test/good-later").code, OK)

    def test_a_lost_database_costs_nothing_that_the_files_know(self):
        before = self.everything()
        self.assertEqual(len(before[1]), 4)
        self.assertEqual({(s["http_status"], s["mime"]) for s in before[1].values()}, {(200, "text/html")})
        for one in before[1].values():
            facts = one["facts"]
            self.assertEqual((facts["theme"], facts["cut"], facts["resources"]), ("dark", ["load", {"A": 0.5}], 3))
            self.assertEqual(set(facts) >= {"requests", "requests_refused", "received_bytes", "missing_reasons"}, True)
        self.lose_database()
        adopted = self.records("adopt", self.home.data / "archive")[0]
        self.assertEqual(
            (adopted["type"], adopted["snapshots"], adopted["crawls"], adopted["unreadable"]), ("Adoption", 4, 2, 0)
        )
        after = self.everything()
        for old, new in zip(before, after):
            self.assertEqual(new, old)
        self.assertEqual(self.records("check"), [])
        verification = self.records("verify", "--all")[-1]
        self.assertEqual((verification["snapshots"], verification["defects"], verification["without_row"]), (4, 0, 0))
        snapshot = next(iter(after[1]))
        self.assertEqual(self.records("show", snapshot)[0]["id"], snapshot)
        # It may be repeated, and the collection goes on.
        self.assertEqual(self.records("adopt")[0]["snapshots"], 0)
        self.assertEqual(self.everything(), after)
        self.assertEqual(self.records("add", "--only-new", "https://site.test/good")[0]["type"], "Archived")
        self.assertEqual(self.home.run("add", "https://site.test/good-new").code, OK)
        self.assertEqual(self.records("check"), [])

    def test_directories_without_rows(self):
        one = self.records("list", "--url", "good-later")[0]
        self.lose_database()
        self.assertEqual(
            self.records("adopt", self.home.data / "archive" / one["directory"].rsplit("/", 1)[0])[0]["snapshots"], 1
        )
        result = self.home.holdfast("verify", "--all", expect=FAILED_WORK)
        missing = [record for record in result.records if record["type"] == "Defect"]
        self.assertEqual([record["kind"] for record in missing], ["no row"] * 3)
        self.assertEqual(result.records[-1]["without_row"], 3)
        self.assertEqual(self.records("adopt")[0]["snapshots"], 3)
        self.assertEqual(self.home.run("verify", "--all").code, OK)

    def test_files_that_cannot_be_read(self):
        directory = self.records("list", "--url", "good-later")[0]["directory"]
        self.lose_database()
        index = self.home.data / "archive" / directory / "index.jsonl"
        index.chmod(0o644)
        index.write_text('{"type": "Snapshot", "id": "another"}\n')
        result = self.home.holdfast("adopt", expect=FAILED_WORK)
        self.assertEqual((result.records[-1]["snapshots"], result.records[-1]["unreadable"]), (3, 1))
        self.assertIn(directory, result.records[0]["detail"])
        self.assertEqual(self.records("check"), [])

    def test_what_is_no_archive_or_belongs_to_another(self):
        self.check_error(self.home.run("adopt", "/nowhere"), USAGE, "/nowhere")
        self.check_error(self.home.run("adopt", self.home.plugins), USAGE, "archive.root")
        other = self.place(filled=False)  # copies are of one collection
        self.assertEqual(other.run("add", "https://site.test/good").code, OK)
        result = self.home.run("--set", f"archive.root={other.data / 'archive'}", "adopt")
        self.check_error(result, REFUSED, "holds crawls of its own")


if __name__ == "__main__":
    unittest.main()
