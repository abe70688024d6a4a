"""Two hundred hooks at once on one worker: no descriptor is lost, no zombie is left, and memory stays within bounds."""

import os
import unittest

from harness.full import only_in_full
from worker import MISBEHAVE, WorkerCase, WorkerPlace, figure, open_files, read, status_field, until
from harness.collection import ROOT, looks_for_leaks

HOOKS = 200
KINDS = (
    'gate "$name"; echo done >page.txt',
    'setsid sleep 600 & gate "$name"; exit 3',
    f"'{MISBEHAVE}' leave-daemon; gate \"$name\"; echo x",
    'gate "$name"; kill -ABRT $$',
    "trap '' TERM; gate \"$name\"; echo done >page.txt",
)


def zombies_below(pid):
    return {child for child in WorkerPlace.tree(pid) if b") Z " in read(f"/proc/{child}/stat")}


def until_reaped(pid):
    """A child is a zombie between its end and its parent's wait, so some may always be seen; none may stay one."""
    seen = zombies_below(pid)
    until(f"{seen} are reaped", lambda: not seen & zombies_below(pid))


def memory_of(pids):
    return sum(int(status_field(pid, "VmRSS") or 0) for pid in pids) // 1024


def cpu_time(pid):
    """Seconds, of its own threads."""
    user, system = read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Many(WorkerCase):
    def test_a_full_worker_waits(self):
        """With all its slots taken, a worker has nothing to do but its heartbeat."""
        home = self.worker_place(WORKER_SNAPSHOTS=1)
        home.hook("page", "on_Snapshot__50_page.sh", 'gate "$name"; echo done >page.txt')
        home.work()
        home.queue("https://full.test/one", "https://full.test/two", plugins="page")
        until("the first is at its gate", lambda: home.arrived("one"))
        worker = home.worker_pid()

        def lease():
            ((until_when,),) = home.sql(
                "select extract(epoch from lease_until) from holdfast.process where process_type = 'worker'"
            )
            return float(until_when)

        began, used = lease(), cpu_time(worker)
        until("its lease is renewed for some seconds", lambda: lease() > began + 5)
        share = (cpu_time(worker) - used) / (lease() - began)
        figure(f"a full worker used {100 * share:.1f} % of a core")
        self.assertLess(share, 0.04)
        home.open("one")
        home.open("two")
        until("both are sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["2"]])

    @unittest.skipIf(looks_for_leaks(), "the build's own memory would be counted")
    def test_two_hundred_at_once(self):
        self.two_hundred(False)

    @only_in_full
    @unittest.skipUnless(ROOT, "as root")
    def test_two_hundred_at_once_as_plain_user(self):
        self.two_hundred(True)

    def two_hundred(self, plain):
        # Ten pages of each host are at work at once.
        home = self.worker_place(plain, WORKER_SNAPSHOTS=HOOKS, POLITENESS_PARALLEL=0, DRAIN_TIMEOUT="300s")
        for kind, script in enumerate(KINDS):
            home.hook(f"kind{kind}", f"on_Snapshot__50_kind{kind}.sh", script)
        home.work()
        worker = home.worker_pid()
        home.open("warm-up")
        home.queue("https://warm.test/warm-up", plugins="kind0")
        until("the first is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        descriptors, before = open_files(worker), int(status_field(worker, "VmRSS")) // 1024

        urls = [f"https://site{number % 20}.test/{number}" for number in range(HOOKS)]
        for kind in range(len(KINDS)):
            home.queue(*urls[kind :: len(KINDS)], plugins=f"kind{kind}", TIMEOUT=600)
        until("all are at their gates", lambda: all(home.arrived(str(number)) for number in range(HOOKS)), 240)
        # A hook runs while its row, which names its pid, is being written.
        until(
            "all are in v_running", lambda: home.sql("select count(*) from holdfast.v_running") == [[str(HOOKS)]], 240
        )
        shims = [pid for pid in home.tree(home.guard.pid) if read(f"/proc/{pid}/comm") == b"holdfast-shim\n"]
        self.assertEqual(len(shims), HOOKS)
        figure(
            f"{HOOKS} hooks at once{' as a plain user' if home.identity else ''}: worker {before} -> {int(status_field(worker, 'VmRSS')) // 1024} MiB resident, "
            f"{open_files(worker)} descriptors; all shims {memory_of(shims)} MiB"
        )
        until_reaped(home.guard.pid)

        home.open("all")
        until(
            "all are sealed",
            lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [[str(HOOKS + 1)]],
            240,
        )
        until("descriptors are back", lambda: open_files(worker) <= descriptors, 30)
        self.assertEqual(home.survivors(), [])
        until_reaped(home.guard.pid)
        peak = int(status_field(worker, "VmHWM")) // 1024
        figure(f"afterwards {open_files(worker)} descriptors as before, peak {peak} MiB")
        self.assertLess(peak - before, 200, "MiB more than an idle worker: a MiB for each hook")
        self.assertEqual(
            home.sql(
                "select plugin, status, count(*) from holdfast.archive_result where ended_at is not null group by 1, 2 order by 1"
            ),
            [
                ["kind0", "succeeded", "41"],
                ["kind1", "failed", "40"],
                ["kind2", "noresults", "40"],
                ["kind3", "failed", "40"],
                ["kind4", "succeeded", "40"],
            ],
            home.sql(
                "select url, error from holdfast.v_result where status = 'failed' and plugin in ('kind0', 'kind4')"
            ),
        )
        home.leave()
        self.assertEqual(home.survivors(), [])
        self.assertEqual(home.run("check", **home.identity).records, [])
