#!/usr/bin/env python3
"""The runner as a whole: real holdfast processes against a PostgreSQL server of their own.

    tests/runner/run.py --holdfast build/dev/services/cli/holdfast            what ctest runs, under a minute
    tests/runner/run.py --holdfast ... --seconds 120 Contenders               32 contenders and kill -9, for two minutes

Machines needs root and network namespaces, and is left out otherwise.

Assertions read the database's own record (runner_term, maintenance_run, check_invariants), not clocks of this program,
except that a new leading runner must be there within one lease.
"""

import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import case, postgres, suites  # noqa: E402
from harness.collection import OnServer  # noqa: E402
from harness.machine import Machine, network_namespaces  # noqa: E402
from harness.proxy import Proxy  # noqa: E402
from harness.wait import Failure  # noqa: E402

SECONDS = 8.0  # that the contenders contend
LEASE = 4.0
NOTE = """#!/bin/sh
echo "$@" > note.txt
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "noted"}'
"""


class Collection(OnServer):
    """A database of the server that the suites share, and what works on it."""

    settings = {"RUNNER_POLL_INTERVAL": "200ms", "WORKER_POLL": "500ms", "SESSIONS_LINGER": "0s"}
    numbers = itertools.count(1)

    def __init__(self, lease=LEASE):
        super().__init__(RUNNER_LEASE=f"{lease}s", RUNNER_HEARTBEAT=f"{lease / 5}s")
        self.environment["TZ"] = "UTC"
        self.database = f"runner{next(self.numbers)}"
        self.server.sql(f"create database {self.database}")
        self.hook("note", "on_Snapshot__50_note.sh", NOTE)
        self.holdfast("migrate")

    def release(self):
        self.server.sql(f"drop database {self.database} with (force)")

    def url(self, address=None):
        return f"host={address or self.server.directory} dbname={self.database} user=postgres"

    def add(self, count, name="page"):
        urls = [f"http://127.0.0.1:9/{name}{n}" for n in range(count)]
        return self.lines("add", "--bg", *urls)[0]["id"]

    def until(self, what, condition, seconds=30):
        return super().until(what, condition, seconds)

    def logs(self):
        return self.sql("select label, state, epoch, lease_left from holdfast.v_runner") + "\n" + super().logs()

    def leading(self):
        """pid of the healthy leading runner, or None."""
        return (
            int(self.sql("select coalesce(max(pid), 0) from holdfast.v_runner where state = 'leads' and healthy"))
            or None
        )

    def wait_until_leads(self, process, seconds=30):
        # `run` is the child of its guard.
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        process.leads_as = self.until(
            f"pid {process.pid} leads",
            lambda: self.leading() in [process.pid, *map(int, children.read_text().split())] and self.leading(),
            seconds,
        )

    def label(self, process):
        return self.sql(f"select distinct label from holdfast.v_term where label ~ ' pid {process.leads_as}( |$)'")

    def endings(self):
        """Why each term that is over ended, oldest first. The rows of the processes say the same."""
        both = self.sql(
            "select t.ending, p.exit_reason from holdfast.v_term t join holdfast.process p on p.id = t.process_id "
            "where t.ended_at is not null order by t.epoch"
        ).splitlines()
        assert all(ending.startswith(reason) for ending, reason in (line.split("|") for line in both)), both
        return [line.split("|")[0] for line in both]


class Case(case.Case):
    profile = Collection


