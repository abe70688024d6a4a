#!/usr/bin/env python3
"""A cluster over time and over machines: upgrade, backup and restore, two machines on one crawl, an object store.

    tests/deploy/run.py --holdfast build/dev/bin/holdfast --short     what ctest runs: a minute on a quiet machine
    tests/deploy/run.py --holdfast build/dev/bin/holdfast             also the restore to a point in time, and Bucket
    tests/deploy/run.py --holdfast ... --install-s3-server Bucket     with a real S3 server, made by `go install`

Real holdfast processes, real PostgreSQL servers. Machines needs root and network namespaces; Bucket needs versitygw
(found on the PATH, named by --s3-server, or installed from the Go module proxy into a temporary directory, which takes
minutes). Each says why it is left out.
"""

import argparse
import contextlib
import glob
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "cluster")]
from harness import case, suites  # noqa: E402
from harness.collection import OnServer  # noqa: E402
from harness.full import only_in_full  # noqa: E402
from harness.machine import Machine, network_namespaces  # noqa: E402
from harness.postgres import give  # noqa: E402
from harness.proxy import Proxy  # noqa: E402
from harness.wait import free_port, until  # noqa: E402
from stage import Postgres  # noqa: E402

OPTIONS = argparse.Namespace(s3_server=None, short=False)
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.0.14"

# http://<host>/<tenths of a second>/<megabytes>/<anything>
HOOK = """#!/bin/sh
for argument; do case $argument in --url=*) url=${argument#--url=} ;; esac; done
rest=${url#http://*/} tenths=${rest%%/*} rest=${rest#*/} megabytes=${rest%%/*}
sleep "$((tenths / 10)).$((tenths % 10))"
echo "the page at $url" >page.txt
ln -s page.txt link.txt
[ "$megabytes" = 0 ] || head -c "$((megabytes * 1000000))" /dev/urandom >large.bin
mkdir -p "odd dir+é" && echo odd >"odd dir+é/100% & more?.txt"
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"page.txt"}'
"""


class Server(Postgres):
    """Listens on every address: machines of their own network come by theirs."""

    def __init__(self, directory):
        super().__init__(directory, listen="*")

    def create(self):
        super().create()
        with open(self.directory / "data/pg_hba.conf", "a", encoding="utf-8") as file:
            file.write("host all all 10.199.0.0/16 trust\n")


class Collection(OnServer):
    """A server, an archive, and holdfast processes."""

    settings = {
        "LEASE": "4s",
        "HEARTBEAT": "500ms",
        "MARGIN": "2s",
        "KILL_GRACE": "500ms",
        "WORKER_SNAPSHOTS": 2,
        "WORKER_POLL": "500ms",
        "DISK_MINIMUM_FREE": "1m",
        "LOG_FORMAT": "text",
    }

    def __init__(self, archive=None, server=Server, **settings):
        super().__init__(**settings)
        self.archive = archive or self.path / "archive"
        self.environment["HOLDFAST_ARCHIVE_ROOT"] = str(self.archive)
        self.hook("page", "on_Snapshot__50_page.sh", HOOK)
        self.server = self.add_server(server)

    def start(self, *arguments, **settings):
        """A process with a data directory of its own, as on a host of its own."""
        data = str(self.path / f"data{len(self.processes)}")
        return super().start(*arguments, **{"HOLDFAST_DATA_DIR": data, **settings})

    def add(self, count, tenths=2, megabytes=0, name="p", **more):
        return self.lines(
            "add", "--bg", *[f"http://h{n % 5}.test/{tenths}/{megabytes}/{name}{n}" for n in range(count)], **more
        )[0]["id"]

    def sql(self, query):
        rows = self.server.rows(query)
        return rows[0][0] if rows else ""

    def sealed(self):
        return int(self.sql("select count(*) from holdfast.snapshot_sealed"))

    def all_sealed(self, count, seconds=120):
        self.until(
            f"{count} snapshots are sealed",
            lambda: self.sealed() >= count and self.sql("select count(*) from holdfast.snapshot_queue") == "0",
            seconds,
        )

    def workers(self):
        return int(
            self.sql("select count(*) from holdfast.process where process_type = 'worker' and status = 'running'")
        )

    def worker_of(self, process):
        """The id of the worker (or runner) that a process runs as."""

        def look():
            joined = re.search(r"joined as ([0-9a-f-]{36})", pathlib.Path(process.log.name).read_text(encoding="utf-8"))
            return (
                joined[1]
                if joined
                else self.sql(f"select id from holdfast.process where status = 'running' and pid = {process.pid}")
            )

        return self.until("it has joined", look)


class Case(case.Case):
    profile = Collection

    def prove(self, c, count):
        """Everything sealed once, nothing broken, every file as it was sealed."""
        self.assertEqual(c.sealed(), count)
        self.assertEqual(
            c.server.rows(
                "select snapshot_id from holdfast.v_attempt where ending = 'sealed' group by snapshot_id having count(*) <> 1"
            ),
            [],
        )
        self.assertEqual(c.server.rows("select * from holdfast.check_invariants()"), [])
        verified = c.lines("verify", "--all", expect=None)
        self.assertEqual(
            [line for line in verified if line["type"] == "Defect" and line["kind"] not in ("leftover", "removed")], []
        )
        self.assertEqual((verified[-1]["snapshots"], verified[-1]["defects"]), (count, 0))


