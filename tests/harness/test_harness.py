#!/usr/bin/env python3
"""What a suite starts ends with it, however it ends."""

import signal
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import postgres  # noqa: E402
from harness.wait import until  # noqa: E402
from harness.worker import living  # noqa: E402

SUITE = f"""
import sys
sys.path.insert(0, {str(HERE.parent)!r})
from harness.postgres import Server
from harness.wait import end_in_order
end_in_order()
with Server() as server:
    print(server.process.pid, server.directory, flush=True)
    sys.stdin.read()
"""


@unittest.skipUnless(postgres.find_programs(), "the programs of a PostgreSQL server are not installed")
class Ending(unittest.TestCase):
    def end_a_suite(self, number):
        """The directory of a suite's server, after the suite was ended by a signal and its server has ended."""
        suite = subprocess.Popen(
            [sys.executable, "-B", "-c", SUITE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(suite.stdout.close)
        self.addCleanup(suite.stdin.close)
        pid, directory = suite.stdout.readline().split()
        self.assertTrue(living(int(pid)))
        suite.send_signal(number)
        suite.wait(60)
        until("the server has ended", lambda: not living(int(pid)), 60)
        return Path(directory)

    def test_a_suite_that_is_told_to_end_leaves_neither_server_nor_directory(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.assertFalse(self.end_a_suite(number).exists())

    def test_a_suite_that_is_killed_leaves_no_server(self):
        directory = self.end_a_suite(signal.SIGKILL)
        self.assertTrue(directory.exists())
        subprocess.run(["rm", "-rf", directory], check=True)


if __name__ == "__main__":
    unittest.main()