class Gate(Case):
    def test_the_newest_runner_wins_and_the_older_one_ends_in_good_order(self):
        c = self.collection()
        first = c.start("runner")
        c.wait_until_leads(first)
        second = c.start("runner")
        c.wait_until_leads(second)
        seen = c.lines("runner", "--status")
        self.assertEqual(
            next((s["pid"], s["epoch"]) for s in seen if s["type"] == "Runner" and s["state"] == "leads"),
            (second.pid, 2),
        )
        self.assertIn("schedules", [s["name"] for s in seen if s["type"] == "MaintenanceTask"])
        self.assertEqual(first.wait(timeout=20), 0)
        self.assertIn("a newer runner has taken over", c.log_of(first))
        second.send_signal(signal.SIGTERM)
        self.assertEqual(second.wait(timeout=20), 0)
        stepped_down = f"stepped down for {c.label(second)}"
        self.assertIn(f"left: {stepped_down}", c.log_of(first))
        self.assertEqual(c.endings(), [stepped_down, "asked to terminate"])
        self.assertEqual(c.sql("select count(*) from holdfast.v_runner"), "0")
        self.assertEqual(c.holdfast("runner", "--status", expect=1).code, 1)
        self.assertEqual(c.broken(), "")

    def test_one_that_stands_by_waits_for_its_turn_and_steps_back_for_a_newer_one(self):
        c = self.collection()
        first = c.start("runner")
        c.wait_until_leads(first)
        standby = c.start("runner", "--standby")
        c.until(
            "it stands by",
            lambda: c.sql(f"select state from holdfast.v_runner where pid = {standby.pid}") == "stands by",
        )
        self.assertEqual(c.leading(), first.pid)
        first.send_signal(signal.SIGTERM)
        c.wait_until_leads(standby)
        newer = c.start("runner")
        c.wait_until_leads(newer)
        c.until(
            "it stands by again",
            lambda: (
                c.sql(f"select string_agg(state, ',') from holdfast.v_runner where pid = {standby.pid}") == "stands by"
            ),
        )
        newer.send_signal(signal.SIGKILL)
        newer.wait()
        c.wait_until_leads(standby)
        self.assertIsNone(standby.poll())
        self.assertEqual(c.broken(), "")

    def test_a_stopped_runner_is_waited_out_by_its_lease_and_changes_nothing_when_it_wakes_up(self):
        c = self.collection(lease=2)
        old = c.start("runner", "--standby")
        c.wait_until_leads(old)
        epoch = c.sql("select epoch from holdfast.v_runner where state = 'leads'")
        old.send_signal(signal.SIGSTOP)
        new = c.start("runner", "--standby")
        c.wait_until_leads(new)
        began = c.sql(f"select began_at from holdfast.runner_term where epoch = {int(epoch) + 1}")
        old.send_signal(signal.SIGCONT)
        c.until(
            "the old one stands by",
            lambda: c.sql(f"select string_agg(state, ',') from holdfast.v_runner where pid = {old.pid}") == "stands by",
        )
        self.assertEqual(
            c.sql(f"select count(*) from holdfast.maintenance_run where epoch = {epoch} and ended_at > '{began}'"), "0"
        )
        self.assertEqual(c.leading(), new.pid)
        self.assertEqual(c.endings(), ["lease lapsed"])
        self.assertIn("left: lost its lease", c.log_of(old))
        self.assertEqual(c.broken(), "")

    def test_one_that_does_not_answer_is_waited_out_for_the_graceful_timeout(self):
        c = self.collection(lease=600)
        old = c.start("runner")
        c.wait_until_leads(old)
        old.send_signal(signal.SIGSTOP)
        new = c.start("runner", HOLDFAST_RUNNER_GRACEFUL_TIMEOUT="1s")
        c.wait_until_leads(new)
        self.assertEqual(c.endings(), ["lease lapsed"])
        old.send_signal(signal.SIGCONT)
        c.until(
            "the old one stands by",
            lambda: c.sql(f"select string_agg(state, ',') from holdfast.v_runner where pid = {old.pid}") == "stands by",
        )
        self.assertEqual(c.leading(), new.pid)
        self.assertEqual(c.broken(), "")

    def test_one_that_is_killed_is_found_dead_and_not_waited_out(self):
        c = self.collection(lease=600)
        old = c.start("runner")
        c.wait_until_leads(old)
        old.kill()
        old.wait()
        new = c.start("runner", HOLDFAST_RUNNER_GRACEFUL_TIMEOUT="10m")
        c.wait_until_leads(new)
        self.assertEqual(c.endings(), ["lease lapsed: found dead"])
        self.assertEqual(c.broken(), "")


class Partition(Case):
    def test_what_a_cut_off_runner_sent_arrives_late_and_changes_nothing(self):
        c = self.collection(lease=2)
        proxy = Proxy(c.server.directory)
        self.addCleanup(proxy.close)
        old = c.start("runner", "--standby", address=proxy.directory)
        c.wait_until_leads(old)
        c.until("it does its tasks", lambda: int(c.sql("select count(*) from holdfast.maintenance_run")) > 3)
        old_id, epoch = c.sql("select id || ' ' || epoch from holdfast.v_runner where state = 'leads'").split()
        proxy.set("hold")
        new = c.start("runner", "--standby")
        c.wait_until_leads(new)
        began = c.sql(f"select began_at from holdfast.runner_term where epoch = {int(epoch) + 1}")
        # Late calls in the name of the old one are refused.
        with self.assertRaisesRegex(Failure, "no longer leads with epoch"):
            c.sql(f"select * from holdfast.runner_maintenance('{old_id}', {epoch})")
        with self.assertRaisesRegex(Failure, "has lapsed"):
            c.sql(f"select * from holdfast.runner_heartbeat('{old_id}', '1 hour', '{{}}')")
        proxy.set("pass")
        time.sleep(0.3)  # what was under way arrives, late
        proxy.cut()
        c.until(
            "the old one stands by",
            lambda: c.sql(f"select string_agg(state, ',') from holdfast.v_runner where pid = {old.pid}") == "stands by",
        )
        self.assertEqual(c.leading(), new.pid)
        # By its own clock, or because the connection that was cut told it a moment before.
        self.assertRegex(c.log_of(old), "left: lost (its lease|the database)")
        self.assertEqual(c.endings(), ["lease lapsed"])
        self.assertEqual(
            c.sql(f"select count(*) from holdfast.maintenance_run where epoch = {epoch} and began_at > '{began}'"), "0"
        )
        self.assertEqual(c.broken(), "")

    def test_one_whose_connections_are_refused_says_that_it_has_lost_the_database(self):
        c = self.collection(lease=2)
        proxy = Proxy(c.server.directory)
        self.addCleanup(proxy.close)
        old = c.start("runner", address=proxy.directory)
        c.wait_until_leads(old)
        proxy.set("refuse")
        c.until("it says so", lambda: "left: lost the database: " in c.log_of(old))
        proxy.set("pass")
        c.until("it leads again", lambda: c.sql("select max(epoch) from holdfast.v_term") == "2")
        self.assertEqual(c.endings(), ["lease lapsed"])
        self.assertEqual(c.broken(), "")


