"""holdfast backup and restore: everything is lost, and comes back."""

import json
import shutil
import unittest

from test_adopt import COLUMNS, CRAWL, RESULT
from test_errors import can_mount, with_mounts

from harness.case import CANNOT_CREATE, FAILED_WORK, INPUT_OUTPUT, OK, REFUSED, Case

URL = "https://site.test/good"


class Backup(Case):
    def setUp(self):
        self.home = self.place(held=True)
        self.home.hook(
            "text",
            "on_Snapshot__30_text.sh",
            "echo 'An old lighthouse.' | tee content.txt; [[ $name != slow* ]] || gate slow",
        )
        self.backup = self.home.path / "backup"
        done = self.home.run("add", "--tag", "one", "--notes", "Of May", URL, "https://site.test/more")
        self.assertEqual(done.code, OK, str(done))
        self.home.holdfast("schedule", "add", "--every", "daily", URL)

    def everything(self):
        lines = self.home.lines
        return (
            {c["id"]: {k: c[k] for k in CRAWL} for c in lines("list", "crawls")},
            {s["id"]: {k: s[k] for k in COLUMNS} for s in lines("list", "snapshots")},
            sorted(json.dumps({k: r[k] for k in RESULT}, sort_keys=True) for r in lines("list", "results")),
            [one["id"] for one in lines("list", "schedules")],
            [one["url"] for one in lines("search", "lighthouse")],
        )

    def lose_everything(self):
        self.home.let_go()
        shutil.rmtree(self.home.data)

    def test_all_is_back_after_losing_everything(self):
        before = self.everything()
        told = self.home.holdfast("backup", self.backup).records[0]
        self.assertEqual((told["pages"], told["files"]), (2, True))
        self.assertGreater(told["copied_files"], 8)
        self.lose_everything()
        restored = self.home.holdfast("restore", self.backup).records[0]
        self.assertEqual((restored["snapshots"], restored["defects"], restored["without_row"]), (2, 0, 0))
        self.assertEqual(self.everything(), before)
        self.home.holdfast("check")
        self.assertEqual(self.home.run("add", "https://site.test/later").code, OK)
        self.assertEqual(self.home.run("verify", "--all").code, OK)

    def test_while_pages_are_archived(self):
        run = self.home.start("add", "https://site.test/slow", "https://site.test/quick")
        self.home.until("the slow page is in work", lambda: self.home.arrived("slow"))
        self.home.holdfast("backup", self.backup)
        self.home.open("slow")
        self.assertEqual(self.home.finish(run).code, OK)
        again = self.home.holdfast("backup", self.backup).records[0]
        self.assertEqual(again["pages"], 4)
        self.assertEqual(self.home.holdfast("backup", self.backup).records[0]["copied_files"], 0)
        self.lose_everything()
        self.home.holdfast("restore", self.backup)
        self.assertEqual(len(self.home.lines("list", "snapshots", "--status", "sealed")), 4)

    def test_nothing_is_overwritten(self):
        self.home.holdfast("backup", self.backup)
        before = self.everything()
        refused = self.home.holdfast("restore", self.backup, expect=REFUSED)
        self.assertIn("there is a collection already", refused.err)
        self.assertEqual(self.everything(), before)
        (self.home.path / "other").mkdir()
        (self.home.path / "other/file").touch()
        self.home.holdfast("backup", self.home.path / "other", expect=REFUSED)
        self.home.holdfast("restore", self.home.path / "other", expect=REFUSED)
        about = json.loads((self.backup / "backup.json").read_text())
        (self.backup / "backup.json").write_text(json.dumps({**about, "collection": "x"}))
        self.assertIn("another collection", self.home.holdfast("backup", self.backup, expect=REFUSED).err)

    def test_a_damaged_backup_is_not_restored(self):
        self.home.holdfast("backup", self.backup)
        self.lose_everything()
        dump = self.backup / "database.dump"
        good = dump.read_bytes()
        dump.write_bytes(good[:-100])
        self.assertIn("damaged", self.home.holdfast("restore", self.backup, expect=INPUT_OUTPUT).err)
        about = json.loads((self.backup / "backup.json").read_text())
        (self.backup / "backup.json").write_text(json.dumps({**about, "dump_sha256": "0" * 64}))
        dump.write_bytes(good)
        self.home.holdfast("restore", self.backup, expect=INPUT_OUTPUT)
        (self.backup / "backup.json").write_text(json.dumps(about))
        content = next(self.backup.glob("archive/**/content.txt"))
        content.unlink()
        content.write_text("other")
        told = self.home.holdfast("restore", self.backup, expect=FAILED_WORK)
        self.assertEqual(told.records[-1]["defects"], 1)
        self.assertEqual(len(self.home.lines("list", "snapshots")), 2)

    def test_a_full_disk_leaves_nothing_half(self):
        if not can_mount():
            self.skipTest("no right to mount")
        small = self.home.path / "small"
        small.mkdir()
        for size in ("64k", "300k"):  # full of files; of the dump
            mount = with_mounts(
                f"mount -t tmpfs -o size={size} none {small} && trap 'find {small} >{self.home.path}/left' EXIT; true"
            )
            mount[4] = mount[4].replace('exec "$@"', '"$@"')
            done = self.home.run("backup", small / "b", prefix=mount)
            self.assertIn(done.code, (CANNOT_CREATE, INPUT_OUTPUT), str(done))
            self.assertIn("nothing of the backup was left", done.err)
            self.assertIn("space", done.err)
            self.assertEqual((self.home.path / "left").read_text().splitlines(), [str(small)])


if __name__ == "__main__":
    unittest.main()
