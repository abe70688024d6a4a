"""Random faults over a crawl, from a seed."""

import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import stage
from harness.wait import Failure
from harness.worker import living, process_table, processes_below
from stage import LEASE


class Storm:
    """Injects `count` faults. The seed decides which faults, on whom and how long apart; the machine decides what they meet."""

    WEIGHTS = {
        "terminate backends": 22,
        "kill a hook or shim": 22,
        "kill a worker": 8,
        "kill worker and guard": 4,
        "stop a worker past its lease": 4,
        "half-open sessions": 10,
        "partition": 6,
        "refused connections": 8,
        "answers lost": 8,
        "database crash": 3,
        "scratch full": 3,
        "archive full": 2,
        "database full": 2,
        "memory short": 4,
        "keys refused": 6,
        "standby gone": 3,
        "notifications full": 3,
        "archive takes no files": 3,
        "clock jump": 3,
    }
    # Of a fault that stands until its reason was said; other reasons may only be those of earlier faults.
    REASON = {
        "standby gone": r"must wait for a synchronous standby \(synchronous_standby_names: gone\)",
        "notifications full": r"queue of notifications|NOTIFY queue",
        "archive takes no files": r"archive|cannot create \S+/scratch-2/",  # a work_dir on the same disk
        "clock jump": r"clock",
        "keys refused": r"object store|archive",
        "memory short": r"its shim was killed by SIGKILL",
    }
    BEFORE = (
        r"^(process: (sends no heartbeats|its lease has expired)|login: |lock: )"
        r"|lost the database|cannot connect to the database|cannot create \S+/scratch-1/\S+: No space left"
    )
    SAID = 20  # seconds: a lease, the time after which a statement gives up, and a machine that does other things

    def __init__(self, place, seed, count, pause):
        self.place, self.random, self.count, self.pause = place, random.Random(seed), count, pause
        self.done, self.later, self.said, self.problems = {name: 0 for name in self.WEIGHTS}, [], {}, []
        self.by_signal = 0  # shims that no control group could end
        self.refill, without = None, {"keys refused"}
        if not place.small_disk:
            without |= {"scratch full", "archive full", "database full", "archive takes no files"}
            place.notes.append("no full disks: mounting a small file system needs root")
        if place.bucket:
            without = (without | {"archive full", "archive takes no files"}) - {"keys refused"}
        self.names = [name for name in self.WEIGHTS if name not in without]

    def at(self, seconds, action):
        self.later.append((time.monotonic() + seconds, action))

    def heal(self, everything=False):
        now = time.monotonic()
        due = [entry for entry in self.later if everything or entry[0] <= now]
        self.later = [entry for entry in self.later if entry not in due]
        for _, action in due:
            action()

    def run(self, refill, again):
        """`refill` is called when the work runs out before the faults do, `again` every other second."""
        self.refill, last_look = refill, 0.0
        for _ in range(self.count):
            name = self.random.choices(self.names, [self.WEIGHTS[name] for name in self.names])[0]
            worker = self.random.choice(self.place.workers)
            dice = random.Random(self.random.random())  # so that what a fault finds does not change the faults after it
            self.faults[name](self, worker, dice)
            self.done[name] += 1
            until = time.monotonic() + self.random.expovariate(1 / self.pause)
            while True:
                self.heal()
                self.place.tend()
                if time.monotonic() - last_look > 2:
                    last_look = time.monotonic()
                    if self.place.open_snapshots() < 50:
                        refill()
                    again()
                if time.monotonic() >= until:
                    break
                time.sleep(min(0.05, max(0.0, until - time.monotonic())))
        while self.later:
            self.heal()
            self.place.tend()
            time.sleep(0.05)

    # The faults -----

    def terminate_backends(self, worker, dice):
        self.place.postgres.rows(
            f"select pg_terminate_backend(pid) from (select pid from pg_stat_activity where application_name like 'holdfast worker%' "
            f"order by random() limit {dice.randint(1, 4)}) s"
        )

    def kill_hook(self, worker, dice):
        below = [
            entry for entry in processes_below(worker.process.pid) if entry[1] not in ("holdfast", "holdfast-guard")
        ]
        if below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(below)[0], signal.SIGKILL)

    def kill_worker(self, worker, dice, with_guard=False):
        when = time.time()
        name = worker.kill(with_guard)
        if name:
            self.place.kills.append((name, when))

    def kill_both(self, worker, dice):
        self.kill_worker(worker, dice, True)

    def stop_worker(self, worker, dice):
        pid = worker.pid()
        if pid is None:
            return
        self.place.stopped.add(worker.identity(pid))
        os.kill(pid, signal.SIGSTOP)

        def go_on():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        self.at(LEASE * dice.uniform(1.0, 1.6), go_on)

    def half_open(self, worker, dice):
        worker.proxy.set("swallow")  # for the sessions there are now
        worker.proxy.set("pass")

    def partition(self, worker, dice):
        worker.proxy.set("swallow")
        self.at(LEASE * dice.uniform(0.3, 1.6), lambda: worker.proxy.set("pass"))

    def refuse(self, worker, dice):
        worker.proxy.set("refuse")
        self.at(dice.uniform(0.2, 2.5), lambda: worker.proxy.set("pass"))

    def deaf(self, worker, dice):
        worker.proxy.set("deaf")

        def hear():
            worker.proxy.set("pass")
            worker.proxy.cut()

        self.at(dice.uniform(0.2, 1.0), hear)

    def crash_database(self, worker, dice):
        began = time.time()
        self.place.postgres.crash()
        self.place.outages.append((began, time.time()))

    def fill(self, directory, seconds):
        file = pathlib.Path(directory) / "filler"
        with contextlib.suppress(OSError), open(file, "wb", buffering=0) as filler:
            room = os.statvfs(directory)
            os.posix_fallocate(
                filler.fileno(), 0, max(1, room.f_bfree * room.f_frsize - (64 << 10))
            )  # at once, however slow the machine
        with contextlib.suppress(OSError), open(file, "ab", buffering=0) as filler:
            while True:
                filler.write(bytes(512))
        self.at(seconds, lambda: file.unlink(missing_ok=True))

    def fill_scratch(self, worker, dice):
        self.fill(self.place.path / "scratch-1", dice.uniform(0.3, 1.5))

    def fill_archive(self, worker, dice):
        seconds = dice.uniform(0.3, 1.0)
        self.place.outages.append((time.time(), time.time() + seconds))
        self.fill(self.place.path / "shared", seconds)

    def fill_database(self, worker, dice):
        began, data = time.time(), self.place.postgres.directory / "data"
        self.fill(data, dice.uniform(0.3, 1.5))
        while (data / "filler").exists():  # no other fault meanwhile: we need the database ourselves
            self.heal()
            self.place.tend()
            time.sleep(0.05)
        # Without room for its log the server gives up, and so does its recovery: an operator makes room and starts it.
        if not self.place.postgres.running():
            self.place.postgres.start()
        self.place.outages.append((began, time.time()))

    # Faults that stand until their reason was said -----

    def reasons(self):
        rows = self.place.postgres.rows("select kind || ': ' || what || ' ' || reason from holdfast.v_stuck")
        return [row[0] for row in rows]

    def make_due(self):
        """A fault shows in what is begun: pages that wait for another reason say that one."""
        due = (
            "select count(*) from holdfast.snapshot_queue where owner_id is null and retry_at <= statement_timestamp()"
        )
        if int(self.place.postgres.value(due)) < 30:
            self.refill()

    def stand(self, name, begin, end, why=True):
        """Only this fault stands. Its reason must be said by v_stuck, and by `why` if nothing moves, alone, and no longer
        once it is over."""
        self.heal(everything=True)
        self.over(f"before {name}", lambda reason: not re.search(self.BEFORE, reason))
        self.make_due()
        right, wrong, started, seen = self.REASON[name], set(), time.monotonic(), None
        begin()
        while seen is None and time.monotonic() - started < self.SAID:
            self.place.tend()
            reasons = self.reasons()
            wrong |= {reason for reason in reasons if not re.search(right + "|" + self.BEFORE, reason)}
            if any(re.search(right, reason) for reason in reasons):
                seen = time.monotonic() - started
            time.sleep(0.1)
        crawl = "(select id from holdfast.crawl where status = 'started' order by created_at limit 1)"
        sentences = [row[0] for row in self.place.postgres.rows(f"select reason from holdfast.why({crawl})")]
        if why and sentences and not re.search(right, sentences[0]):
            self.problems.append(f"why says something else of {name}: {sentences[0]}")
        end()
        if seen is None:
            self.problems.append(f"{name}: no reason within {self.SAID} s")
        self.said.setdefault(name, []).append(seen)
        self.problems += [f"{name}: wrong reason {reason}" for reason in wrong]
        self.over(name, lambda reason: re.search(right, reason))

    def over(self, name, of_it):
        until = time.monotonic() + self.SAID
        while left := [reason for reason in self.reasons() if of_it(reason)]:
            self.place.tend()
            if time.monotonic() > until:
                self.problems.append(f"{name}: a reason stays: {left[0]}")
                break
            time.sleep(0.2)

    def sql(self, *statements):
        for statement in statements:
            self.place.postgres.rows(statement)

    def memory(self, worker, dice):
        """The kernel ends a shim, because its control group has no memory left. The page is not to blame, and says why
        it waits."""
        self.heal(everything=True)
        self.make_due()
        chosen, until = None, time.monotonic() + self.SAID
        while not chosen and time.monotonic() < until:
            self.place.tend()
            chosen = self.stopped_hook()
        if not chosen:
            return
        shim, snapshot, fence = chosen
        started = time.monotonic()
        self.end_for_memory(shim)
        ending = f"select ending, reason from holdfast.v_attempt where snapshot_id = '{snapshot}' and fence = {fence}"
        ended = []
        while not ended and time.monotonic() - started < self.SAID:
            self.place.tend()
            ended = self.place.postgres.rows(ending)
        if ended and ended[0][0] in ("lapsed", "interrupted"):  # for an earlier fault
            return
        # A page of which other hooks have kept something is sealed as partial, with the error of the hook.
        errors = f"select error from holdfast.v_result where snapshot_id = '{snapshot}' and error <> ''"
        texts = [row[1] for row in ended if row[0] == "released"] + [
            row[0] for row in self.place.postgres.rows(errors) if ended and ended[0] == ["sealed", "partial"]
        ]
        said = any(re.search(self.REASON["memory short"], text) for text in texts)
        why = self.place.postgres.rows(f"select reason from holdfast.why('{snapshot}')")
        waits = self.place.postgres.rows(
            f"select 1 from holdfast.snapshot_queue where snapshot_id = '{snapshot}' and owner_id is null and retry_at > now()"
        )
        if waits and not re.search(self.REASON["memory short"], why[0][0]):
            self.problems.append(f"why says something else of memory short: {why[0][0]}")
        if not said:
            self.problems.append(f"memory short: attempt {fence} of {snapshot} ended as {ended}")
        self.said.setdefault("memory short", []).append(time.monotonic() - started if said else None)

    def stopped_hook(self):
        """Stops a hook, which else may come to its end first. Its shim, its snapshot, its fence."""
        table = process_table()
        for hook, (shim, _, name) in table.items():
            if name != "on_Snapshot__10" or table.get(shim, ("", "", ""))[2] != "holdfast-shim":
                continue
            with contextlib.suppress(OSError):
                place = os.readlink(f"/proc/{hook}/cwd") + "/"
                words = re.search(r"/([0-9a-f-]{36})/a(\d+)/", place)
                if place.startswith(str(self.place.path)) and words:
                    os.kill(hook, signal.SIGSTOP)
                    if living(hook) and living(shim):
                        return shim, words[1], words[2]
        return None

    def end_for_memory(self, pid):
        """By the limit of a control group where root may make one; else by the signal that the kernel sends."""
        for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = pathlib.Path(root) / f"holdfast-storm-{pid}"
            with contextlib.suppress(OSError):
                group.mkdir()
                self.place.groups.append(group)
                if not (group / limit).exists():  # no file system of control groups
                    continue
                (group / limit).write_text("16M")
                pathlib.Path(f"/proc/{pid}/oom_score_adj").write_text("1000")  # the first that the kernel chooses
                (group / "cgroup.procs").write_text(str(pid))
                # Two that need memory without end, so that neither is larger than what the kernel shall choose.
                more = 'echo $$ >"$0" && { tail /dev/zero & exec tail /dev/zero; }'
                subprocess.run(["sh", "-c", more, group / "cgroup.procs"], stderr=subprocess.DEVNULL, timeout=self.SAID)
                break
        if living(pid):
            self.by_signal += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def standby(self, worker, dice):
        self.stand(
            "standby gone",
            lambda: self.sql("alter system set synchronous_standby_names = 'gone'", "select pg_reload_conf()"),
            lambda: self.sql("alter system reset synchronous_standby_names", "select pg_reload_conf()"),
        )

    def notifications(self, worker, dice):
        """Another program listens in a transaction that does not end. To fill the queue takes 8 GB before PostgreSQL 17:
        there, as the server answers then."""
        database = self.place.postgres
        if database.version >= 17:
            holder = []

            def begin():
                holder.append(database.session("listen other; begin; select 1;"))
                with contextlib.suppress(Failure):  # the queue is full
                    while True:
                        database.sql(
                            "select count(pg_notify('other', repeat('x', 7000) || g)) from generate_series(1, 40) g"
                        )

            def end():
                database.end_session(holder.pop())
                self.sql("select pg_notification_queue_usage()")

            return self.stand("notifications full", begin, end)
        self.stand(
            "notifications full",
            lambda: self.sql(
                "create function public.full() returns trigger language plpgsql as $$ begin raise exception"
                " 'too many notifications in the NOTIFY queue' using errcode = '54000'; end $$;"
                " create trigger full_ before insert on holdfast.archive_result for each row"
                " execute function public.full()"
            ),
            lambda: self.sql("drop function public.full() cascade"),
        )

    def no_files(self, worker, dice):
        place = self.place.path / "shared"

        def limit():
            for more in range(50):
                now = os.statvfs(place)
                option = f"remount,nr_inodes={now.f_files - now.f_ffree + more}"
                if subprocess.run(["mount", "-o", option, place], stderr=subprocess.DEVNULL).returncode == 0:
                    return

        def lift():
            subprocess.run(["mount", "-o", "remount,nr_inodes=1000000", place], check=True)

        self.stand("archive takes no files", limit, lift, why=False)

    def keys(self, worker, dice):
        """The store takes other keys, and only later the workers learn them."""
        self.stand("keys refused", self.place.bucket.change_keys, self.place.bucket.tell_keys, why=False)

    def jump(self, worker, dice):
        clock = self.place.clock
        ahead = dice.choice(["+7200", "-7200"])
        if clock:
            self.stand("clock jump", lambda: clock.write_text(ahead), lambda: clock.write_text("+45"), why=False)

    faults = {
        "terminate backends": terminate_backends,
        "kill a hook or shim": kill_hook,
        "kill a worker": kill_worker,
        "kill worker and guard": kill_both,
        "stop a worker past its lease": stop_worker,
        "half-open sessions": half_open,
        "partition": partition,
        "refused connections": refuse,
        "answers lost": deaf,
        "database crash": crash_database,
        "scratch full": fill_scratch,
        "archive full": fill_archive,
        "database full": fill_database,
        "memory short": memory,
        "keys refused": keys,
        "standby gone": standby,
        "notifications full": notifications,
        "archive takes no files": no_files,
        "clock jump": jump,
    }


