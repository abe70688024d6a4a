"""However the program ends, nothing of it runs on, and the next one finishes the work, once."""

import os
import signal
import subprocess
import unittest
from pathlib import Path

from harness.case import INTERRUPTED, OK, Case
from harness.collection import SHORT_LEASE
from harness.wait import until

GATED = 'echo half >half.txt; (trap "" TERM HUP INT; sleep 600) & setsid sleep 600 & gate "$name"; echo done >done.txt'


class Ending(Case):
    def begin(self, *urls):
        """A collection in which `add` is in the middle of its work."""
        home = self.place()
        home.environment.update(SHORT_LEASE)
        home.hook("slow", "on_Snapshot__20_slow.sh", GATED)
        adding = home.start("add", *(f"https://site.test/{url}" for url in urls))
        until("the hooks are at their gates", lambda: all(home.arrived(url) for url in urls))
        self.assertGreaterEqual(len(home.hooks()), 3 * len(urls))
        return home, adding

    def check_finished(self, home, count, **wanted):
        """`run` ends by itself when all is done, and stops the server that no other process needs."""
        home.open("all")
        home.holdfast("run")
        self.assertIsNone(home.server_pid())
        snapshots = home.run("list").records
        self.assertEqual(len(snapshots), count)
        for snapshot in snapshots:
            self.assertEqual((snapshot["status"], snapshot["outcome"]), ("sealed", "succeeded"), snapshot)
            for key, value in wanted.items():
                self.assertEqual(snapshot[key], value, snapshot)
            directory = home.data / "archive" / snapshot["directory"]
            self.assertIn(directory, home.attempts())
            subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "manifest-sha256.txt"], cwd=directory, check=True)
        self.assertEqual(len(home.attempts()), count)
        self.assertEqual([c["status"] for c in home.run("list", "crawls").records], ["sealed"])
        self.assertEqual(home.run("check").records, [])
        workers = home.data / "work/workers"
        self.assertEqual(list(workers.iterdir()), [])

    def test_interrupt(self):
        home, adding = self.begin("one", "two")
        adding.send_signal(signal.SIGINT)
        result = home.finish(adding)
        self.assertEqual(result.code, INTERRUPTED, str(result))
        self.assertIn("holdfast run", result.err)
        self.assertEqual(home.hooks(), [])
        self.assertIsNone(home.server_pid())
        self.assertEqual(home.attempts(), [])
        self.check_finished(home, 2, attempts=1, lapses=0)

    def test_terminate(self):
        home, adding = self.begin("one")
        adding.terminate()  # what runs is finished
        home.open("one")
        result = home.finish(adding)
        self.assertEqual(home.hooks(), [])
        self.assertEqual(len(home.attempts()), 1, str(result))
        self.check_finished(home, 1, fence=1)

    def test_hang_up(self):
        home, adding = self.begin("one")
        adding.send_signal(signal.SIGHUP)
        adding.send_signal(signal.SIGINT)
        home.finish(adding)
        self.assertEqual(home.hooks(), [])
        self.assertIsNone(home.server_pid())
        self.check_finished(home, 1, lapses=0)

    def check_killed(self, victims, server_stays):
        home, adding = self.begin("one", "two")
        server = home.server_pid()
        for pid in victims(home, adding.pid):
            os.kill(pid, signal.SIGKILL)
        until("no hook is left", lambda: not home.hooks(), 5)
        home.finish(adding)
        # The server is no hook. Its last user stops it, or the guard of that user. With both gone, the next
        # process that needs it takes it over.
        self.assertEqual(home.server_pid(), server if server_stays else None)
        self.assertEqual(home.attempts(), [])
        self.check_finished(home, 2, lapses=1)

    @staticmethod
    def child_of(pid):
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def test_kill_the_program(self):
        self.check_killed(lambda home, guard: [self.child_of(guard)], server_stays=False)

    def test_kill_its_guard(self):
        self.check_killed(lambda home, guard: [guard], server_stays=True)

    def test_kill_everything_the_database_too(self):
        home, adding = self.begin("one")
        server = home.server_pid()
        for pid in (server, adding.pid, self.child_of(adding.pid)):
            os.kill(pid, signal.SIGKILL)
        until("no hook is left", lambda: not home.hooks(), 5)
        home.finish(adding)
        until("the server is gone", lambda: home.server_pid() is None, 10)
        self.check_finished(home, 1, lapses=1)

    def test_others_meanwhile(self):
        home, adding = self.begin("one")
        status = home.run("status")
        self.assertEqual(
            (status.code, status.records[0]["workers"], status.records[0]["snapshots_held"]), (OK, 1, 1), str(status)
        )
        wanted = [("slow", "https://site.test/one")]  # told at most four times a second
        until("it is listed", lambda: [(r["plugin"], r["url"]) for r in home.run("list", "running").records] == wanted)
        # Another user's crawl is worked on by the worker that is there, and by its own when that one has left.
        urls = [f"https://site.test/two-{n}" for n in range(12)]
        other = home.start("add", *urls)
        until("the worker has taken some", lambda: len(home.run("list", "running").records) > 2)
        self.assertEqual(home.run("status").records[0]["workers"], 1)
        home.open("one")
        until("the first is sealed", lambda: any(c["status"] == "sealed" for c in home.run("list", "crawls").records))
        home.open("all")
        first = home.finish(adding)
        self.assertEqual(first.code, OK, str(first))
        second = home.finish(other)
        self.assertEqual(second.code, OK, str(second))
        self.assertEqual(second.records[-1]["outcome"], "succeeded")
        self.assertEqual(len(home.attempts()), 13)
        self.assertIsNone(home.server_pid())


if __name__ == "__main__":
    unittest.main()