@unittest.skipUnless(network_namespaces(), "needs root and network namespaces")
class Machines(Case):
    def test_a_machine_whose_cable_is_pulled_loses_the_gate_and_comes_back_to_stand_by(self):
        c = self.collection(lease=3)
        machines = []
        for number in (1, 2):
            machines.append(Machine(number))
            self.addCleanup(machines[-1].close)
            # The server has a socket in the file system only; this is its door to the network.
            self.addCleanup(Proxy(c.server.directory, machines[-1].address).close)
        first, second = machines
        old = c.start("runner", "--standby", machine=first)
        c.wait_until_leads(old)
        new = c.start("runner", "--standby", machine=second)
        c.until(
            "the other one stands by",
            lambda: c.sql(f"select state from holdfast.v_runner where pid = {new.pid}") == "stands by",
        )
        epoch = c.sql("select epoch from holdfast.v_runner where state = 'leads'")
        first.cable_is("down")
        c.wait_until_leads(new)
        c.until("the old one has noticed", lambda: "left: lost " in c.log_of(old), seconds=60)
        began = c.sql(f"select began_at from holdfast.runner_term where epoch = {int(epoch) + 1}")
        first.cable_is("up")
        c.until(
            "the old one stands by",
            lambda: c.sql(f"select string_agg(state, ',') from holdfast.v_runner where pid = {old.pid}") == "stands by",
            seconds=60,
        )
        self.assertEqual(c.leading(), new.pid)
        self.assertEqual(
            c.sql(f"select count(*) from holdfast.maintenance_run where epoch = {epoch} and ended_at > '{began}'"), "0"
        )
        # And handed over on request, from machine to machine.
        newest = c.start("runner", machine=first)
        c.wait_until_leads(newest)
        self.assertEqual(c.endings(), ["lease lapsed", f"stepped down for {c.label(newest)}"])
        self.assertEqual(c.broken(), "")