class Upgrade(Case):
    """Another release is played by changing what the ledger says of the one that is there."""

    def record(self, c, name, breaking):
        """The migration of a later release, as its `holdfast migrate` leaves it in the ledger."""
        c.sql(
            "insert into holdfast.schema_migration (name, number, checksum, breaking)"
            f" values ('{name}', {int(name[:4])}, 'x', {breaking})"
        )

    def test_functions_are_replaced_beside_a_working_worker(self):
        c = self.collection()
        c.holdfast("migrate")
        usual = {"HOLDFAST_LEASE": "60s", "HOLDFAST_MARGIN": "20s"}  # a heartbeat waits while functions are replaced
        old = c.start("worker", **usual)
        c.add(40)
        c.until("the worker works", lambda: c.sealed() >= 2)
        files = c.sql("select count(*) from holdfast.schema_migration where number is null")
        for turn in range(3):
            c.sql("update holdfast.schema_migration set checksum = 'of another release' where name like 'functions/2%'")
            if turn == 0:
                for verb in ("status", "worker"):
                    self.assertIn("holdfast migrate", c.holdfast(verb, expect=69).err)
            applied = c.lines("migrate")[0]["applied"]
            self.assertEqual([str(len(applied)), {name[:10] for name in applied}], [files, {"functions/"}])
        self.assertEqual(c.lines("migrate")[0]["applied"], [])
        newer = c.start("worker", **usual)
        c.until("both have joined", lambda: c.workers() == 2)
        c.holdfast("drain", c.worker_of(old), "--wait", "--why", "upgrade")
        self.assertEqual(old.wait(20), 0)
        c.all_sealed(40)
        self.assertEqual(
            c.server.rows("select distinct ending from holdfast.v_attempt"), [["sealed"]]
        )  # nothing was cut short
        self.assertIsNone(newer.poll())
        self.prove(c, 40)

    def test_a_database_that_is_ahead_serves_this_program_until_a_breaking_migration(self):
        c = self.collection()
        c.holdfast("migrate")
        old = c.start("worker")
        worker = c.worker_of(old)
        ours = int(c.sql("select max(number) from holdfast.schema_migration"))
        self.assertEqual(c.sql(f"select revision from holdfast.v_worker where id = '{worker}'"), str(ours))
        self.assertEqual(
            c.sql(f"select capabilities -> 'plugins' ->> 0 from holdfast.v_worker where id = '{worker}'"), "page"
        )
        self.record(c, "9001_next.sql", False)
        c.sql("update holdfast.schema_migration set checksum = 'of the next release' where number is null")
        self.assertEqual(c.lines("migrate")[0], {"type": "Migration", "revision": 9001, "applied": [], "lacking": []})
        c.holdfast("status")
        late = c.start("worker")
        c.until("both have joined", lambda: c.workers() == 2)
        c.add(10)
        c.all_sealed(10)

        self.record(c, "9002_break.sql", True)
        for verb in ("worker", "migrate", "status"):
            self.assertIn("use a newer holdfast", c.holdfast(verb, expect=76).err)
        self.assertEqual([old.poll(), late.poll()], [None, None])
        c.sql("delete from holdfast.schema_migration where number > 9000")
        c.holdfast("migrate")
        self.prove(c, 10)

    def test_a_runner_is_drained_too(self):
        c = self.collection()
        c.holdfast("migrate")
        runners = [c.start("runner", "--standby") for _ in range(2)]
        ids = [c.worker_of(runner) for runner in runners]
        c.until("one leads", lambda: c.sql("select count(*) from holdfast.v_runner where state = 'leads'") == "1")
        leading = c.sql("select id from holdfast.process where worker_type = 'worker_runner' and status = 'running'")
        c.holdfast("drain", leading, "--wait")
        self.assertEqual(runners[ids.index(leading)].wait(20), 0)
        c.until(
            "the other leads",
            lambda: (
                c.sql("select id from holdfast.process where worker_type = 'worker_runner' and status = 'running'")
                not in ("", leading)
            ),
        )


class Takeover(Case):
    def test_a_dead_worker_is_given_up_also_when_nobody_claims_and_there_is_no_runner(self):
        for name, leave_it in {
            "the other one has no room": lambda c: {"HOLDFAST_DISK_MINIMUM_FREE": "1000000g"},
            "all is paused": lambda c: c.holdfast("pause", "--all", "--yes") and {},
        }.items():
            with self.subTest(name):
                c = self.collection()
                c.holdfast("migrate")
                dying = c.start("worker")
                c.add(4, tenths=300)
                c.until(
                    "it holds something",
                    lambda: c.sql("select count(*) from holdfast.snapshot_queue where owner_id is not null") == "2",
                )
                worker = c.worker_of(dying)
                c.start("worker", **leave_it(c))
                c.until("another has joined", lambda: c.workers() == 2)
                os.killpg(dying.pid, signal.SIGKILL)
                c.until(
                    "it has lapsed",
                    lambda: c.sql(f"select exit_reason from holdfast.process where id = '{worker}'") == "lease lapsed",
                )
                self.assertEqual(c.sql("select count(*) from holdfast.snapshot_queue where owner_id is null"), "4")


