"""The frozen collection of 1.0 (tests/fixtures/collection-1.0.tar.xz: database, archive, a WACZ, the rows of its lists):
each later program opens, reads, verifies, continues and exports it, and brings its schema up to date.

HOLDFAST_FROZEN=write makes it again; until 1.0.0 is tagged, that is done whenever a migration changes, or the type of
a function. Until then, a fixture of other migrations than those of the tree is not used: the test makes one like it.
"""

import hashlib
import json
import os
import re
import shutil
import tarfile
from pathlib import Path

from test_import_warc import SITE

from harness.case import OK, Case
from harness.warc import members

ROOT = Path(__file__).resolve().parents[2]
FROZEN = ROOT / "tests/fixtures/collection-1.0.tar.xz"
MOST = 310_000  # bytes
LISTS = ("crawls", "snapshots", "results", "schedules", "webhooks", "personas", "shelves", "hosts")


def migrations():
    """What the numbered migrations of the tree are."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "migrations").glob("[0-9]*.sql")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def is_released():
    return int(re.search(r"project\(holdfast VERSION (\d+)", (ROOT / "CMakeLists.txt").read_text())[1]) >= 1


class Frozen(Case):
    def freeze(self, to):
        """A collection with a bit of everything, as `holdfast backup` and `holdfast export` write it."""
        home = self.place()
        home.environment["PATH"] = "/usr/local/bin:/usr/bin:/bin"  # a record of each hook has it
        home.hold()
        home.hook(
            "text", "on_Snapshot__30_text.sh", "[[ $name != bad ]] || exit 3; echo 'An old lighthouse.' >content.txt"
        )
        urls = ["https://site.test/one", "https://site.test/bad"]
        home.holdfast("add", "--tag", "a,b", "--label", "By hand", "--notes", "Of May", *urls, expect=None)
        home.holdfast("add", "--bg", "--label", "queued", "https://site.test/later")
        warc = home.path / "site.warc.gz"
        warc.write_bytes(members(*SITE[:3]))
        home.holdfast("import", "warc", warc)
        home.holdfast("schedule", "add", "--every", "daily", "--label", "daily", urls[0])
        home.holdfast("watch", "add", "--every", "1h", "--label", "watched", urls[1])
        home.holdfast("webhook", "add", "ops", "https://hooks.test/")
        home.holdfast("persona", "set", "work", "--host", "site.test")
        home.holdfast("shelf", "put", "reading", urls[0])
        home.holdfast("host", "set", "site.test", "--delay", "1s")
        home.holdfast("backup", to)
        home.holdfast("export", "--all", "-o", to / "collection.wacz")
        rows = {name: home.lines("list", name, "-n", "1000") for name in LISTS}
        lines = [
            json.dumps({"migrations": migrations()}),
            *(json.dumps({"list": name, **row}) for name in rows for row in rows[name]),
        ]
        (to / "rows.jsonl").write_text("\n".join(lines) + "\n")
        return to

    def frozen(self):
        """The directory of a copy, which others may read, and the rows of its lists."""
        copy = self.collection().path / "frozen"
        if os.environ.get("HOLDFAST_FROZEN") == "write":
            self.freeze(copy)
            with tarfile.open(FROZEN, "w:xz", preset=9) as tar:
                tar.add(copy, ".")
            shutil.rmtree(copy)
        if FROZEN.exists():
            self.assertLess(FROZEN.stat().st_size, MOST)
            with tarfile.open(FROZEN) as tar:
                tar.extractall(copy)
            known, rows = self.known(copy)
            if is_released() or known == migrations():
                return copy, rows
            shutil.rmtree(copy)
        self.assertFalse(is_released(), "the frozen collection is gone")
        return self.freeze(copy), self.known(copy)[1]

    @staticmethod
    def known(place):
        """The migrations of a frozen collection, and the rows of its lists."""
        first, *lines = map(json.loads, (place / "rows.jsonl").read_text().splitlines())
        rows = {name: [] for name in LISTS}
        for row in lines:
            rows[row.pop("list")].append(row)
        return first["migrations"], rows

    def restored(self):
        copy, rows = self.frozen()
        home = self.place(filled=False)
        home.hook("text", "on_Snapshot__30_text.sh", "echo 'A new lighthouse.' >content.txt")
        told = home.holdfast("restore", copy).records[0]
        self.assertEqual((told["defects"], told["without_row"]), (0, 0), told)
        return home, rows, copy

    def test_it_is_opened_read_verified_continued_and_exported(self):
        home, rows, copy = self.restored()
        home.hold()
        for name, then in rows.items():
            now = {json.dumps([row.get(key) for key in ("id", "name", "snapshot_id", "plugin", "hook_name")]): row
                   for row in home.lines("list", name, "-n", "1000")}  # fmt: skip
            for row in then:
                key = json.dumps([row.get(key) for key in ("id", "name", "snapshot_id", "plugin", "hook_name")])
                moving = {"age", "held", "updated_at"}
                kept = {column: value for column, value in row.items() if column not in moving}
                self.assertEqual(kept, {column: now[key][column] for column in kept}, name)
        self.assertEqual([row["url"] for row in home.lines("search", "lighthouse")][:1], ["https://site.test/one"])
        self.assertEqual(home.lines("search", "osprey")[0]["url"], "http://old.test/")
        home.holdfast("verify", "--all")
        home.holdfast("check")
        home.holdfast("run")
        later = [row for row in home.lines("list", "snapshots") if row["url"] == "https://site.test/later"][0]
        self.assertEqual((later["status"], later["outcome"]), ("sealed", "succeeded"))
        self.assertEqual(home.run("add", "https://site.test/new").code, OK)
        out = home.path / "again.wacz"
        home.holdfast("export", "--all", "-o", out)
        captured = home.lines("list", "snapshots", "--tag", "nothing")
        self.assertEqual(captured, [])
        self.assertGreaterEqual(out.stat().st_size, (copy / "collection.wacz").stat().st_size)
        other = self.place(held=True)
        other.holdfast("import", "warc", copy / "collection.wacz")
        self.assertIn("http://old.test/", {row["url"] for row in other.lines("list", "snapshots")})

    def test_its_schema_is_brought_forward(self):
        home, _, _ = self.restored()
        home.hold()
        ledger = "update holdfast.schema_migration set checksum = 'of 1.0' where number is null"
        home.holdfast("psql", "--role", "owner", "-c", ledger)
        applied = home.lines("migrate")[0]["applied"]
        self.assertTrue(applied and all(name.startswith("functions/") for name in applied))
        home.holdfast("check")
        self.assertEqual(home.lines("migrate")[0]["applied"], [])