class Contenders(Case):
    def test_thirty_two_contenders_are_killed_at_random_and_there_is_one_leader_at_a_time(self):
        c = self.collection()
        c.sql("update holdfast.maintenance_task set every = '20 milliseconds'")
        dice = random.Random(20261121)
        contenders, told = [], []
        for n in range(32):
            contenders.append(c.start("runner", *(["--standby"] if n % 4 else [])))
        killed = 0
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            leading = c.leading()
            # Every other time the leading runner itself; its successor must not need to be told.
            victims = [p for p in contenders if p.poll() is None]
            victim = (
                next((p for p in victims if p.pid == leading), None)
                if dice.random() < 0.5
                else dice.choice(victims)
                if victims
                else None
            )
            if victim is not None:
                if victim.pid == leading:
                    told.append(c.sql("select clock_timestamp()"))
                victim.send_signal(dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
                killed += 1
            for n, process in enumerate(contenders):
                if process.poll() is not None:
                    process.log.close()
                    c.processes.remove(process)
                    contenders[n] = c.start("runner", *(["--standby"] if dice.random() < 0.8 else []))
            time.sleep(dice.random() * 0.4)
        c.until("a runner leads", c.leading, seconds=LEASE + 10)
        terms, gap = c.sql(
            "select count(*), coalesce(round(max(extract(epoch from began_at - before))::numeric, 3), 0) from "
            "(select began_at, lag(valid_until) over (order by epoch) as before from holdfast.runner_term) t"
        ).split("|")
        # The record ends a lead when its holder is found dead; what people see begins when it died.
        times = ", ".join(f"('{t}'::timestamptz)" for t in told)
        outage = (
            c.sql(
                f"select coalesce(round(max(extract(epoch from (select min(t.began_at) from holdfast.runner_term t where t.began_at > v.told) - v.told))::numeric, 3), 0) "
                f"from (values {times}) v(told)"
            )
            if told
            else "0"
        )
        tasks, errors = c.sql("select count(*), count(error) from holdfast.maintenance_run").split("|")
        overlaps = c.sql(
            "select count(*) from holdfast.runner_term a join holdfast.runner_term b on a.epoch < b.epoch and "
            "tstzrange(a.began_at, a.valid_until) && tstzrange(b.began_at, b.valid_until)"
        )
        print(
            f"\n  {killed} signals, {terms} leads, {tasks} tasks, no valid epoch for at most {gap} s, from a signal to the leading runner until the next lead at most {outage} s (lease {LEASE} s)",
            flush=True,
        )
        self.assertEqual(overlaps, "0")
        self.assertEqual(
            c.sql(
                "select count(*) from holdfast.maintenance_run a join holdfast.maintenance_run b on a.id < b.id and b.id < a.id + 200 "
                "and tstzrange(a.began_at, a.ended_at) && tstzrange(b.began_at, b.ended_at)"
            ),
            "0",
        )
        self.assertEqual(
            c.sql(
                "select count(*) from holdfast.maintenance_run d join holdfast.runner_term t using (epoch) where d.process_id <> t.process_id or d.began_at < t.began_at"
            ),
            "0",
        )
        self.assertEqual(errors, "0")
        self.assertGreater(int(terms), 2)
        self.assertGreater(int(tasks), 10)
        self.assertLessEqual(float(gap), LEASE)
        self.assertLessEqual(float(outage), LEASE)
        self.assertEqual(c.broken(), "")


class Work(Case):
    def sealed(self, c, crawl, count):
        return (
            c.sql(
                f"select status || ' ' || coalesce(outcome, '') || ' ' || succeeded from holdfast.v_crawl where id = '{crawl}'"
            )
            == f"sealed succeeded {count}"
        )

    def test_adding_claiming_running_and_sealing_need_no_runner(self):
        c = self.collection()
        crawl = c.add(3)
        worker = c.start("worker")
        c.until("all is sealed", lambda: self.sealed(c, crawl, 3))
        self.assertEqual(c.sql("select count(*) from holdfast.runner_term"), "0")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=30), 0)
        self.assertEqual(c.broken(), "")

    def test_run_does_what_there_is_to_do_with_workers_of_its_own_and_ends(self):
        c = self.collection()
        crawl = c.add(12)
        paused = c.add(1, "paused")
        c.sql(f"update holdfast.crawl set status = 'paused', retry_at = holdfast.retry_at_max() where id = '{paused}'")
        run = c.start("run")
        self.assertEqual(run.wait(timeout=90), 0, c.log_of(run))
        log = c.log_of(run)
        self.assertTrue(self.sealed(c, crawl, 12), log)
        self.assertRegex(log, r"tick:.* snapshot=\d+q/\d+w")
        ticks = re.findall(r'tick:[^"\n]*', log)
        self.assertTrue(all(re.search("[1-9]", tick) for tick in ticks), ticks)
        self.assertTrue(all(tick != last for last, tick in zip(ticks, ticks[1:])), ticks)
        self.assertEqual(log.count("nothing left to do"), 1)
        self.assertEqual(c.sql(f"select status from holdfast.crawl where id = '{paused}'"), "paused")
        self.assertEqual(c.sql("select count(*) from holdfast.process where status = 'running'"), "0")
        self.assertEqual(c.sql("select ending from holdfast.v_term"), "done")
        self.assertEqual(c.broken(), "")

    def test_a_worker_that_is_killed_is_replaced_and_its_work_done_at_once(self):
        c = self.collection()
        c.hook("note", "on_Snapshot__50_note.sh", "gate go; echo ok > note.txt")
        crawl = c.add(1)
        run = c.start("run", "--daemon", HOLDFAST_LEASE="10m", HOLDFAST_MARGIN="20s")
        pid = c.until(
            "the hook runs",
            lambda: c.sql("select p.pid from holdfast.process p join holdfast.v_running r on r.process_id = p.id"),
        )
        os.kill(int(pid), signal.SIGKILL)
        c.open("go")
        # Its lease would have lasted ten minutes: that it is dead was seen.
        c.until("it was done by another one", lambda: self.sealed(c, crawl, 1), seconds=60)
        self.assertEqual(c.sql("select count(distinct process_id) from holdfast.v_attempt"), "2")
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), 0, c.log_of(run))
        self.assertEqual(c.sql("select count(*) from holdfast.process where status = 'running'"), "0")
        self.assertEqual(c.broken(), "")

    def test_a_worker_ends_when_its_runner_has_died_and_its_database_does_not_come_back(self):
        c = self.collection()
        proxy = Proxy(c.server.directory)
        self.addCleanup(proxy.close)
        short = {"LEASE": "3s", "MARGIN": "1s", "HEARTBEAT": "500ms", "KILL_GRACE": "300ms"}
        settings = {f"HOLDFAST_{name}": value for name, value in short.items()}
        run = c.start("run", "--daemon", address=proxy.directory, **settings)
        c.add(1)
        there = "select pid from holdfast.v_worker where process_type = 'worker' and status = 'running' limit 1"
        pid = c.until("a worker is there", lambda: c.sql(there))
        run.kill()
        proxy.set("refuse")
        c.until("it has ended", lambda: not os.path.exists(f"/proc/{pid}"), seconds=60)

    def test_workers_of_one_machine_id_with_disks_and_plugins_of_their_own_do_what_each_can(self):
        # As machines that were cloned: all here have the id of this one. Nothing but the archive is shared.
        c = self.collection()

        def machine(name, *plugins):
            for plugin in plugins:
                hook = c.path / name / "plugins" / plugin / "on_Snapshot__50_say.sh"
                hook.parent.mkdir(parents=True)
                hook.write_text(NOTE)
                hook.chmod(0o755)
            data, own = c.path / name / "data", c.path / name / "plugins"
            return {
                "HOLDFAST_DATA_DIR": str(data),
                "HOLDFAST_PLUGINS_PATH": str(own),
                "HOLDFAST_ARCHIVE_ROOT": str(c.path / "archive"),
            }

        both = machine("both", "red", "blue")
        (c.path / "archive").mkdir()
        workers = {name: c.start("worker", **machine(name, name)) for name in ("red", "blue")}
        add = lambda plugin, *urls: c.lines("add", "--bg", "--plugins", plugin, *urls, **both)[0]["id"]
        for name in ("red", "blue"):
            crawl = add(name, *(f"http://127.0.0.1:9/{name}{n}" for n in range(3)))
            c.until("it is sealed", lambda: self.sealed(c, crawl, 3))
            by = f"where a.crawl_id = '{crawl}'"
            did = "select distinct pid from holdfast.v_attempt a join holdfast.process p on p.id = a.process_id "
            children = pathlib.Path(f"/proc/{workers[name].pid}/task/{workers[name].pid}/children")
            self.assertIn(c.sql(did + by), children.read_text().split())  # each worker is the child of its guard
        self.assertEqual(c.sql("select distinct cpu_count from holdfast.machine"), str(len(os.sched_getaffinity(0))))
        runner = c.start("runner")
        c.wait_until_leads(runner)
        for kind, count in (("worker", 2), ("runner", 1), ("serve", 0)):
            self.assertEqual(len(c.lines("list", "workers", "--kind", kind, "--status", "running", **both)), count)
        self.assertEqual(c.lines("status", **both)[0]["workers"], 2)
        workers["blue"].terminate()
        self.assertEqual(workers["blue"].wait(timeout=60), 0)
        crawl = add("blue", "http://127.0.0.1:9/later")
        why = lambda: c.lines("why", crawl, **both)[0]["reason"]
        c.until("why says who lacks it", lambda: 'has no plugin "blue"' in why())
        self.assertFalse(self.sealed(c, crawl, 1))
        c.start("worker", **machine("new disk", "blue"))
        c.until("the new one does it", lambda: self.sealed(c, crawl, 1))
        machines = "select count(distinct machine_id) from holdfast.process where process_type = 'worker'"
        self.assertEqual(c.sql(machines), "1")
        self.assertEqual(c.broken(), "")

    def test_a_run_steps_down_for_a_newer_runner_of_its_machine_goes_on_working_and_takes_the_gate_again(self):
        for verb in ("run", "runner"):
            with self.subTest(verb):
                c = self.collection()
                old = c.start("run", "--daemon")
                c.wait_until_leads(old)
                new = c.start(verb, "--daemon") if verb == "run" else c.start(verb)
                c.wait_until_leads(new)
                self.assertEqual(c.endings(), [f"stepped down for {c.label(new)}"])
                crawl = c.add(2, "beside")
                c.until("all is sealed", lambda: self.sealed(c, crawl, 2))
                new.send_signal(signal.SIGTERM)
                self.assertEqual(new.wait(timeout=60), 0, c.log_of(new))
                c.wait_until_leads(old)
                crawl = c.add(2, "after")
                c.until("all is sealed", lambda: self.sealed(c, crawl, 2))
                old.send_signal(signal.SIGTERM)
                self.assertEqual(old.wait(timeout=60), 0, c.log_of(old))
                self.assertEqual(c.endings()[1:], ["asked to terminate"] * 2)
                self.assertEqual(c.broken(), "")

    def test_a_run_that_is_asked_over_the_database_gives_up_the_gate_goes_on_working_and_takes_it_again(self):
        c = self.collection()
        run = c.start("run", "--daemon")
        leads = "select p.pid from holdfast.process p where p.worker_type = 'worker_runner' and p.status = 'running'"
        pid = c.until("run leads", lambda: c.sql(leads))
        # As from another machine: asked, but not told.
        c.sql(
            """select holdfast.process_join('a0000000-0000-7000-8000-000000000001', '{"machine": {"id": "far",
                "hostname": "far"}, "boot_id": "b", "pid": 1, "start_ticks": 1, "pid_namespace": "n",
                "label": "far runner", "process_type": "runner", "worker_type": "runner_waiting", "version": "1"}', '1 minute')"""
        )
        c.until(
            "the far one leads",
            lambda: (
                c.sql(
                    "select answer from holdfast.runner_enter('a0000000-0000-7000-8000-000000000001', '1 minute', '5 s') limit 1"
                )
                == "lead"
            ),
        )
        crawl = c.add(2)
        c.until("all is sealed", lambda: self.sealed(c, crawl, 2))
        c.sql("select holdfast.runner_leave('a0000000-0000-7000-8000-000000000001', 0, 'done here')")
        c.until("run leads again", lambda: c.sql(leads) == pid)
        self.assertEqual(c.sql("select max(epoch) from holdfast.runner_term"), "3")
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), 0, c.log_of(run))
        self.assertEqual(c.broken(), "")

    def test_the_limits_are_of_the_machine_whoever_has_started_its_workers(self):
        c = self.collection()
        c.hook("note", "on_Snapshot__50_note.sh", "gate go; echo ok > note.txt")
        crawl = c.add(12)
        for _ in range(2):
            c.start("worker", HOLDFAST_WORKER_SNAPSHOTS="1")
        workers = "select count(*) from holdfast.v_worker where process_type = 'worker' and status = 'running'"
        c.until("two workers are at work", lambda: c.sql("select held from holdfast.v_backlog") == "2")
        limits = {"HOLDFAST_WORKER_SNAPSHOTS": "1", "HOLDFAST_RUNNER_MAX_WORKERS_PER_TYPE": "3"}
        run = c.start("run", "--daemon", **limits)
        c.until(
            "it says that there are enough",
            lambda: "starts no worker: 3 of 3 workers of this machine run; 2 were started elsewhere" in c.log_of(run),
        )
        c.until("the third has joined", lambda: c.sql(workers) == "3")
        newer = c.start("run", "--daemon", **(limits | {"HOLDFAST_RUNNER_MAX_WORKERS_PER_TYPE": "4"}))
        c.wait_until_leads(newer)
        c.until("it starts one more", lambda: c.sql(workers) == "4")
        c.until(
            "the older one leaves that to it",
            lambda: f"starts no worker: {c.label(newer)} starts the workers of this machine" in c.log_of(run),
        )
        c.until(
            "it says how many others have started",
            lambda: "4 of 4 workers of this machine run; 3 were started elsewhere" in c.log_of(newer),
        )
        c.open("go")
        c.until("all is sealed", lambda: self.sealed(c, crawl, 12))
        self.assertEqual(c.broken(), "")

    def test_it_says_why_it_waits_when_no_worker_here_has_the_plugins_of_a_crawl(self):
        c = self.collection()
        c.hook("rare", "on_Snapshot__50_rare.sh", NOTE)
        c.holdfast("add", "--bg", "--plugins", "rare", "http://127.0.0.1:9/a")
        shutil.rmtree(c.plugins / "rare")
        run = c.start("run")
        said = r"nothing is taken up; the next page is http://127\.0\.0\.1:9/a: .*has no plugin .{1,2}rare"
        c.until("it says so", lambda: re.search(said, c.log_of(run)))
        c.hook("rare", "on_Snapshot__50_rare.sh", NOTE)
        c.start("worker")
        self.assertEqual(run.wait(timeout=60), 0, c.log_of(run))

    def test_workers_that_keep_crashing_are_not_started_for_ever(self):
        c = self.collection()
        c.add(1)
        (c.path / "blocked").write_text("not a directory")
        run = c.start("run", HOLDFAST_WORK_DIR=str(c.path / "blocked" / "work"))
        self.assertEqual(run.wait(timeout=90), 71, c.log_of(run))
        self.assertIn("workers keep crashing", c.log_of(run))

    def test_a_worker_that_cannot_be_started_is_tried_again_in_the_next_round(self):
        c = self.collection()
        programs, away = c.path / "bin", c.path / "away"
        programs.mkdir()
        for program in pathlib.Path(c.program).parent.glob("holdfast*"):
            shutil.copy(program, programs)
        whole, c.program = c.program, programs / "holdfast"
        run = c.start("run", "--daemon", HOLDFAST_RUNNER_POLL_INTERVAL="1s")
        c.until("it is idle", lambda: "waiting for work" in c.log_of(run))
        c.program = whole
        (programs / "holdfast").rename(away)
        crawl = c.add(1)
        c.until("a start has failed", lambda: f"cannot start {programs}/holdfast" in c.log_of(run))
        away.rename(programs / "holdfast")
        c.until("it was done", lambda: self.sealed(c, crawl, 1))
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=60), 0, c.log_of(run))
        # It was idle twice, and said so once each time.
        self.assertLessEqual(c.log_of(run).count("waiting for work"), 2)

    def test_with_nothing_due_it_says_which_page_is_next_and_why_it_waits(self):
        c = self.collection()
        c.sql("select holdfast.host_set('127.0.0.1', '1 hour', 1, 'test')")
        c.holdfast("add", "--bg", "http://127.0.0.1:9/a", "http://127.0.0.1:9/b")
        run = c.start("run", "--daemon")
        said = r"nothing is due; the next page is http://127\.0\.0\.1:9/[ab]: .* is limited to one page every 60 min"
        c.until("it says so", lambda: re.search(said, c.log_of(run)))
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(timeout=30), 0)


