"""A cluster on one machine for the fault suite: a PostgreSQL server, a proxy before each worker, workers, and the proof.

Everything is real: the binaries, the server (durable), the file systems. What the suite adds are hooks that do next to
nothing but leave a trace of every run, in order, in one file.
"""

import contextlib
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

from harness.collection import Collection, named
from harness.postgres import PgBouncer, Server, find_programs, give
from harness.proxy import Proxy
from harness.wait import Failure, free_port, until
from harness.worker import cookies, process_table, processes_below, tail
from model.trace import refused

HERE = pathlib.Path(__file__).resolve().parent
HOSTILE_ROLE = HERE.parent / "support/hostile_role.txt"
MAX_LAPSES = 3  # the default of collection.max_lapses
# A third of the defaults' proportions: the rule between them is checked by the workers at start.
LEASE, HEARTBEAT, MARGIN, GRACE = 3.0, 0.5, 1.5, 0.5


class Postgres(Server):
    """The cluster's database, durable. `mount` may put its files on a disk that can be filled."""

    def __init__(self, directory, mount=lambda path: False, **settings):
        directory.mkdir()
        self.small_disk = mount(directory / "data")
        own = {"max_connections": 60, "shared_buffers": "32MB", "min_wal_size": "32MB", "max_wal_size": "64MB"}
        said = subprocess.run([find_programs() / "postgres", "--version"], capture_output=True, text=True, check=True)
        self.version = int(re.search(r"\d+", said.stdout)[0])
        if self.version >= 17:
            own["max_notify_queue_pages"] = 64
        super().__init__(directory, port=free_port(), fsync="on", **{**own, **settings})
        if (directory / "data").exists():  # also where it could not be mounted
            give(directory / "data", self.identity)
        self.create()
        self.start()
        self.sql("create role holdfast login createrole")
        self.sql("create database holdfast owner holdfast")

    def session(self, text):
        """A session that has run `text`, and stays."""
        process = subprocess.Popen(
            [self.programs / "psql", "-X", "-q", "-d", "postgres"],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **self.identity,
        )
        process.stdin.write(text + "\n\\echo done\n")
        process.stdin.flush()
        while (line := process.stdout.readline()) and line != "done\n":
            pass
        return process

    def end_session(self, process):
        process.stdin.close()
        process.wait(30)
        process.stdout.close()

    def be_hostile(self, pooler):
        """Gives the workers' login the settings that may change a result; behind a pooler those that are allowed."""
        kept, _, refused = HOSTILE_ROLE.read_text().partition("\n\n")
        for line in (kept if pooler else kept + "\n" + refused).splitlines():
            if " = " in line:
                self.sql(f"alter role holdfast set {line}")


