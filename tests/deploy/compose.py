#!/usr/bin/env python3
"""The compose files are valid, with each of their profiles and with the services that it adds.

    tests/deploy/compose.py

Program: "docker compose", or Debian's docker-compose (1.29), neither of which needs a daemon for that. Exit 77: both
are missing.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLUSTER = {"postgres", "migrate", "logins", "runner", "worker", "page", "secrets"}


def compose():
    """The command; None: there is none."""
    if shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


class ComposeFiles(unittest.TestCase):
    def services(self, path, *words, **environment):
        text = path.read_text()
        if compose() == ["docker-compose"]:  # 1.29 does not know the name of a project
            text = re.sub(r"^name: .*\n", "", text, flags=re.MULTILINE)
        with tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / path.name
            file.write_text(text)
            command = [*compose(), "--project-directory", str(path.parent), "-f", str(file), *words, "config"]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = re.search(r"^services:\n((?: .*\n)*)", done.stdout, re.MULTILINE)[1]
        return set(re.findall(r"^  (\S+):$", listed, re.MULTILINE)), done.stdout

    def test_its_profiles(self):
        for profile in ("tools", "replay"):
            services, whole = self.services(ROOT / "docker-compose.yml", "--profile", profile, PYWB_IMAGE="pywb:test")
            self.assertLessEqual(CLUSTER | {"holdfast" if profile == "tools" else profile}, services)
        self.assertIn("image: pywb:test", whole)
        self.assertIn(f"{ROOT}/deploy/replay", whole)

    def test_a_worker_of_another_machine(self):
        services, whole = self.services(ROOT / "deploy/worker-compose.yml", HOLDFAST_DATABASE_HOST="database.test")
        self.assertEqual(services, {"worker"})
        self.assertIn("@database.test:5432/", whole)


if __name__ == "__main__":
    if compose() is None:
        print("docker-compose is not installed")
        sys.exit(77)
    unittest.main()