class Schedules(Case):
    def test_the_verbs(self):
        c = self.collection()
        added = c.lines(
            "schedule",
            "add",
            "--every",
            "0 6 * * mon-fri",
            "--time-zone",
            "Europe/Berlin",
            "--label",
            "news",
            "-t",
            "a,b",
            "http://127.0.0.1:9/a",
            "http://127.0.0.1:9/b",
        )[0]
        self.assertEqual(
            (added["label"], added["state"], added["crawl"]["tags"], len(added["urls"])), ("news", "on", ["a", "b"], 2)
        )
        self.assertIn(" 06:00", added["next_run"])
        self.assertEqual([s["id"] for s in c.lines("schedule", "list")], [added["id"]])
        self.assertTrue(c.lines("schedule", "pause", "news")[0]["changed"])
        self.assertIsNone(c.lines("schedule", "list")[0]["next_run"])
        self.assertTrue(c.lines("schedule", "resume", added["id"][-6:])[0]["changed"])
        self.assertEqual(c.lines("schedule", "list")[0]["next_run"], added["next_run"])
        crawl = c.lines("schedule", "run-now", "news")[0]["id"]
        self.assertEqual(
            c.sql(
                f"select seeds_total || ' ' || tags::text || ' ' || created_by from holdfast.crawl where id = '{crawl}'"
            ),
            "2 {a,b} schedule news",
        )
        refused = c.holdfast("schedule", "run-now", "news", expect=65)
        self.assertIn("still open", refused.err)
        self.assertEqual(len(c.lines("schedule", "next", "news", "-n", "3")), 3)
        self.assertEqual(len(c.lines("schedule", "next", "--every", "every 20 minutes")), 5)
        for wrong in ("whenever", "61 * * * *", "* * * *", "0 0 31 2 *"):
            self.assertEqual(c.holdfast("schedule", "add", "--every", wrong, "http://127.0.0.1:9/", expect=65).code, 65)
        c.holdfast("schedule", "remove", "news")
        self.assertEqual(c.lines("schedule", "list"), [])
        self.assertEqual(c.holdfast("schedule", "pause", "news", expect=65).code, 65)
        self.assertEqual(c.sql(f"select count(*) from holdfast.crawl where id = '{crawl}'"), "1")

    def test_what_was_missed_is_caught_up_once_and_no_run_overlaps_the_last(self):
        c = self.collection()
        c.holdfast("schedule", "add", "--every", "minutely", "--label", "often", "http://127.0.0.1:9/a")
        c.sql("update holdfast.schedule set next_run_at = clock_timestamp() - interval '3 days'")
        runner = c.start("runner")
        c.until("it ran", lambda: c.sql("select runs from holdfast.schedule") == "1")
        self.assertEqual(
            c.sql(
                "select next_run_at > clock_timestamp() - interval '1 second' and next_run_at <= clock_timestamp() + interval '1 minute' from holdfast.schedule"
            ),
            "t",
        )
        c.sql("update holdfast.schedule set next_run_at = clock_timestamp()")
        c.until(
            "it was left out",
            lambda: c.sql("select skipped || note from holdfast.schedule where skipped = 1").endswith(
                "its last crawl is still open"
            ),
        )
        self.assertEqual(c.sql("select count(*) from holdfast.crawl"), "1")
        worker = c.start("worker")
        c.until("the crawl is sealed", lambda: c.sql("select status from holdfast.crawl") == "sealed")
        c.sql("update holdfast.schedule set next_run_at = clock_timestamp()")
        c.until("it ran again", lambda: c.sql("select runs from holdfast.schedule") == "2")
        for process in (runner, worker):
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=30), 0)
        self.assertEqual(c.broken(), "")

    def test_a_schedule_for_what_is_new_adds_no_empty_crawl(self):
        c = self.collection()
        worker = c.start("worker")
        added = c.lines(
            "schedule",
            "add",
            "--every",
            "daily",
            "--label",
            "fresh",
            "--only-new",
            "--robots",
            "--host-delay",
            "50ms",
            "--max-bytes",
            "1g",
            "http://127.0.0.1:9/a",
        )[0]
        self.assertEqual(
            {k: added["crawl"][k] for k in ("only_new", "robots", "host_delay", "max_bytes")},
            {"only_new": True, "robots": True, "host_delay": "50 milliseconds", "max_bytes": 1 << 30},
        )
        c.holdfast("schedule", "remove", "fresh")
        c.holdfast("schedule", "add", "--every", "daily", "--label", "fresh", "--only-new", "http://127.0.0.1:9/a")
        c.lines("schedule", "run-now", "fresh")
        c.until(
            "the page is archived", lambda: c.sql("select status || outcome from holdfast.crawl") == "sealedsucceeded"
        )
        self.assertEqual(c.lines("schedule", "run-now", "fresh")[0]["note"][:15], "nothing new at ")
        runner = c.start("runner")
        c.sql("update holdfast.schedule set next_run_at = clock_timestamp()")
        c.until("the task has run it", lambda: c.sql("select runs from holdfast.schedule") == "3")
        self.assertEqual(
            c.sql("select count(*) || ' ' || (select skipped from holdfast.schedule) from holdfast.crawl"), "1 0"
        )
        for process in (runner, worker):
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=30), 0)
        self.assertEqual(c.broken(), "")

    # every, zone, after (UTC), the next times as the clock there shows them
    TIMES = [
        ("daily", "UTC", "2026-01-31 12:00", "02-01 00:00, 02-02 00:00"),
        ("@hourly", "UTC", "2026-12-31 23:30", "01-01 00:00, 01-01 01:00"),
        ("weekly", "UTC", "2026-11-21 00:00", "11-22 00:00, 11-29 00:00"),
        ("monthly", "UTC", "2026-01-01 00:00", "02-01 00:00, 03-01 00:00"),
        ("every 20 minutes", "UTC", "2026-11-21 00:10", "11-21 00:20, 11-21 00:40, 11-21 01:00"),
        ("every 2 days", "Europe/Berlin", "2026-03-28 00:00", "03-29 00:00, 03-31 00:00, 04-02 00:00"),
        ("*/15 9-17/8 * * *", "UTC", "2026-11-21 09:40", "11-21 09:45, 11-21 17:00, 11-21 17:15"),
        ("0 6 * * mon-fri", "America/New_York", "2026-11-21 00:00", "11-23 06:00, 11-24 06:00"),
        ("5,50 0 1 jan,jul *", "UTC", "2026-06-30 00:00", "07-01 00:05, 07-01 00:50, 01-01 00:05"),
        ("0 0 29 2 *", "UTC", "2026-01-01 00:00", "02-29 00:00, 02-29 00:00"),
        ("0 0 * * 7", "UTC", "2026-11-21 00:00", "11-22 00:00"),
        # Both days restricted: either may match. One of them "*": both must.
        ("0 0 13 * fri", "UTC", "2026-01-03 00:00", "01-09 00:00, 01-13 00:00, 01-16 00:00"),
        ("0 0 13 * *", "UTC", "2026-01-03 00:00", "01-13 00:00, 02-13 00:00"),
        ("0 0 */13 * fri", "UTC", "2026-01-03 00:00", "02-27 00:00, 03-27 00:00"),
        # The clocks are moved forward at 02:00 on 29 March and back at 03:00 on 25 October 2026.
        ("30 2 * * *", "Europe/Berlin", "2026-03-27 12:00", "03-28 02:30, 03-29 03:30, 03-30 02:30"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-23 12:00", "10-24 02:30, 10-25 02:30, 10-26 02:30"),
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29 00:10", "03-29 01:30, 03-29 03:00, 03-29 03:30"),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-24 23:40",
            "10-25 02:00, 10-25 02:30, 10-25 02:00, 10-25 02:30, 10-25 03:00",
        ),
        ("0 0 * * *", "America/Santiago", "2026-09-05 12:00", "09-06 01:00, 09-07 00:00"),  # midnight itself is skipped
    ]

    def test_the_calendar(self):
        c = self.collection()
        for every, zone, after, expected in self.TIMES:
            with self.subTest(every=every, zone=zone, after=after):
                count = expected.count(",") + 1
                told = c.sql(
                    f"select string_agg(to_char(t at time zone '{zone}', 'MM-DD HH24:MI'), ', ' order by n) from "
                    f"holdfast.schedule_times('{every}', '{zone}', '{after}+00', {count}) with ordinality x(t, n)"
                )
                self.assertEqual(told, expected)
        self.assertEqual(c.sql("select holdfast.schedule_next('0 0 31 2 *', 'UTC', now()) is null"), "t")