class ArchivingServer(Server):
    """Keeps its WAL, as deploy/README.md says."""

    def start(self):
        wal = self.directory / "wal"
        wal.mkdir(exist_ok=True)
        give(wal, self.identity)
        self.settings |= {
            "archive_mode": "on",
            "archive_command": f"test ! -f {wal}/%f && cp %p {wal}/%f.part && mv {wal}/%f.part {wal}/%f",
        }
        super().start()


class Restore(Case):
    def continue_on(self, c, old_workers, count):
        """The steps of the runbook after a restore; then everything must come to its end."""
        for worker in old_workers:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        c.sql("select holdfast.restored('test')")
        self.assertEqual(
            c.sql("select has_function_privilege('holdfast_worker', 'holdfast.lapse_process()', 'execute')"), "t"
        )
        self.assertEqual(c.sql("select count(*) from holdfast.process where status = 'running'"), "0")
        self.assertEqual(c.server.rows("select * from holdfast.check_invariants()"), [])
        c.start("worker")
        c.start("worker")
        c.all_sealed(count)
        self.prove(c, count)

    def test_a_dump_of_a_running_cluster_continues(self):
        c = self.collection()
        c.holdfast("migrate")
        workers = [c.start("worker"), c.start("worker")]
        c.add(40, tenths=6)
        c.until("some are sealed", lambda: c.sealed() >= 5)
        c.server.run("pg_dump", "-Fc", "-d", "holdfast", "-f", c.server.directory / "dump")
        c.until("more are sealed", lambda: c.sealed() >= 15)
        lost = c.server
        c.server = c.add_server(Server)
        c.server.run("pg_restore", "-d", "holdfast", "--exit-on-error", "--no-acl", lost.directory / "dump")
        self.assertLess(c.sealed(), 40)
        self.continue_on(c, workers, 40)

    def test_holdfast_backs_a_running_cluster_up(self):
        c = self.collection()
        c.holdfast("migrate")
        workers = [c.start("worker"), c.start("worker")]
        c.add(40, tenths=6)
        c.until("some are sealed", lambda: c.sealed() >= 5)
        c.holdfast("backup", c.path / "backup")
        c.until("more are sealed", lambda before=c.sealed(): c.sealed() >= before + 5)
        for worker in workers:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        c.holdfast("restore", c.path / "backup", expect=65)
        shutil.rmtree(c.archive)
        c.server = c.add_server(Server)
        c.holdfast("restore", c.path / "backup", expect=None)
        self.assertLess(c.sealed(), 40)
        self.continue_on(c, [], 40)

    def test_a_base_backup_and_its_wal_are_restored_to_a_point_in_time(self):
        if OPTIONS.short:
            self.skipTest("--short")
        c = self.collection(server=ArchivingServer)
        c.holdfast("migrate")
        workers = [c.start("worker"), c.start("worker")]
        c.add(40, tenths=6)
        c.until("some are sealed", lambda: c.sealed() >= 5)
        c.server.run("pg_basebackup", "-D", c.server.directory / "base", "-X", "none", "-c", "fast")
        c.add(60, tenths=6, name="q")
        c.until("more are sealed", lambda before=c.sealed(): c.sealed() >= before + 4)
        at_least = c.sealed()
        c.sql("select pg_create_restore_point('here')")
        c.until("still more are sealed", lambda: c.sealed() >= at_least + 4)
        c.sql("select pg_switch_wal()")
        c.until("the WAL is in the archive", lambda: int(c.sql("select archived_count from pg_stat_archiver")) >= 2)
        lost = c.server
        lost.stop()
        shutil.rmtree(lost.directory / "data")
        shutil.copytree(lost.directory / "base", lost.directory / "data", copy_function=shutil.copy2)
        (lost.directory / "data/recovery.signal").touch()
        with open(lost.directory / "data/postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.write(
                f"restore_command = 'cp {lost.directory}/wal/%f %p'\nrecovery_target_name = 'here'\nrecovery_target_action = 'promote'\n"
            )
        for path in [lost.directory / "data", *(lost.directory / "data").rglob("*")]:
            give(path, lost.identity)
        (lost.directory / "data").chmod(0o700)
        lost.start()
        c.until("it is no standby any more", lambda: c.sql("select pg_is_in_recovery()") == "f")
        self.assertGreaterEqual(c.sealed(), at_least)
        self.assertLess(c.sealed(), at_least + 4)
        self.continue_on(c, workers, 100)


