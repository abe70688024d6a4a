"""Everything works whatever the umask, and no other user of the machine reads a secret or a page that is in work."""

import itertools
import stat
import subprocess

from harness.full import some_of
from worker import WorkerCase, until
from harness.case import OK
from harness.collection import ROOT

SECRET = "secret-in-the-jar"
# Says where it works, and waits there.
HOOK = """
mkdir deep; echo x >deep/page.txt; cp "$COOKIES_FILE" mine.txt
for ((i = 0; i < 1200; i++)); do [ -e go ] && break; sleep 0.1; done
rm -f mine.txt go
"""


class Umask(WorkerCase):
    def seen_by_others(self, top):
        """What a user who is neither the worker nor a hook finds with that secret in it, by trying."""
        ids = {"user": 31337, "group": 31337, "extra_groups": []} if ROOT else None
        if ids is None:
            self.skipTest("only root can look as another user")
        found = subprocess.run(
            ["grep", "-rls", SECRET, str(top)], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, **ids
        )
        return found.stdout.split()

    def check(self, mask, plain):
        home = self.worker_place(plain=plain)
        home.environment["HOLDFAST_HOOK_SANDBOX"] = "auto"
        home.environment["HOLDFAST_PERSONA_PLUGINS"] = "page"
        home.hook("page", "on_Snapshot__50_page.sh", HOOK)
        home.identity["umask"] = mask  # of every program that is started below
        jar = home.path / "jar.txt"
        jar.write_text(f"# Netscape HTTP Cookie File\n.site.test\tTRUE\t/\tFALSE\t0\tname\t{SECRET}\n")
        jar.chmod(0o644)
        self.assertEqual(home.run("persona", "import", "work", jar, **home.identity).code, OK)
        jar.unlink()
        home.work()
        added = home.run("add", "https://site.test/", "--bg", "--persona", "work", "-p", "page", **home.identity)
        self.assertEqual(added.code, OK, added)
        (mine,) = until("the hook works", lambda: list(home.data.glob("work/workers/*/attempts/*/*/*/page/mine.txt")))
        until("it has the cookies", lambda: SECRET in mine.read_text())
        self.assertEqual(self.seen_by_others(home.path), [])
        (mine.parent / "go").touch()
        until("it is sealed", lambda: home.sql("select outcome from holdfast.snapshot_sealed") == [["succeeded"]])
        (attempt,) = home.attempts()
        file = attempt / "page/deep/page.txt"
        self.assertEqual(file.read_text(), "x\n")
        for path, most in ((file, 0o444), (file.parent, 0o755), (attempt, 0o755), (attempt / "index.html", 0o444)):
            mode = stat.S_IMODE(path.stat().st_mode)
            self.assertEqual(mode & 0o044, most & ~mask & 0o044, f"{path} {oct(mode)}")
        for verb in (["verify", "--all"], ["check"], ["list", "snapshots"], ["export", "--all", "-o", "out.wacz"]):
            result = home.run(*verb, **home.identity)
            self.assertEqual(result.code, OK, result)
        self.assertEqual(self.seen_by_others(home.path), [])
        for path in home.data.rglob("*"):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode):
                self.assertFalse(mode & stat.S_IWOTH, f"{path} {oct(mode)}")
        home.leave()

    def test_umask(self):
        masks = (0o000, 0o022, 0o027, 0o077)
        for mask, plain in some_of(itertools.product(masks, (False, True) if ROOT else (True,)), 3):
            with self.subTest(umask=oct(mask), plain=plain):
                self.check(mask, plain)