class Bucket:
    """An S3 server (versitygw) whose objects are files, and the file with the workers' keys."""

    def __init__(self, program, directory):
        self.program, self.directory, self.port, self.number, self.process = program, directory, free_port(), 0, None
        for name in ("store/archive", "meta"):
            (directory / name).mkdir(parents=True)
        self.tell_keys()
        self.change_keys(0)

    def environment(self):
        return {"AWS_SHARED_CREDENTIALS_FILE": str(self.directory / "keys")}

    def change_keys(self, more=1):
        self.number += more
        self.stop()
        arguments = ["--port", f"127.0.0.1:{self.port}", "--access", "tester", "--secret", f"secret{self.number}"]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    self.program,
                    "--quiet",
                    *arguments,
                    "posix",
                    "--sidecar",
                    self.directory / "meta",
                    self.directory / "store",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

        def listens():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            return False

        until("the store listens", listens, 30)

    def tell_keys(self):
        new = self.directory / "new"
        new.write_text(f"[default]\naws_access_key_id = tester\naws_secret_access_key = secret{self.number}\n")
        new.replace(self.directory / "keys")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Worker:
    """A `holdfast worker` with its guard, kept running as a service manager would."""

    def __init__(self, stage, number, work_dir, clock=None):
        self.stage, self.number, self.work_dir, self.clock = stage, number, work_dir, clock
        self.proxy = Proxy(stage.database_port)
        self.log_path = stage.path / f"worker-{number}.log"
        self.process, self.wanted, self.expected_end, self.ends, self.starts = None, False, False, [], 0
        self.extra = {}

    def environment(self):
        own = {
            "DATABASE_URL": self.stage.url(self.proxy.port),
            "DATA_DIR": self.stage.path / f"worker-{self.number}",
            "WORK_DIR": self.work_dir,
            "WORKER_SNAPSHOTS": self.stage.slots,
        }
        return {**self.stage.environment, **named(own), **(self.clock or {}), **self.extra, **self.stage.extra}

    def start(self):
        self.wanted, self.expected_end = True, False
        self.starts += 1
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.stage.command("worker"),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def pid(self):
        """Of the worker itself: the guard's child."""
        for pid, name in processes_below(self.process.pid):
            if name == "holdfast" and process_table().get(pid, (0,))[0] == self.process.pid:
                return pid
        return None

    def tend(self):
        """Starts it again if it has ended, as it should be running."""
        code = self.process.poll() if self.process else None
        if code is None or not self.wanted:
            return
        self.ends.append(code)
        # 75: fenced itself by leaving. 69, 73: could not join while the database was away, or the disk full.
        # -9, 137: we killed it.
        if not self.expected_end and code not in (75, 69, 73, -9, 137):
            raise Failure(
                f"worker {self.number} ended by itself with status {code}; {self.log_path}:\n{tail(self.log_path)}"
            )
        self.start()

    def kill(self, with_guard=False):
        pid = self.pid()
        if pid is None:
            return None
        self.expected_end = True
        name = self.identity(pid)
        if with_guard:
            self.process.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return name

    def identity(self, pid):
        """The incarnation's id, from its scratch directory; empty if it has none yet."""
        for owner in pathlib.Path(self.work_dir).glob("workers/*/owner"):
            with contextlib.suppress(OSError):
                if owner.read_text().split()[2:3] == [str(pid)]:
                    return owner.parent.name
        return ""

    def leave(self):
        self.wanted = False
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def await_end(self, seconds=60):
        if self.process:
            try:
                return self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                raise Failure(f"worker {self.number} does not leave; {self.log_path}:\n{tail(self.log_path)}") from None
        return 0


HOOK = r"""#!/bin/sh
# http://<host>/<kind>/<tenths of a second>/<children>/<number>: leaves a trace of when it runs, and a file.
for argument; do
  case $argument in --url=*) url=${argument#--url=} ;; --snapshot-id=*) id=${argument#--snapshot-id=} ;; esac
done
attempt=${PWD%/*} attempt=${attempt##*/}
note() { echo "$1 $id $attempt" >>"@TRACE@"; }
note begin
rest=${url#http://*/}
kind=${rest%%/*} rest=${rest#*/}
tenths=${rest%%/*} rest=${rest#*/}
children=${rest%%/*} number=${rest#*/}
case $kind in stray) setsid sleep 3600 >/dev/null 2>&1 & ;; esac
while [ "$tenths" -gt 0 ]; do sleep 0.1; note tick; tenths=$((tenths - 1)); done
echo "the page at $url" >page.txt || exit 1
while [ "$children" -gt 0 ]; do
  # Every second child has a sibling that another page finds as well.
  echo '{"type":"Snapshot","url":"http://'"h$((children % 5)).test/leaf/@LEAF@/0/$((number / (1 + children % 2)))-$children"'"}'
  children=$((children - 1))
done
note end
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"page.txt"}'
"""

BESIDE = r"""#!/bin/sh
trap 'exit 0' TERM
echo ready
echo beside >beside.txt
while :; do sleep 0.2 & wait $!; done
"""


# The text of http://changes.test/<same|moves>/..., one that stays or one that a file has, for the detection of changes.
TEXT = r"""#!/bin/sh
for argument; do
  case $argument in --url=*) url=${argument#--url=} ;; esac
done
case $url in
  http://changes.test/same/*) words="nothing here ever changes" ;;
  http://changes.test/moves/*) words=$(cat "@WORDS@/${url##*/}") || exit 1 ;;
  *) exit 0 ;;
esac
cat >blocks.jsonl <<END || exit 1
{"source":"file","url":"$url","title":"A page that is captured again"}
{"at":"main/p","text":"The harbour has boats, and the boats have names"}
{"at":"main/div/p","text":"Today the harbour master says $words"}
END
"""