@unittest.skipUnless(network_namespaces(), "needs root and network namespaces")
class BadRows(Case):
    def test_verify_names_rows_that_no_constraint_lets_in_and_goes_on(self):
        """A superuser can switch constraints and triggers off."""
        c = self.collection()
        c.holdfast("migrate")
        worker = c.start("worker")
        c.add(4)
        c.all_sealed(4)
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        outside = c.path / "outside"
        (outside / "a7").mkdir(parents=True)
        ids = dict(c.server.rows("select right(url, 1), id from holdfast.snapshot"))
        c.server.rows(
            """
            set session_replication_role = replica;
            alter table holdfast.snapshot alter column host drop not null;
            alter table holdfast.snapshot_sealed drop constraint snapshot_sealed_directory,
                                                 drop constraint snapshot_sealed_has_files;
            update holdfast.snapshot set url = 'file:///etc/passwd', url_hash = sha256('file:///etc/passwd')
              where url like '%0';
            update holdfast.snapshot_sealed set directory = null, outcome = 'failed'
              where snapshot_id = (select id from holdfast.snapshot where url like 'file:%');
            update holdfast.snapshot_sealed set directory = '../outside/a1'
              where snapshot_id = (select id from holdfast.snapshot where url like '%1');
            """
        )
        # One that is sound, after these: found as well.
        next(c.path.rglob(f"{ids['3']}/a*/page/page.txt")).write_text("forged")
        told = c.lines("verify", "--all", "--collect", expect=1)
        defects = [(line["kind"], line["snapshot_id"]) for line in told if line["type"] == "Defect"]
        self.assertEqual(set(defects), {("bad row", ids["0"]), ("bad row", ids["1"]), ("changed", ids["3"])}, told)
        self.assertEqual(told[-1]["snapshots"], 4)
        self.assertTrue((outside / "a7").exists())


@unittest.skipUnless(network_namespaces(), "needs root and network namespaces")
class Machines(Case):
    def test_two_machines_work_on_one_crawl_and_one_is_cut_off(self):
        c = self.collection()
        c.holdfast("migrate")
        machines = [Machine(11), Machine(12)]
        for machine in machines:
            self.addCleanup(machine.close)
        workers = [c.start("worker", machine=machine) for machine in machines]
        c.until("both have joined", lambda: c.workers() == 2)
        c.add(60)
        sealed_by = lambda: [
            int(row[0])
            for row in c.server.rows(
                "select count(*) from holdfast.v_attempt where ending = 'sealed' group by process_id"
            )
        ]
        c.until("both have sealed something", lambda: len(sealed_by()) == 2)
        machines[0].cable_is("down")
        c.until(
            "its work was given to the other",
            lambda: c.sql("select count(*) from holdfast.process where exit_reason = 'lease lapsed'") == "1",
        )
        c.until("the other one goes on", lambda before=c.sealed(): c.sealed() >= before + 4)
        machines[0].cable_is("up")
        c.all_sealed(60)
        c.until("the first has come back", lambda: c.workers() == 2)
        self.assertEqual([worker.poll() for worker in workers], [None, None])
        for worker in workers:
            worker.terminate()
        self.assertEqual([worker.wait(30) for worker in workers], [0, 0])
        self.assertEqual(glob.glob(f"{c.path}/data*/work/workers/*"), [])  # no scratch directory is left on either
        self.prove(c, 60)