class Maintenance(Case):
    def test_a_maintenance_that_fails_keeps_no_other_one_from_being_done_and_says_why(self):
        c = self.collection()
        c.sql(
            "create or replace function holdfast.maintenance_mend(p_task holdfast.maintenance_task) returns bigint language plpgsql as $$ begin raise exception 'broken on purpose'; end $$"
        )
        runner = c.start("runner")
        c.until(
            "all have run",
            lambda: c.sql("select count(*) filter (where runs = 0) from holdfast.maintenance_task") == "0",
        )
        self.assertEqual(
            c.sql("select string_agg(name || ': ' || error, ',') from holdfast.v_maintenance where error is not null"),
            "mend: broken on purpose",
        )
        runner.send_signal(signal.SIGTERM)
        runner.wait(timeout=20)
        self.assertIn("task mend failed: broken on purpose", c.log_of(runner))

    def test_each_maintenance_does_its_work_once(self):
        c = self.collection()
        c.sql("insert into holdfast.machine (id, hostname) values ('elsewhere', 'elsewhere')")
        c.sql(
            "insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, label, heartbeat_at, lease_until) "
            "values (gen_random_uuid(), 'elsewhere', 'b', 1, 1, 'worker', 'lost worker', now(), now() - interval '1 minute')"
        )
        c.sql(
            "insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, process_type, label, status, ended_at) "
            "values (gen_random_uuid(), 'elsewhere', 'b', 1, 1, 'worker', 'old worker', 'exited', now() - interval '2 years')"
        )
        c.sql(
            "insert into holdfast.event (at, lifecycle, object_id, event, to_state) values (now() - interval '1 year', 'crawl', gen_random_uuid(), 'add', 'queued')"
        )
        c.sql(
            "insert into holdfast.host (name, backoff_level, backoff_until, reason, updated_at) values ('slow.test', 2, now() - interval '1 hour', '429', now() - interval '1 hour')"
        )
        c.sql(
            "insert into holdfast.crawl (id, label, status, retry_at) values (gen_random_uuid(), 'stuck', 'started', null)"
        )
        runner = c.start("runner")
        c.until(
            "all have run",
            lambda: c.sql("select count(*) filter (where runs = 0) from holdfast.maintenance_task") == "0",
        )
        self.assertEqual(
            c.sql("select status || ' ' || exit_reason from holdfast.process where label = 'lost worker'"),
            "exited lease lapsed",
        )
        self.assertEqual(c.sql("select count(*) from holdfast.process where label = 'old worker'"), "0")
        self.assertEqual(c.sql("select count(*) from holdfast.event where at < now() - interval '90 days'"), "0")
        self.assertEqual(c.sql("select backoff_level from holdfast.host"), "1")
        self.assertEqual(
            c.sql("select status || ' ' || outcome from holdfast.crawl where label = 'stuck'"), "sealed empty"
        )
        before = c.sql("select sum(total_count) from holdfast.maintenance_task")
        runs = int(c.sql("select sum(runs) from holdfast.maintenance_task"))
        c.sql("update holdfast.maintenance_task set next_at = clock_timestamp()")
        c.until("all have run again", lambda: int(c.sql("select sum(runs) from holdfast.maintenance_task")) >= runs + 8)
        self.assertEqual(c.sql("select sum(total_count) from holdfast.maintenance_task"), before)
        runner.send_signal(signal.SIGTERM)
        self.assertEqual(runner.wait(timeout=20), 0)
        self.assertEqual(c.broken(), "")

    def test_what_was_to_be_kept_until_now_goes_with_its_files(self):
        c = self.collection()
        kept, expired = c.add(1, "kept"), c.add(2, "expired")
        worker = c.start("worker")
        c.until("both are sealed", lambda: c.sql("select count(*) from holdfast.crawl where status = 'sealed'") == "2")
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=30)
        archive = c.path / "data" / "archive"
        directories = c.sql(f"select directory from holdfast.snapshot_sealed where crawl_id = '{expired}'").splitlines()
        self.assertTrue(directories and all((archive / d / "index.html").exists() for d in directories))
        c.sql(f"update holdfast.crawl set keep_until = clock_timestamp() - interval '1 second' where id = '{expired}'")
        # A row must not lead out of the archive.
        (c.path / "precious").mkdir()
        c.sql("insert into holdfast.purge (directory) values ('../../precious'), ('a/b/../precious')")
        runner = c.start("runner")
        c.until(
            "it is gone",
            lambda: (
                c.sql("select (select count(*) from holdfast.crawl) || ' ' || (select count(*) from holdfast.purge)")
                == "1 2"
            ),
        )
        self.assertFalse(any((archive / d).parent.exists() for d in directories))
        self.assertTrue((c.path / "precious").exists())
        left = c.sql(f"select directory from holdfast.snapshot_sealed where crawl_id = '{kept}'")
        self.assertTrue((archive / left / "index.html").exists())
        runner.send_signal(signal.SIGTERM)
        self.assertEqual(runner.wait(timeout=20), 0)
        self.assertEqual(c.broken(), "")


def main():
    global SECONDS
    parser = suites.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long the contenders contend (8)")
    arguments = suites.read(parser.parse_args())
    SECONDS = arguments.seconds
    # 32 runners hold two sessions each.
    with postgres.Server(autovacuum="off", max_connections=300) as Collection.server:
        return suites.run(arguments, sys.modules[__name__])


if __name__ == "__main__":
    sys.exit(suites.without_server() or main())
