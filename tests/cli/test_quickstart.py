"""deploy/quickstart in a tree that is built already: what it does with its arguments."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from harness.case import OK, PROGRAM, USAGE, Case
from harness.collection import DEADLINE, Result

SCRIPT = Path(__file__).resolve().parents[2] / "deploy/quickstart"


class Quickstart(Case):
    def setUp(self):
        self.home = self.place(filled=False)
        tree = self.home.path / "tree"
        (tree / "deploy").mkdir(parents=True)
        (tree / "build/release/bin").mkdir(parents=True)
        (tree / "build/release/build.ninja").touch()
        (tree / "build/release/bin/holdfast").symlink_to(PROGRAM)
        self.script = tree / "deploy/quickstart"
        shutil.copy(SCRIPT, self.script)
        # There is nothing to install and nothing to build.
        (tree / "deploy/packages").write_text('holdfast_install() { :; }\nholdfast_logged() { shift; "$@"; }\n')
        tools = self.home.path / "tools"
        tools.mkdir()
        (tools / "cmake").symlink_to(shutil.which("true"))
        self.environment = {**self.home.environment, "PATH": f"{tools}:{os.environ['PATH']}"}

    def quickstart(self, *arguments):
        done = subprocess.run(
            ["sh", self.script, *map(str, arguments)],
            cwd=self.home.path,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def test_it_takes_the_options_of_add(self):
        result = self.quickstart(
            "--label",
            "Two words",
            f"--dir={self.home.data}",
            "--depth=0",
            "--tag",
            "reading",
            "https://site.test/quick",
        )
        self.assertEqual(result.code, OK, str(result))
        self.assertIn("holdfast serve", result.out)
        listed = self.home.run("list", "snapshots").records
        self.assertEqual([(s["url"], s["tags"]) for s in listed], [("https://site.test/quick", ["reading"])])
        self.assertEqual([c["label"] for c in self.home.run("list", "crawls").records], ["Two words"])

    def test_mistakes(self):
        self.assertEqual(self.quickstart("--dir").code, USAGE)
        result = self.quickstart("--dir", self.home.data, "--dept=1", "https://site.test/quick")
        self.assertEqual(result.code, USAGE, str(result))
        self.assertIn("--depth?", result.err)


if __name__ == "__main__":
    unittest.main()