def seeds(dice, pages, leaves, children, leaf_tenths, first=0):
    """URLs of a crawl of depth one, and the URLs that it will find."""
    urls, found = [], set()
    for number in range(first, first + pages):
        urls.append(
            f"http://h{dice.randint(0, 9)}.test/{'stray' if dice.random() < 0.05 else 'page'}/{dice.randint(0, 6)}/{children}/{number}"
        )
        found |= stage.leaf_urls(number, children, leaf_tenths)
    urls += [
        f"http://h{dice.randint(0, 9)}.test/{'stray' if dice.random() < 0.05 else 'leaf'}/{leaf_tenths + dice.randint(0, 3)}/0/x{number}"
        for number in range(first, first + leaves)
    ]
    return urls, found


def run(holdfast, seed, faults, snapshots, pause, pooler, keep, say, store=None):
    dice = random.Random(seed)
    leaf_tenths = 3
    with contextlib.closing(
        stage.Stage(holdfast, workers=3, slots=4, leaf_tenths=leaf_tenths, pooler=pooler, keep=keep, store=store)
    ) as place:
        added = 0

        def add(count):
            nonlocal added
            pages = max(1, count // 8)
            urls, found = seeds(dice, pages, count - pages * 4, 4, leaf_tenths, first=added)
            place.add(urls, depth=1, children=found)
            added += count + 100

        add(snapshots)
        place.add(
            [f"http://capped.test/page/0/6/{number}" for number in range(20)],
            depth=1,
            max_urls=60,
            children={url for number in range(20) for url in stage.leaf_urls(number, 6, leaf_tenths)},
        )
        place.prepare_changes(6)
        place.start()
        rounds = iter(range(200))

        def again():
            if next(rounds, None) is not None:
                place.recapture(dice)

        storm = Storm(place, seed, faults, pause)
        began = time.monotonic()
        storm.run(lambda: add(300), again)
        stormed = time.monotonic() - began
        place.wait_until_sealed(300)
        place.leave()
        problems = storm.problems + place.check() + place.check_changes()
        report(place, storm, seed, stormed, time.monotonic() - began, say)
        if problems:
            place.keep = True
            raise Failure(
                f"seed {seed}: {len(problems)} problems\n" + "\n".join("  " + problem for problem in problems[:30])
            )


def report(place, storm, seed, stormed, lasted, say):
    figures = place.figures()
    recovery = figures["recovery"]
    say(
        f"seed {seed}: {sum(storm.done.values())} faults in {stormed:.0f} s, all sealed after {lasted:.0f} s"
        + (", through PgBouncer" if place.pooler else "")
        + (", archive in an S3 server" if place.bucket else "")
    )
    for name, count in storm.done.items():
        if count:
            say(f"  {count:5} {name}")
    say(
        f"snapshots: {figures['snapshots']} ran, in {figures['runs']} runs: {figures['repeated']:.1%} of the work was repeated"
    )
    say("attempts ended: " + ", ".join(f"{name} {count}" for name, count in sorted(figures["attempts"].items())))
    say("snapshots sealed: " + ", ".join(f"{name} {count}" for name, count in sorted(figures["outcomes"].items())))
    if recovery:
        say(
            f"recovery of a killed worker's snapshots, from the kill to the next owner's claim: {len(recovery)} snapshots, "
            f"median {recovery[len(recovery) // 2]:.1f} s, max {recovery[-1]:.1f} s (lease {LEASE:.0f} s, other faults going on); without the time that "
            f"the database was down or the archive full: max {figures['recovery_net'][-1]:.1f} s"
        )
    say(
        f"workers started: {sum(worker.starts for worker in place.workers)}; hooks of a stopped worker that ran on beside their successors: {figures['stopped_overlaps']}"
    )
    for name, times in storm.said.items():
        if known := sorted(seconds for seconds in times if seconds is not None):
            say(
                f"reason of {name} said in {len(known)} of {len(times)}, after {known[len(known) // 2]:.1f} s, max {known[-1]:.1f} s"
            )
    if storm.by_signal:
        say(f"{storm.by_signal} shims were ended by a signal instead of a control group")
    for note in place.notes:
        say(f"note: {note}")