def leaf_urls(number, children, leaf_tenths):
    return {
        f"http://h{child % 5}.test/leaf/{leaf_tenths}/0/{number // (1 + child % 2)}-{child}"
        for child in range(1, children + 1)
    }


class Stage(Collection):
    server = Postgres
    settings = {
        "LEASE": f"{LEASE:g}s",
        "HEARTBEAT": f"{HEARTBEAT * 1000:g}ms",
        "MARGIN": f"{MARGIN * 1000:g}ms",
        "KILL_GRACE": f"{GRACE * 1000:g}ms",
        "WORKER_POLL": "1s",
        "DISK_MINIMUM_FREE": "1m",
        "LOG_LEVEL": "debug",
        "LOG_FORMAT": "text",
        "DRAIN_TIMEOUT": "20s",
        "STOP_TIMEOUT": "5s",
        "HOOK_TIMEOUT": "30s",
    }

    def __init__(self, holdfast, workers=3, slots=4, leaf_tenths=1, pooler=False, keep=False, parent=None, store=None):
        super().__init__(parent)
        self.program, self.slots, self.leaf_tenths, self.keep = holdfast, slots, leaf_tenths, keep
        self.extra, self.workers, self.mounts, self.pooler, self.postgres, self.expected = {}, [], [], None, None, {}
        self.clock = None  # the file with the offset of a clock that is wrong
        self.outages = []  # (from, to) when no worker could have worked
        self.kills, self.stopped, self.notes, self.since, self.trace_since = [], set(), [], "now()", 0
        self.archive, self.trace = self.path / "shared" / "archive", self.path / "trace"
        self.environment |= named({"ARCHIVE_ROOT": self.archive})
        self.bucket, self.groups = None, []  # groups: control groups to remove
        self.trace.touch()
        try:
            self.postgres = self.server(self.path / "postgres", lambda path: self.mount(path, "400m", "700"))
            self.postgres.be_hostile(pooler)
            self.database_port = self.postgres.port
            if pooler:
                self.pooler = PgBouncer(self.path / "pgbouncer", self.postgres.port)
                self.database_port = self.pooler.port
            text = HOOK.replace("@TRACE@", str(self.trace)).replace("@LEAF@", str(leaf_tenths))
            self.hook("trace", "on_Snapshot__10_trace.sh", text)
            self.hook("beside", "on_Snapshot__05_beside.bg.sh", BESIDE)
            self.small_disk = self.mount(self.path / "shared", "512m") and self.mount(self.path / "scratch-1", "24m")
            if store:
                self.bucket = Bucket(store, self.path / "shared" / "s3")
                self.archive = self.bucket.directory / "store/archive/pages"
                where = f"s3://archive/pages?endpoint=http://127.0.0.1:{self.bucket.port}&region=us-east-1"
                self.environment |= {**named({"ARCHIVE_ROOT": where}), **self.bucket.environment()}
            clocks = self.find_clock()
            for number in range(1, workers + 1):
                # Scratch on the archive's file system (published by renaming), on a small disk, and elsewhere (by
                # copying).
                work = {1: self.path / "scratch-1", 2: self.path / "shared" / "scratch-2"}.get(
                    number, self.path / f"scratch-{number}"
                )
                work.mkdir(parents=True, exist_ok=True)
                (self.path / f"worker-{number}").mkdir()
                self.workers.append(Worker(self, number, work, clocks if number == 2 else None))
            self.holdfast("migrate")
            self.postgres.sql((HERE / "rows.sql").read_text(), "holdfast")
        except BaseException:
            self.close()
            raise

    def url(self, *ports):
        """Of the primary of the moment, unless ports are named."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports if port) or f"127.0.0.1:{self.postgres.port}"
        which = "&target_session_attrs=read-write" if "," in hosts else ""
        return f"postgresql://holdfast@{hosts}/holdfast?sslmode=disable&gssencmode=disable{which}"

    def mount(self, path, size, mode="755"):
        path.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            return False
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode={mode}", "tmpfs", path], stderr=subprocess.DEVNULL
        )
        if done.returncode == 0:
            self.mounts.append(path)
        return done.returncode == 0

    def find_clock(self):
        """Environment for a worker whose clock is ahead by what it may be; none if libfaketime is not installed."""
        found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not found:
            self.notes.append("no worker with a wrong clock: faketime is not installed")
            return None
        self.clock = self.path / "clock"
        self.clock.write_text("+45")
        return {
            "LD_PRELOAD": found[0],
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def add(self, urls, depth=0, max_urls=None, children=(), options=()):
        """Adds a crawl and notes which URLs it must have in the end."""
        file = self.path / f"seeds-{len(self.expected)}"
        file.write_text("".join(url + "\n" for url in urls))
        arguments = ["--json", "add", "--bg", "--depth", depth, file]
        arguments[2:2] = options
        if max_urls is not None:
            arguments[2:2] = ["--max-urls", max_urls]
        self.holdfast(*arguments)
        crawl = self.postgres.value("select id from holdfast.crawl order by created_at desc limit 1")
        self.expected[crawl] = (set(urls) | set(children), max_urls)
        return crawl

    def prepare_changes(self, pages):
        """Before the start: pages that recapture() captures again and again, half of which change meanwhile."""
        self.environment |= named({"CHANGES_LEARN": "0"})  # else the first difference is noise
        self.words = self.path / "words"
        self.words.mkdir()
        self.hook("text", "on_Snapshot__56_text.sh", TEXT.replace("@WORDS@", str(self.words)))
        self.changing = [
            f"http://changes.test/{kind}/0/0/{number}" for number in range(pages) for kind in ("same", "moves")
        ]

    def recapture(self, dice):
        for number in range(len(self.changing) // 2):
            file = self.words / str(number)
            if dice.random() < 0.6 or not file.exists():
                (file.parent / "new").write_text(" ".join("".join(dice.choices("abcdefgh", k=6)) for _ in range(9)))
                (file.parent / "new").replace(file)
        for _ in range(dice.choice((1, 3))):  # several workers have the same page at once
            self.add(self.changing)

    def check_changes(self):
        """Each change is that between the files of both captures, and a page that stays is never called changed."""
        problems, texts, counts = [], {}, {}
        captures = self.postgres.rows(
            """select e.snapshot_id, s.url, e.directory, e.facts ->> 'change', e.facts ->> 'change_from',
                      exists (select from holdfast.snapshot_sealed n join holdfast.snapshot o on o.id = n.snapshot_id and o.crawl_id = n.crawl_id
                               where o.url = s.url and n.started_at > e.started_at and n.sealed_at <= e.sealed_at)
                 from holdfast.snapshot_sealed e join holdfast.snapshot s on s.id = e.snapshot_id and s.crawl_id = e.crawl_id
                where s.host = 'changes.test' and e.outcome in ('succeeded', 'partial') order by e.sealed_at"""
        )
        for snapshot, _, directory, *_ in captures:
            file = self.archive / directory / "text/blocks.jsonl"
            texts[snapshot] = file.read_text() if file.exists() else None
        for snapshot, url, _, change, before, overtaken in captures:
            kind = url.split("/")[3]
            counts[kind, change] = counts.get((kind, change), 0) + 1
            if (
                kind == "same"
                and texts[snapshot] is not None
                and change not in ("first", "same")
                and (change or overtaken == "f")
            ):
                problems.append(f"snapshot {snapshot} of {url}, which never changes, is called '{change}'")
            if bool(change) and texts[snapshot] is None:
                problems.append(f"snapshot {snapshot} has no text, and is called {change}")
            if before and (texts[snapshot] == texts.get(before)) != (change == "same"):
                problems.append(f"snapshot {snapshot} of {url} is called {change} after {before}, which its files deny")
            if change == "first" and before or change not in ("first", "") and not before:
                problems.append(f"snapshot {snapshot} of {url} is called {change} after '{before}'")
        self.notes.append(
            "captures again: "
            + ", ".join(
                f"{kind} {change or 'not compared'} {count}" for (kind, change), count in sorted(counts.items())
            )
        )
        return problems

    def start(self):
        for worker in self.workers:
            worker.start()

    def tend(self):
        for worker in self.workers:
            worker.tend()

    def open_snapshots(self):
        return int(
            self.postgres.value(
                "select coalesce(sum(snapshots_open + seeds_left), 0) from holdfast.crawl where status <> 'sealed'"
            )
        )

    def wait_until_sealed(self, seconds):
        def done():
            self.tend()
            return self.postgres.value("select count(*) from holdfast.crawl where status <> 'sealed'") == "0"

        try:
            until("every crawl is sealed", done, seconds)
        except Failure as failure:
            self.keep = True
            raise Failure(f"{failure}\n{self.diagnosis()}") from None

    def diagnosis(self):
        """What an engineer would ask first when nothing moves."""
        parts = [
            (
                "queue",
                "select count(*), min(due_for), max(due_for), status, state, max(attempts), max(lapses) from holdfast.v_queue group by status, state",
            ),
            (
                "crawls",
                """select c.id, c.status, c.owner_id, c.retry_at - clock_timestamp(), c.seeds_left, c.snapshots_open, q.ready_at - clock_timestamp(), q.wakes,
                               c.stopping_at, c.judged_to, c.reason from holdfast.crawl c left join holdfast.crawl_queue q on q.crawl_id = c.id where c.status <> 'sealed'""",
            ),
            (
                "lanes",
                """select crawl_id, host, next_at - clock_timestamp(), wants_room from holdfast.crawl_lane where next_at < 'infinity' or host in
                              (select host from holdfast.snapshot_queue)""",
            ),
            ("hosts", "select name, paused, last_at, min_delay, robots_delay, backoff_until from holdfast.host"),
            (
                "workers",
                "select label, held, lease_left, stats - 'hooks' from holdfast.v_worker where status = 'running'",
            ),
            (
                "sessions",
                """select pid, application_name, state, wait_event_type, wait_event, clock_timestamp() - xact_start, pg_blocking_pids(pid), left(query, 80)
                                 from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by xact_start""",
            ),
            (
                "why",
                "select w.reason from (select snapshot_id from holdfast.snapshot_queue limit 3) q cross join lateral holdfast.why(q.snapshot_id) w",
            ),
        ]
        lines = []
        for title, text in parts:
            try:
                lines += [f"  {title}: " + " | ".join(row) for row in self.postgres.rows(text)]
            except Failure as failure:
                lines.append(f"  {title}: {failure}")
        for worker in self.workers:
            table = process_table()
            below = (
                [f"{pid} {name} {table[pid][1]}" for pid, name in processes_below(worker.process.pid) if pid in table]
                if worker.process
                else []
            )
            lines += [
                f"  worker {worker.number}, started {worker.starts} times, network {worker.proxy.mode}, guard {table.get(worker.process.pid) if worker.process else None}, "
                f"below it {below}, free {shutil.disk_usage(worker.work_dir).free >> 20} MiB; last lines:",
                tail(worker.log_path, 6),
            ]
        return "\n".join(lines)

    def leave(self):
        for worker in self.workers:
            worker.leave()
        for worker in self.workers:
            code = worker.await_end()
            if code not in (0, None):
                raise Failure(
                    f"worker {worker.number} left with status {code}; {worker.log_path}:\n{tail(worker.log_path)}"
                )

    # The proof -----

    def check(self):
        """Everything that must hold when all is sealed and the workers have left; returns figures for people."""
        problems = [
            " ".join(row)
            for row in self.postgres.rows("select invariant, object_id, detail from holdfast.check_invariants()")
        ]
        ask = self.postgres.rows
        for crawl, (urls, cap) in self.expected.items():
            have = [row[0] for row in ask(f"select url from holdfast.snapshot where crawl_id = '{crawl}'")]
            lost = urls - set(have) - self.never_found(crawl)
            if cap is None and (lost or set(have) - urls):
                problems.append(
                    f"crawl {crawl}: {len(lost)} URLs are lost ({min(lost, default='')}), {len(set(have) - urls)} came from nowhere"
                )
            if cap is not None and len(have) != min(cap, len(urls)):
                problems.append(f"crawl {crawl}: {len(have)} snapshots with a cap of {cap}")
            if len(have) != len(set(have)):
                problems.append(f"crawl {crawl}: URLs occur twice")
        for row in ask(
            """select s.snapshot_id, s.outcome, s.lapses, count(a.*) filter (where a.ending = 'sealed'), count(a.*) filter (where a.ending = 'lapsed')
                          from holdfast.snapshot_sealed s left join holdfast.v_attempt a on a.snapshot_id = s.snapshot_id
                          group by 1, 2, 3 having not (count(a.*) filter (where a.ending = 'sealed') = 1
                            or (s.outcome = 'quarantined' and s.lapses >= 3 and count(a.*) filter (where a.ending = 'lapsed') >= 3))"""
        ):
            problems.append(f"snapshot {row[0]} ({row[1]}) was sealed {row[3]} times")
        for row in ask(
            """select s.snapshot_id, s.fence, a.fence, s.owner_id, a.process_id, s.directory from holdfast.snapshot_sealed s
                          join holdfast.v_attempt a on a.snapshot_id = s.snapshot_id and a.ending = 'sealed'
                          where a.fence <> s.fence or a.process_id is distinct from s.owner_id or (s.directory is not null and s.directory not like '%/a' || s.fence)"""
        ):
            problems.append(
                "a seal was not its owner's: snapshot {}, fence {}, attempt {}, by {}, held by {}, in {}".format(*row)
            )
        # The constraints are a second line: what they stop has come past the first.
        refused = [line for line in self.postgres.log() if "violates" in line and "ERROR" in line]
        if refused:
            problems.append(
                f"{len(refused)} times the database refused what a guard should have prevented, the first: {refused[0]}"
            )
        problems += self.check_files() + self.check_trace() + self.check_lives()
        return problems

    def never_found(self, crawl):
        """What only pages lead to whose hook was killed, or whose owners died three times: no worker could know of it."""
        found, missed = set(), set()
        for url, outcome in self.postgres.rows(
            f"""select s.url, e.outcome from holdfast.snapshot s join holdfast.snapshot_sealed e
                                                  on e.snapshot_id = s.id and e.crawl_id = s.crawl_id where s.crawl_id = '{crawl}'"""
        ):
            children, number = url.split("/")[5:7]
            if children != "0":
                (found if outcome == "succeeded" else missed).update(
                    leaf_urls(int(number), int(children), self.leaf_tenths)
                )
        return missed - found

    def check_files(self):
        problems, named = [], set()
        for snapshot, directory, digest, files in self.postgres.rows(
            "select snapshot_id, directory, manifest_sha256, files from holdfast.snapshot_sealed where directory is not null"
        ):
            path = self.archive / directory
            named.add(path)
            try:
                manifest = (path / "manifest-sha256.txt").read_bytes()
                if hashlib.sha256(manifest).hexdigest() != digest:
                    problems.append(f"{path}: not the manifest that was sealed")
                listed = dict(reversed(line.split("  ", 1)) for line in manifest.decode().splitlines())
                present = {
                    str(file.relative_to(path)): file
                    for file in path.rglob("*")
                    if file.is_file() and file.name != "manifest-sha256.txt"
                }
                wrong = [
                    name
                    for name, sum_ in listed.items()
                    if name not in present or hashlib.sha256(present[name].read_bytes()).hexdigest() != sum_
                ]
                if wrong or set(present) - set(listed) or len(present) + 1 != int(files):
                    problems.append(f"{path}: wrong {wrong}, extra {sorted(set(present) - set(listed))}")
            except OSError as error:
                problems.append(f"snapshot {snapshot} is sealed, but {error}")
        for words in (["verify", "--all", "--collect"], ["check"]):
            done = self.run(*words)
            if done.code != 0:
                problems.append(f"holdfast {words[0]}: {(done.out + done.err).strip()[-600:]}")
        left = [path for path in self.archive.glob("[0-9]*/*/*/*/*") if path not in named]
        left += [path for path in self.archive.glob("[0-9]*/*/*/*/.a*")]
        if left:
            problems.append(f"{len(left)} leftovers in the archive after they were collected, the first: {left[0]}")
        scratch = [path for worker in self.workers for path in pathlib.Path(worker.work_dir).glob("workers/*")]
        if scratch:
            problems.append(f"{len(scratch)} directories left in scratch, the first: {scratch[0]}")
        workers = {row[0] for row in self.postgres.rows("select id from holdfast.process")}
        orphans = {pid: cookie for pid, cookie in cookies().items() if cookie.split(".")[0] in workers}
        if orphans:
            problems.append(f"orphan processes: {orphans}")
        return problems

    def begin(self):
        """What follows is looked at alone where that matters."""
        self.since, self.trace_since = f"'{self.postgres.value('select clock_timestamp()')}'", self.trace.stat().st_size

    def runs(self, since_begin=False):
        """(word, snapshot, fence) of all that the hooks have noted, in order."""
        for line in self.trace.read_text()[self.trace_since if since_begin else 0 :].splitlines():
            word, snapshot, attempt = line.split()
            yield word, snapshot, int(attempt[1:])

    def check_trace(self):
        """No hook runs on once a later attempt's has begun, and only the last attempt is sealed.

        A worker that is stopped cannot stop its hooks, so those do not count."""
        owners = {
            (row[0], int(row[1])): row[2]
            for row in self.postgres.rows("select snapshot_id, fence, process_id from holdfast.v_attempt")
        }
        newest, overlaps, self.stopped_overlaps = {}, set(), set()
        for _, snapshot, fence in self.runs():
            if fence < newest.setdefault(snapshot, fence):
                stopped = owners.get((snapshot, fence)) in self.stopped
                (self.stopped_overlaps if stopped else overlaps).add((snapshot, fence))
            newest[snapshot] = max(newest[snapshot], fence)
        return [
            f"two hooks at once: snapshot {snapshot}, attempt a{fence} ran on after a{newest[snapshot]} had begun"
            for snapshot, fence in sorted(overlaps)
        ] + [
            f"attempt a{fence} of snapshot {snapshot} was sealed after a{newest[snapshot]} had begun"
            for snapshot, fence in self.postgres.rows("select snapshot_id, fence from holdfast.snapshot_sealed")
            if newest.get(snapshot, 0) > int(fence)
        ]

    def check_lives(self):
        """What happened to the row of each page can happen in the model of tests/model."""
        if not shutil.which("spin"):
            self.notes.append("pages were not compared with the model: spin is not installed")
            return []
        lives = [
            (json.loads(life), int(pages)) for life, pages in self.postgres.rows((HERE / "row_traces.sql").read_text())
        ]
        count = sum(pages for _, pages in lives)
        self.notes.append(f"{count} pages had {len(lives)} different lives, compared with the model")
        wrong = refused([life for life, _ in lives], MAX_LAPSES)
        return [f"{pages} pages lived as the model cannot: {life}" for life, pages in lives if life in wrong]

    def figures(self):
        begun = [(snapshot, fence) for word, snapshot, fence in self.runs() if word == "begin"]
        distinct = len({snapshot for snapshot, _ in begun}) or 1
        ends = {
            row[0]: int(row[1])
            for row in self.postgres.rows("select ending, count(*) from holdfast.v_attempt group by 1")
        }
        outcomes = {
            row[0]: int(row[1])
            for row in self.postgres.rows("select outcome, count(*) from holdfast.snapshot_sealed group by 1")
        }
        recovery, net = [], []
        for name, when in self.kills:
            claims = [
                float(row[0])
                for row in self.postgres.rows(
                    f"""
                select extract(epoch from n.claimed_at) from holdfast.v_attempt a
                  join holdfast.v_attempt n on n.snapshot_id = a.snapshot_id and n.fence = a.fence + 1
                  where a.process_id = '{name}' and a.ending = 'lapsed'"""
                )
            ]
            recovery += [claim - when for claim in claims]
            net += [
                claim - when - sum(max(0, min(end, claim) - max(begin, when)) for begin, end in self.outages)
                for claim in claims
            ]
        return {
            "snapshots": distinct,
            "runs": len(begun),
            "repeated": (len(begun) - distinct) / distinct,
            "attempts": ends,
            "outcomes": outcomes,
            "recovery": sorted(recovery),
            "recovery_net": sorted(net),
            "stopped_overlaps": len(self.stopped_overlaps),
        }

    def close(self):
        """Ends and removes everything; nothing in here may fail."""
        for worker in self.workers:
            worker.wanted = False
            if worker.process and worker.process.poll() is None:
                with contextlib.suppress(OSError):
                    for pid, _ in processes_below(worker.process.pid):
                        os.kill(pid, signal.SIGCONT)
                        os.kill(pid, signal.SIGKILL)
                worker.process.kill()
                worker.process.wait()
            worker.proxy.close()
        for part in (self.pooler, self.postgres, self.bucket):
            if part:
                with contextlib.suppress(Exception):
                    part.stop()
        for group in self.groups:
            with contextlib.suppress(OSError):
                group.rmdir()
        if self.keep:
            print(f"kept: {self.path}")
            return
        for path in reversed(self.mounts):
            subprocess.run(["umount", path], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.path, ignore_errors=True)