@unittest.skipUnless(
    os.geteuid() == 0 and os.path.exists("/dev/fuse") and shutil.which("bindfs"), "needs root, /dev/fuse and bindfs"
)
class FileServer(Case):
    """A file server that hangs: one in this machine, by FUSE, under SIGSTOP. tests/cluster/nfs has a real one."""

    def mounted(self):
        c = self.collection()
        shared, c.archive = c.path / "shared", c.path / "mounted"
        c.environment["HOLDFAST_ARCHIVE_ROOT"] = str(c.archive)
        shared.mkdir()
        c.archive.mkdir()
        server = subprocess.Popen(["bindfs", "-f", shared, c.archive], stdin=subprocess.DEVNULL)
        self.addCleanup(
            lambda: (
                server.send_signal(signal.SIGCONT),
                subprocess.run(["umount", "-l", c.archive], check=False),
                server.kill(),
                server.wait(),
            )
        )
        c.until("it is mounted", lambda: os.path.ismount(c.archive))
        c.holdfast("migrate")
        return c, server

    def test_workers_keep_what_they_have_while_the_archive_does_not_answer(self):
        c, server = self.mounted()
        workers = [c.start("worker"), c.start("worker")]
        c.until("both have joined", lambda: c.workers() == 2)
        c.add(16, tenths=3)
        c.until("some are sealed", lambda: c.sealed() >= 2)
        server.send_signal(signal.SIGSTOP)
        c.until(
            "both say so",
            lambda: (
                c.sql(
                    "select count(*) from holdfast.v_worker where status = 'running' and stats ->> 'not_claiming' like '%does not answer'"
                )
                == "2"
            ),
        )
        heartbeats = c.sql("select clock_timestamp() + interval '8 s'")  # two leases
        c.until(
            "two leases have passed",
            lambda: (
                c.sql(f"select bool_and(heartbeat_at > '{heartbeats}') from holdfast.process where status = 'running'")
                == "t"
            ),
        )
        server.send_signal(signal.SIGCONT)
        c.all_sealed(16)
        self.assertEqual([worker.poll() for worker in workers], [None, None])
        self.prove(c, 16)
        for worker in workers:
            worker.terminate()
        self.assertEqual([worker.wait(30) for worker in workers], [0, 0])

    def test_a_worker_that_is_to_end_does_not_wait_for_a_publication_that_hangs(self):
        c, server = self.mounted()
        worker = c.start("worker", HOLDFAST_DRAIN_TIMEOUT="1s", HOLDFAST_STOP_TIMEOUT="1s")
        c.until("it has joined", lambda: c.workers() == 1)
        c.add(1, tenths=10)
        c.until("its hook runs", lambda: c.sql("select count(*) from holdfast.v_running") == "1")
        server.send_signal(signal.SIGSTOP)
        c.until("its hook has ended", lambda: c.sql("select count(*) from holdfast.v_running") == "0")
        heartbeats = c.sql("select clock_timestamp() + interval '4 s'")  # a lease
        c.until(
            "a lease has passed",
            lambda: (
                c.sql(f"select heartbeat_at > '{heartbeats}' from holdfast.process where status = 'running'") == "t"
            ),
        )
        self.assertEqual(
            c.sql("select count(*) from holdfast.snapshot_queue where owner_id is not null and fence = 1"), "1"
        )  # it waits for the archive

        worker.terminate()
        c.until(
            "the worker ends itself",
            lambda: "the exit takes too long" in pathlib.Path(worker.log.name).read_text(encoding="utf-8"),
        )
        c.until(
            "others may have its work", lambda: int(c.sql("select holdfast.lapse_process()")) + 1 and c.workers() == 0
        )
        self.assertEqual(
            c.server.rows(
                "select status, lapses, owner_id, reason ~ '^its worker lapsed' from holdfast.snapshot_queue"
            ),
            [["queued", "1", "", "t"]],
        )
        server.send_signal(signal.SIGCONT)  # until here the kernel may keep the thread that hangs, and so the process
        self.assertEqual(worker.wait(30), 75)

        c.start("worker")
        c.all_sealed(1)
        self.prove(c, 1)
        self.assertEqual(c.sql("select fence from holdfast.snapshot_sealed"), "2")


class WrongClock(Server):
    """Its clock is the machine's plus what the file `offset` says, which every process of the server reads again. Monotonic
    clocks are left alone."""

    libraries = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")

    def start(self):
        self.turn("+0")
        self.clock = {
            "LD_PRELOAD": self.libraries[0],
            "FAKETIME_TIMESTAMP_FILE": str(self.directory / "offset"),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }
        self.environment.update(self.clock)
        super().start()
        for name in self.clock:
            del self.environment[name]

    def turn(self, offset):
        new = self.directory / "offset.new"
        new.write_text(offset + "\n")
        new.chmod(0o644)
        new.rename(self.directory / "offset")


@only_in_full
class Clock(Case):
    def test_the_clock_of_the_server_runs_ahead_by_two_hours_and_is_set_right(self):
        if not WrongClock.libraries:
            self.skipTest("no wrong clock: libfaketime is not installed")
        c = self.collection(server=WrongClock)
        c.holdfast("migrate")
        here = time.time()
        c.server.turn("+7200")
        self.assertGreater(float(c.sql("select extract(epoch from clock_timestamp())")), here + 7000)
        # A worker whose own clock is another claims nothing, and says why.
        right = c.start("worker")
        c.until(
            "it is told",
            lambda: "behind that of the database" in c.sql("select stats ->> 'not_claiming' from holdfast.v_worker"),
        )
        right.terminate()
        self.assertEqual(right.wait(30), 0)
        # The machine of the database.
        processes = [c.start("worker", **c.server.clock), c.start("runner")]
        c.add(60, tenths=3)
        c.sql("select holdfast.host_set('h1.test', '1 second', 1, 'test')")
        c.until("half is sealed under the wrong clock", lambda: c.sealed() >= 20)
        c.server.turn("+0")
        self.assertLess(float(c.sql("select extract(epoch from clock_timestamp())")), here + 3600)
        # What was due then is due again within a minute, and what the wrong clock has dated is mended.
        c.all_sealed(60, 150)
        c.until(
            "no record lies ahead of another",
            lambda: c.server.rows("select * from holdfast.check_invariants()") == [],
            150,
        )
        self.prove(c, 60)
        self.assertEqual(c.server.rows("select * from holdfast.v_stuck"), [])
        self.assertEqual(
            c.sql(
                "select count(*) from holdfast.maintenance_task where next_at > clock_timestamp() + greatest(every, interval '1 hour')"
            ),
            "0",
        )
        self.assertEqual([process.poll() for process in processes], [None, None])


