#!/usr/bin/env python3
"""The compose files are valid, with each of their profiles and with the services that it adds.

    tests/deploy/compose.py

Program: "docker compose" or docker-compose, of version 2, which needs no daemon for that. Exit 77: there is none.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/compose"))
from engine import compose_words

CLUSTER = {"postgres", "migrate", "logins", "runner", "worker", "page", "secrets"}


class ComposeFiles(unittest.TestCase):
    def services(self, path, *words, **environment):
        command = [*compose_words(), "--project-directory", str(path.parent), "-f", str(path), *words, "config"]
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

    def test_numbers_and_alerts(self):
        services, whole = self.services(ROOT / "docker-compose.yml", "--profile", "observe")
        self.assertEqual(services, CLUSTER | {"prometheus", "grafana"})
        for file in sorted((ROOT / "deploy/observe/compose").glob("*.yml")):
            self.assertTrue(f"{file}" in whole or f"--config.file=/observe/compose/{file.name}" in whole, file)

    def test_workers_with_namespaces(self):
        more = ["-f", str(ROOT / "deploy/namespaces-compose.yml")]
        _, whole = self.services(ROOT / "docker-compose.yml", *more)
        self.assertEqual(whole.count("seccomp=unconfined"), 1)
        self.assertIn("HOLDFAST_HOOK_SANDBOX: required", whole)

    def test_a_worker_of_another_machine(self):
        services, whole = self.services(ROOT / "deploy/worker-compose.yml", HOLDFAST_DATABASE_HOST="database.test")
        self.assertEqual(services, {"worker"})
        self.assertIn("@database.test:5432/", whole)


if __name__ == "__main__":
    if compose_words() is None:
        print(f"{sys.argv[0]}: skipped: there is no docker compose of version 2 (Debian 13 has it)", file=sys.stderr)
        sys.exit(77)
    unittest.main()
