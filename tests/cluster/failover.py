#!/usr/bin/env python3
"""Failover: the primary dies or is cut off under load, and a standby is promoted.

    tests/cluster/failover.py --holdfast build/dev/bin/holdfast              each scenario once; ctest runs this
    tests/cluster/failover.py --holdfast ... --trials 50                     50 kills of the primary, with figures
    tests/cluster/failover.py --holdfast ... --only returns                  scenarios whose name contains this

Two PostgreSQL servers and workers whose database.url names both, each through a proxy of the worker's own. With a
synchronous standby, all that the primary had shown as sealed must be there afterwards. With an asynchronous one, some
may be lost; then it is archived again, or made again from its files.
"""

import argparse
import contextlib
import http.client
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True
import stage
from harness.full import FULL
from harness.postgres import find_programs
from harness.proxy import Proxy
from harness.wait import Failure, end_in_order, free_port, until
from harness.worker import processes_below, read


class Program:
    """`holdfast serve` or `holdfast runner`, with sessions to both servers."""

    def __init__(self, place, *words):
        self.port = free_port()
        environment = place.workers[0].environment() | {
            "HOLDFAST_DATABASE_URL": place.url(*(server.port for server in place.servers)),
            "HOLDFAST_SERVE_LISTEN": f"127.0.0.1:{self.port}",
            "HOLDFAST_HTTP_LISTEN": "",
        }
        environment.pop("LD_PRELOAD", None)
        with open(place.path / f"{words[0]}.log", "ab") as log:
            self.process = subprocess.Popen(
                place.command(*words), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def status(self, path):
        """Of the answer to a request; 0: no answer."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("GET", path)
            return connection.getresponse().status
        return 0

    def events(self):
        """The ids of the event stream, in a list that a thread appends to as long as the connection lasts."""
        ids = []

        def read_all():
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
                connection.request("GET", "/api/v1/events/stream")
                for line in connection.getresponse():
                    if line.startswith(b"id: "):
                        ids.append(int(line[4:]))

        threading.Thread(target=read_all, daemon=True).start()
        return ids

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure(f"{self.process.args[1]} does not end") from None


class Server(stage.Postgres):
    """Can be made a standby of another."""

    def __init__(self, directory, mount=None):
        super().__init__(directory)

    def processes(self):
        return [self.process.pid, *(pid for pid, _ in processes_below(self.process.pid))]

    def signal_all(self, number):
        """To the postmaster first: it starts no others."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        self.signal_all(signal.SIGKILL)
        self.process.wait(60)

    def configure(self, **settings):
        with open(self.directory / "data/postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def follow(self, primary, port):
        """Becomes a standby of the primary, which it reaches through `port`."""
        if self.running():
            self.stop()
        data = self.directory / "data"
        shutil.rmtree(data)
        primary.run(
            "pg_basebackup", "-D", data, "-R", "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-p", primary.port
        )
        self.configure(
            primary_conninfo=f"host=127.0.0.1 port={port} user=postgres application_name=standby",
            synchronous_standby_names="",
        )
        self.start()

    def promote(self):
        self.sql("select pg_promote()")


class Pair(stage.Stage):
    """`postgres` is the primary of the moment, `standby` the other one; `link` is the network between them."""

    server = Server

    def __init__(self, holdfast, synchronous, workers=3, keep=False):
        super().__init__(holdfast, workers=workers, slots=4, leaf_tenths=1, keep=keep)
        self.synchronous, self.link = synchronous, None
        try:
            self.standby = Server(self.path / "postgres-2")
            self.servers = [self.postgres, self.standby]
            for worker in self.workers:
                worker.proxies = [Proxy(server.port) for server in self.servers]
                worker.extra = {"HOLDFAST_DATABASE_URL": self.url(*(proxy.port for proxy in worker.proxies))}
            self.attach()
        except BaseException:
            self.close()
            raise

    def attach(self):
        """The other server follows the primary."""
        if self.link:
            self.link.close()
        self.link = Proxy(self.postgres.port)
        self.standby.follow(self.postgres, self.link.port)
        if self.synchronous:
            self.postgres.configure(synchronous_standby_names="standby", synchronous_commit="on")
            self.postgres.sql("select pg_reload_conf()")
        until("the standby streams", lambda: self.value("select state from pg_stat_replication") == "streaming")
        if self.synchronous:
            until("it is synchronous", lambda: self.value("select sync_state from pg_stat_replication") == "sync")

    def value(self, text):
        return self.postgres.value(text)

    def caught_up(self):
        position = self.value("select pg_current_wal_lsn()")
        until(
            "the standby has all", lambda: self.standby.value(f"select pg_last_wal_replay_lsn() >= '{position}'") == "t"
        )

    def sealed(self, server=None):
        """(snapshot, fence, manifest) of all sealed rows."""
        rows = (server or self.postgres).rows(
            "select snapshot_id, fence, manifest_sha256 from holdfast.snapshot_sealed"
        )
        return {tuple(row) for row in rows}

    def promote(self):
        """The standby is the primary from now on. Returns how long that took."""
        began = time.monotonic()
        self.standby.promote()
        self.postgres, self.standby = self.standby, self.postgres
        self.database_port = self.postgres.port
        return time.monotonic() - began

    def add_pages(self, name, count=60):
        return self.add([f"http://h{n % 7}.test/leaf/2/0/{name}-{n}" for n in range(count)])

    def wait_for_seals(self, count):
        def enough():
            self.tend()
            return len(self.sealed()) >= count

        until(f"{count} pages are sealed", enough, explain=self.diagnosis)

    def kill_and_promote(self, name):
        """Kills the primary under load. Returns the seconds from the kill and from the promotion to the next seal."""
        before = len(self.sealed())
        self.add_pages(name)
        self.caught_up()
        self.wait_for_seals(before + 8)
        acknowledged = self.sealed()
        self.postgres.kill()
        killed = time.monotonic()
        self.promote()
        promoted = time.monotonic()
        here = self.sealed()
        lost = acknowledged - here
        if lost and self.synchronous:
            raise Failure(f"{len(lost)} acknowledged pages are lost, for example {min(lost)}")
        self.wait_for_seals(len(here) + 1)
        sealed = time.monotonic()
        self.wait_until_sealed(180)
        if max(int(fence) for _, fence, _ in self.sealed()) < 10**9:
            raise Failure("the fences of the new timeline could be those of the old one")
        return sealed - killed, sealed - promoted, len(lost)

    def check_trace(self):
        # What an asynchronous standby did not get was given again while its first owner was still at it.
        return super().check_trace() if self.synchronous else []

    def prove(self):
        self.wait_until_sealed(180)
        self.leave()
        problems = self.check()
        if problems:
            raise Failure("\n".join(problems[:20]))

    def worker_logs(self):
        return b"".join(read(worker.log_path) for worker in self.workers).decode(errors="replace")

    def close(self):
        for server in getattr(self, "servers", []):
            with contextlib.suppress(Exception):
                server.signal_all(signal.SIGCONT)
                server.stop()
        for proxy in [self.link, *(proxy for worker in self.workers for proxy in getattr(worker, "proxies", []))]:
            if proxy:
                proxy.close()
        super().close()


# The scenarios -----


def kills(holdfast, synchronous, trials, keep, say):
    """The primary is killed with all its processes, the standby promoted, the killed one made its standby, again and
    again."""
    with contextlib.closing(Pair(holdfast, synchronous, keep=keep)) as place:
        place.start()
        times, lost = [], 0
        for trial in range(trials):
            total, after, gone = place.kill_and_promote(f"t{trial}")
            times.append((total, after))
            lost += gone
            place.attach()
            say(
                f"  {trial + 1}: first seal {total:.1f} s after the kill, {after:.1f} s after the promotion, {gone} lost"
            )
        keep_if_wrong(place, place.prove)
        totals, afters = (sorted(column) for column in zip(*times))
        say(
            f"{'synchronous' if synchronous else 'asynchronous'}, {trials} failovers: first seal after the kill: median "
            f"{totals[len(totals) // 2]:.1f} s, worst {totals[-1]:.1f} s; after the promotion: median "
            f"{afters[len(afters) // 2]:.1f} s, worst {afters[-1]:.1f} s; {lost} seals lost, 0 sealed twice"
        )


def keep_if_wrong(place, action):
    try:
        return action()
    except Failure:
        place.keep = True
        raise


def kill_synchronous(holdfast, keep, say):
    kills(holdfast, True, 1, keep, say)


def kill_asynchronous(holdfast, keep, say):
    kills(holdfast, False, 1, keep, say)


def old_primary_returns(holdfast, keep, say):
    """The primary is frozen, the standby promoted, and the old primary goes on. Nothing may be written there."""
    with contextlib.closing(Pair(holdfast, False, keep=keep)) as place:
        place.start()
        place.add_pages("p", 150)
        place.wait_for_seals(8)
        place.caught_up()
        freezes_at = place.postgres.value("select clock_timestamp()")
        place.postgres.signal_all(signal.SIGSTOP)
        frozen = time.monotonic()
        place.promote()
        here = len(place.sealed())
        place.wait_for_seals(here + 8)
        say(f"  frozen primary: the next seals came after {time.monotonic() - frozen:.1f} s")
        old = place.standby
        old.signal_all(signal.SIGCONT)
        until("it is back", lambda: old.value("select 1") == "1")
        # What it was sent before it froze it does now, and the standby never had it.
        of_before = f"application_name like '%worker%' and backend_start < '{freezes_at}'"
        until(
            "its sessions of before have ended",
            lambda: old.value(f"select count(*) from pg_stat_activity where {of_before}") == "0",
        )
        # A blip: every session ends, and both servers would take new ones.
        before = old.value("select count(*) from holdfast.snapshot_sealed")
        place.postgres.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like '%worker%'"
        )
        place.wait_for_seals(len(place.sealed()) + 8)
        # Only the old one answers. Nothing can go on, and nothing may.
        for worker in place.workers:
            worker.proxies[place.servers.index(place.postgres)].set("refuse")
        until(
            "the workers refuse it",
            lambda: (
                place.tend() or place.worker_logs().count("is an old primary: it is on timeline 1, and timeline 2") >= 3
            ),
            120,
        )
        refuse = place.run("status", DATABASE_URL=place.url(old.port))
        if refuse.code != 69 or "timeline 1" not in refuse.err or "timeline 2" not in refuse.err:
            raise Failure(f"status on the old primary: {refuse}")
        for worker in place.workers:
            worker.proxies[place.servers.index(place.postgres)].set("pass")
        keep_if_wrong(place, lambda: place.wait_until_sealed(120))
        after = old.value("select count(*) from holdfast.snapshot_sealed")
        if after != before:
            raise Failure(f"{int(after) - int(before)} pages were sealed on the old primary")
        keep_if_wrong(place, place.prove)


def split(holdfast, keep, say):
    """One worker sees only the old primary, which the standby has lost too. When it sees both again, it goes over."""
    with contextlib.closing(Pair(holdfast, False, workers=2, keep=keep)) as place:
        place.start()
        place.add_pages("s", 200)
        place.wait_for_seals(8)
        place.caught_up()
        old_side, new_side = place.postgres, place.standby
        apart = place.workers[0].proxies[place.servers.index(new_side)]
        apart.set("refuse")
        place.link.set("refuse")
        place.promote()
        here = len(place.sealed())
        there = len(place.sealed(old_side))
        place.wait_for_seals(here + 8)
        until("the other worker goes on with the old one", lambda: len(place.sealed(old_side)) > there)
        apart.set("pass")
        frozen = time.monotonic()
        until(
            "it has gone over",
            lambda: (
                place.value("select count(distinct pid) from holdfast.process where status = 'running'") == "2"
                and old_side.value(
                    "select count(*) from pg_stat_activity where application_name like '%worker%' and application_name not like '%watch'"
                )
                == "0"
            ),
            120,
            place.diagnosis,
        )
        say(f"  split: the worker went over {time.monotonic() - frozen:.1f} s after it could")
        before = len(place.sealed(old_side))
        keep_if_wrong(place, place.prove)
        if len(place.sealed(old_side)) != before:
            raise Failure("a page was sealed on the old side after the end of the split")


def lost_crawl(holdfast, keep, say):
    """A crawl that was sealed while the standby lagged is lost with the primary; verify finds its files, adopt its
    rows."""
    with contextlib.closing(Pair(holdfast, False, workers=1, keep=keep)) as place:
        place.start()
        place.add_pages("kept", 4)
        place.wait_until_sealed(180)
        place.caught_up()
        place.link.set("refuse")
        crawl = place.add_pages("lost", 5)
        place.wait_until_sealed(180)
        sealed = place.sealed()
        place.postgres.kill()
        place.promote()
        if place.value(f"select count(*) from holdfast.crawl where id = '{crawl}'") != "0":
            raise Failure("the standby did not lag")
        found = place.run("verify", "--all", "--collect")
        if found.code != 1 or found.out.count('"no row"') != 5:
            raise Failure(f"verify: {found}")
        place.holdfast("adopt")
        if place.sealed() != sealed:
            raise Failure("adopt has not made the rows again")
        place.holdfast("verify", "--all")


def page_and_runner(holdfast, keep, say):
    """A page, a stream of events and a runner go over to the new primary, which lacks the last events of the old one.
    Between the two, requests are answered with 503."""
    with contextlib.ExitStack() as ends:
        place = ends.enter_context(contextlib.closing(Pair(holdfast, False, workers=2, keep=keep)))
        page = ends.enter_context(contextlib.closing(Program(place, "serve")))
        runner = ends.enter_context(contextlib.closing(Program(place, "runner")))
        terms = "select max(epoch) from holdfast.runner_term where ended_at is null and valid_until > clock_timestamp()"
        until("the runner leads", lambda: place.value(terms))
        until("the page answers", lambda: page.status("/") == 200)
        seen = page.events()
        place.start()
        place.add_pages("p", 400)
        place.wait_for_seals(8)
        place.caught_up()
        kept = int(place.value("select max(id) from holdfast.event"))
        place.link.set("refuse")
        until("events come that the standby will lack", lambda: place.tend() or seen and seen[-1] > kept + 250)
        place.postgres.kill()
        killed = time.monotonic()
        until("requests are refused for now", lambda: page.status("/") == 503)
        if (status := page.status("/api/v1/crawls")) != 503:
            raise Failure(f"the API answers {status} without a database")
        count = len(seen)
        place.promote()
        until("the page answers", lambda: page.status("/") == 200)
        answered = time.monotonic() - killed
        epoch = place.value("select max(epoch) from holdfast.runner_term where began_at < now()")
        until("a runner leads", lambda: place.value(terms))
        led = time.monotonic() - killed
        until("the stream goes on", lambda: place.tend() or any(number < kept + 150 for number in seen[count:]))
        if runner.process.poll() is not None or page.process.poll() is not None:
            raise Failure("the runner or the page has ended")
        say(f"  page: answers {answered:.1f} s after the kill; runner: leads after {led:.1f} s; epoch {epoch}")
        keep_if_wrong(place, lambda: place.wait_until_sealed(180))
        ran = "select coalesce(max(ended_at), '-infinity') > (select max(began_at) from holdfast.runner_term) from holdfast.maintenance_run"
        until("the runner does its tasks", lambda: place.value(ran) == "t")
        for program in (runner, page):
            program.close()
        keep_if_wrong(place, place.prove)


SCENARIOS = {
    "kill, synchronous": kill_synchronous,
    "kill, asynchronous": kill_asynchronous,
    "old primary returns": old_primary_returns,
    "split": split,
    "lost crawl": lost_crawl,
    "page and runner": page_and_runner,
}
ONLY_IN_FULL = {"kill, asynchronous", "old primary returns"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--holdfast", required=True)
    parser.add_argument("--trials", type=int, help="kills of the primary, half of them with a synchronous standby")
    parser.add_argument("--only", default="", help="only scenarios whose name contains this")
    parser.add_argument("--keep", action="store_true", help="keep the directory")
    options = parser.parse_args()
    if not find_programs():
        print("PostgreSQL is not installed")
        return 77
    end_in_order()
    holdfast = str(pathlib.Path(options.holdfast).resolve())
    say = lambda text: print(text, flush=True)
    try:
        if options.trials:
            kills(holdfast, True, (options.trials + 1) // 2, options.keep, say)
            kills(holdfast, False, options.trials // 2, options.keep, say)
            return 0
        for name, scenario in SCENARIOS.items():
            if options.only in name and (FULL or options.only or name not in ONLY_IN_FULL):
                began = time.monotonic()
                scenario(holdfast, options.keep, say)
                say(f"held: {name} ({time.monotonic() - began:.0f} s)")
    except Failure as failure:
        say(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