class Bucket(Case):
    """An archive in an object store: versitygw, a real S3 server."""

    def setUp(self):
        if OPTIONS.short:
            self.skipTest("--short")
        if not OPTIONS.s3_server:
            self.skipTest("no S3 server: versitygw is not on the PATH (--install-s3-server installs it)")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-s3-"))
        self.addCleanup(shutil.rmtree, self.directory, True)
        (self.directory / "store/archive").mkdir(parents=True)
        self.port, self.process = free_port(), None
        self.start_store()
        self.addCleanup(lambda: (self.process.kill(), self.process.wait()))
        keys = self.directory / "keys"
        keys.write_text("[default]\naws_access_key_id = tester\naws_secret_access_key = secret+/=key\n")
        self.keys = {"AWS_SHARED_CREDENTIALS_FILE": str(keys)}

    def start_store(self):
        log = open(self.directory / "log", "a", encoding="utf-8")
        self.addCleanup(log.close)
        self.process = subprocess.Popen(
            [
                OPTIONS.s3_server,
                "--quiet",
                "--port",
                f"127.0.0.1:{self.port}",
                "--access",
                "tester",
                "--secret",
                "secret+/=key",
                "--region",
                "eu-test-1",
                "posix",
                "--sidecar",
                self.sidecar(),
                self.directory / "store",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        until("the store listens", self.listens, 30)

    def sidecar(self):
        (self.directory / "meta").mkdir(exist_ok=True)
        return self.directory / "meta"

    def listens(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def bucket(self, port=None):
        c = self.collection(
            archive=f"s3://archive/some%20where/é?endpoint=http://127.0.0.1:{port or self.port}&region=eu-test-1".replace(
                "%20", " "
            )
        )
        c.environment |= self.keys
        c.holdfast("migrate")
        return c

    def files(self, pattern):
        return sorted((self.directory / "store/archive").glob("some where/é/" + pattern))

    def test_workers_publish_into_a_bucket_and_everything_reads_from_it(self):
        c = self.bucket()
        workers = [c.start("worker"), c.start("worker")]
        crawl = c.add(12)
        c.add(2, megabytes=21, name="large")  # three pieces each
        c.all_sealed(14)
        self.prove(c, 14)
        self.assertEqual(len(self.files("20*/*/*/*/a*/manifest-sha256.txt")), 14)
        self.assertEqual(
            [file.stat().st_size for file in self.files("20*/*/*/*/a*/page/large.bin")], [21000000, 21000000]
        )
        self.assertEqual(
            self.files("20*/*/*/*/a*/page/link.txt")[0].read_text()[:8], "the page"
        )  # a link is kept as what it leads to
        c.until("the crawl's page is written", lambda: self.files(f"crawls/{crawl}/index.html"))
        self.assertEqual(glob.glob(f"{c.path}/data*/work/workers/*/*/a*"), [])
        self.assertEqual(c.sql("select capabilities ->> 'archive' from holdfast.v_worker limit 1"), "s3")

        # The page's server reads from there.
        port = free_port()
        c.start("serve", HOLDFAST_SERVE_LISTEN=f"127.0.0.1:{port}")
        directory = c.sql(
            "select directory from holdfast.snapshot_sealed e join holdfast.snapshot s on s.id = e.snapshot_id where s.url like '%large0' limit 1"
        )

        def read(path):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/{directory}/{path}", timeout=20) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                return None

        page = c.until("it serves", lambda: read("page/page.txt"))
        self.assertIn(b"the page at", page)
        self.assertEqual(len(read("page/large.bin")), 21000000)
        self.assertEqual(read("page/odd%20dir%2B%C3%A9/100%25%20%26%20more%3F.txt"), b"odd\n")
        self.assertEqual(read("page/none.txt"), 404)

        # Logs of hooks that failed are read from there, too; only those, and only of the plugin that is asked for.
        broken = c.path / "plugins" / "broken"
        broken.mkdir()
        (broken / "on_Snapshot__60_broken.sh").write_text("#!/bin/sh\necho told >&2\necho said\nexit 3\n")
        (broken / "on_Snapshot__60_broken.sh").chmod(0o755)
        another = c.start("worker")  # catalogs are read once
        for worker in workers:
            worker.terminate()
        self.assertEqual([worker.wait(30) for worker in workers], [0, 0])
        workers = [another]
        c.add(1, name="logged")
        c.all_sealed(15)
        snapshot = c.sql("select id from holdfast.snapshot where url like '%logged0'")
        logs = c.lines("logs", snapshot)
        self.assertEqual(
            sorted((log["plugin"], log["stream"], log["text"]) for log in logs),
            [("broken", "stderr", "told\n"), ("broken", "stdout", "said\n")],
        )
        self.assertEqual(c.lines("logs", snapshot, "--plugin", "page"), [])

        # What was changed or taken away is found.
        texts = self.files("20*/*/*/*/a*/page/page.txt")
        texts[0].write_text("forged")
        texts[1].unlink()
        self.assertEqual(
            sorted(line["kind"] for line in c.lines("verify", "--all", expect=1) if line["type"] == "Defect"),
            ["changed", "missing"],
        )
        for worker in workers:
            worker.terminate()
        self.assertEqual([worker.wait(30) for worker in workers], [0])
        c.holdfast("remove", "--yes", crawl)
        self.assertEqual(len(self.files("20*/*/*/*/a*/manifest-sha256.txt")), 3)

    def test_a_lost_database_is_made_again_from_the_bucket(self):
        c = self.bucket()
        worker = c.start("worker")
        c.add(3)
        c.all_sealed(3)
        worker.terminate()
        self.assertEqual(worker.wait(30), 0)
        before = {
            s["id"]: (s["url"], s["outcome"], s["directory"], s["manifest_sha256"])
            for s in c.lines("list", "snapshots")
        }
        lost = c.server
        c.server = c.add_server(Server)
        lost.stop()
        c.holdfast("migrate")
        adopted = c.lines("adopt")[-1]
        self.assertEqual((adopted["snapshots"], adopted["crawls"], adopted["unreadable"]), (3, 1, 0))
        self.assertEqual(
            {
                s["id"]: (s["url"], s["outcome"], s["directory"], s["manifest_sha256"])
                for s in c.lines("list", "snapshots")
            },
            before,
        )
        self.assertEqual(c.lines("check"), [])
        # What a bucket holds without a row is said.
        c.server.rows("set holdfast.change_sealed = on; delete from holdfast.snapshot where url like '%p1'")
        verified = c.lines("verify", "--all", expect=1)
        self.assertEqual(
            [(line["kind"], line["snapshot_id"]) for line in verified[:-1]],
            [("no row", next(i for i, s in before.items() if s[0].endswith("p1")))],
        )
        self.assertEqual((verified[-1]["defects"], verified[-1]["without_row"]), (0, 1))

    def test_an_export_goes_into_a_bucket_while_it_is_made(self):
        c = self.bucket()
        with open(c.path / "large.warc.gz", "wb") as file:  # 45 MB: more than one piece
            for number in range(15):
                body = f"<!doctype html><title>{number}</title>".encode() + os.urandom(3_000_000)
                block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
                head = (
                    f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
                    f"WARC-Date: 2026-01-01T00:00:{number:02}Z\r\nWARC-Target-URI: http://large.test/{number}\r\n"
                    f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
                )
                file.write(gzip.compress(head.encode() + block + b"\r\n\r\n", 1))
        c.holdfast("import", "warc", c.path / "large.warc.gz")
        exports = self.directory / "store/archive/exports"

        def place(name, port=self.port):
            return f"s3://archive/exports{name}?endpoint=http://127.0.0.1:{port}&region=eu-test-1"

        c.holdfast("export", "--all", "-o", place("/all.wacz"))
        self.assertGreater((exports / "all.wacz").stat().st_size, 45_000_000)
        with zipfile.ZipFile(exports / "all.wacz") as archive:
            described = json.loads(archive.read("datapackage.json"))["resources"]
            self.assertEqual(len([one for one in described if one["path"].startswith("archive/")]), 15)
            for one in described:
                body = archive.read(one["path"])
                self.assertEqual((len(body), "sha256:" + hashlib.sha256(body).hexdigest()), (one["bytes"], one["hash"]))
        c.holdfast("export", "--all", "--format", "files", "-o", place("/all.zip"))
        with zipfile.ZipFile(exports / "all.zip") as archive:
            self.assertIsNone(archive.testzip())
        for _ in range(2):  # the second keeps what is there
            c.holdfast("export", "--all", "--format", "warc", "-o", place("/warcs"))
        self.assertEqual(len((exports / "warcs/index.cdxj").read_text().splitlines()), 15)
        self.assertEqual(sum(file.stat().st_size > 3_000_000 for file in (exports / "warcs").iterdir()), 15)

        c.holdfast("export", "--all", "--format", "files", "-o", place("/files"))
        self.assertEqual(len((exports / "files/pages/pages.jsonl").read_text().splitlines()), 1 + 15)

        bucket = place("").replace("/exports", "")
        self.assertIn("names no file", c.holdfast("export", "--all", "-o", bucket, expect=64).err)
        wrong = c.holdfast("export", "--all", "-o", place("/wrong.wacz").replace("/archive/", "/none/"), expect=69)
        self.assertIn("NoSuchBucket", wrong.err)
        proxy = Proxy(self.port)
        self.addCleanup(proxy.close)
        proxy.set("swallow")
        silent = c.holdfast("export", "--all", "-o", place("/silent.wacz", proxy.port), expect=69)
        self.assertIn("object store", silent.err)
        # One that dies has begun to send: there is no object.
        begun = set((self.directory / "store").rglob("*"))
        proxy.set("deaf")
        killed = c.start("export", "--all", "-o", place("/killed.wacz", proxy.port))
        c.until("the store has begun to take it", lambda: set((self.directory / "store").rglob("*")) - begun)
        killed.kill()
        killed.wait()
        self.assertEqual(sorted(file.name for file in exports.glob("*.*")), ["all.wacz", "all.zip"])

    def test_a_store_that_goes_away_and_a_worker_that_dies_while_it_publishes(self):
        c = self.bucket()
        dying = c.start("worker", HOLDFAST_TEST_POINT="kill:after_publish:1")
        c.add(20, tenths=3)
        dying.wait(60)
        self.assertEqual(len(self.files("20*/*/*/*/a*/manifest-sha256.txt")) >= 1, True)
        workers = [c.start("worker"), c.start("worker")]
        c.until("others go on", lambda: c.sealed() >= 4)
        self.process.kill()
        self.process.wait()
        # Each worker has something to publish. It releases what it cannot, and takes nothing more until the
        # store answers.
        c.until(
            "both say that the store is away",
            lambda: (
                c.sql(
                    "select count(*) from holdfast.v_worker where status = 'running' and stats ->> 'not_claiming' "
                    "like 'the object store does not answer%'"
                )
                == "2"
            ),
        )
        c.until(
            "they hold nothing",
            lambda: (
                c.sql(
                    "select count(*) from holdfast.snapshot_queue q join holdfast.process p on p.id = q.owner_id "
                    "where p.stats ->> 'not_claiming' is not null"
                )
                == "0"
            ),
        )
        waiting = c.sql("select snapshot_id from holdfast.snapshot_queue where owner_id is null limit 1")
        c.until(
            "why says so",
            lambda: (
                c.sql(f"select reason like '%the object store does not answer%' from holdfast.why('{waiting}')") == "t"
            ),
            120,
        )
        self.start_store()
        c.all_sealed(20)
        self.prove(c, 20)
        self.assertEqual([worker.poll() for worker in workers], [None, None])
        # What the dead worker had published had no owner, and is gone.
        self.assertEqual(len(self.files("20*/*/*/*/a*")), 20)

    def test_a_store_that_says_nothing_any_more(self):
        proxy = Proxy(self.port)
        self.addCleanup(proxy.close)
        c = self.bucket(proxy.port)
        leaving, staying = c.start("worker"), c.start("worker")
        c.until("both have joined", lambda: c.workers() == 2)
        c.add(20, tenths=3)
        c.until("some are sealed", lambda: c.sealed() >= 2)
        proxy.set("swallow")  # everything looks open, nothing arrives, and no answer comes
        leaving.terminate()
        self.assertEqual(leaving.wait(60), 0)  # in good order, although it cannot publish what it has
        c.until(
            "the other one says so",
            lambda: (
                c.sql(
                    "select count(*) from holdfast.v_worker where status = 'running' and stats ->> 'not_claiming' "
                    "like 'the object store does not answer%'"
                )
                == "1"
            ),
        )
        c.until(
            "no worker holds a page",
            lambda: c.sql("select count(*) from holdfast.snapshot_queue where owner_id is not null") == "0",
        )
        self.assertEqual(c.sql("select count(*) from holdfast.v_attempt where ending = 'lapsed'"), "0")
        proxy.set("pass")
        c.all_sealed(20)
        self.prove(c, 20)
        self.assertIsNone(staying.poll())

    def test_a_bucket_of_another_collection_and_wrong_keys_are_refused(self):
        c = self.bucket()
        worker = c.start("worker")
        c.worker_of(worker)
        c.until("the sentinel is there", lambda: self.files(".holdfast-archive"))
        self.files(".holdfast-archive")[0].write_text("another\n")
        self.assertIn("belongs to another collection", c.holdfast("worker", expect=69).err)
        self.assertIn(
            "are the keys right",
            c.holdfast("worker", expect=69, AWS_ACCESS_KEY_ID="tester", AWS_SECRET_ACCESS_KEY="wrong").stderr,
        )
        self.assertIn("no keys", c.holdfast("worker", expect=78, AWS_SHARED_CREDENTIALS_FILE="/none").err)


def install_s3_server(directory):
    go = shutil.which("go") or "/usr/local/go/bin/go"
    environment = {
        **os.environ,
        "GOBIN": directory,
        "GOPATH": directory + "/go",
        "GOCACHE": directory + "/cache",
        "GOFLAGS": "-modcacherw",
    }
    done = subprocess.run(
        [go, "install", VERSITYGW],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print("versitygw cannot be installed: " + done.stdout[-1000:], file=sys.stderr)
        return None
    return directory + "/versitygw"


def main():
    parser = suites.parser(__doc__)
    parser.add_argument("--s3-server", default=shutil.which("versitygw"))
    parser.add_argument("--install-s3-server", action="store_true")
    parser.add_argument("--short", action="store_true")
    arguments = suites.read(parser.parse_args())
    OPTIONS.short, OPTIONS.s3_server = arguments.short, arguments.s3_server
    with tempfile.TemporaryDirectory(prefix="holdfast-deploy-tools-") as directory:
        if arguments.install_s3_server and not OPTIONS.s3_server:
            OPTIONS.s3_server = install_s3_server(directory)
        return suites.run(arguments, sys.modules[__name__])


if __name__ == "__main__":
    sys.exit(main())
