"""Each hook here does what no hook should. Whatever it does, it ends within its deadline, its row says what happened,
nothing of it lives on, and what lies outside its directory stays as it was."""

import fcntl
import hashlib
import os
import re
import unittest

from harness.full import FULL, only_in_full
from worker import MISBEHAVE, WorkerCase, figure, open_files, status_field, until
from harness.collection import ROOT, looks_for_leaks

TIMEOUT = 3  # seconds, for hooks that are to reach it
LONG = 60  # for the others, however busy the machine
SUCCESS = """echo '{"type":"ArchiveResult","status":"succeeded","output_str":"%s"}'"""
WRONG_RECORDS = r"""cat <<'END'
{"type":"ArchiveResult"}
{"type":"ArchiveResult","status":["succeeded"]}
{"type":["ArchiveResult"],"status":"succeeded"}
{"type":"ArchiveResult","status":{"a":1}}
["ArchiveResult"]
"ArchiveResult"
42
null
{}
{"type":"Snapshot","url":{}}
{"type":"Snapshot"}
{"type":"Snapshot","url":"javascript:alert(1)"}
{"type":"Snapshot","url":"file:///etc/passwd"}
{"type":"Tag","name":7}
{"type":"Machine","config":"x"}
{"type":"Machine","config":{"LD_PRELOAD":"/tmp/evil.so","A=B":"c"}}
{"type":"Binary","name":[]}
{"type":"RateLimit","host":5,"retry_after":"soon"}
{"type":"RateLimit","host":"\u0000","retry_after":-1e999}
{"type":"ArchiveResult","status":"succeeded"
{"type":"ArchiveResult","status":"succeeded"}}
{"type":"\ud800"}
END
head -c 100000 /dev/zero | tr '\0' '['; echo"""

# name: (event file, script, status, what the error must match, whether a record of success is in the row)
DEEDS = {
    "deaf": ("50", "trap '' TERM HUP INT; while :; do sleep 0.1; done", "failed", r"^timed out after 3s$"),
    "daemon": ("50", f"'{MISBEHAVE}' leave-daemon; " + SUCCESS % "left one", "succeeded", ""),
    "nameless": ("50", f"'{MISBEHAVE}' leave-clean-daemon; " + SUCCESS % "left one", "succeeded", ""),
    "family": ("50", f"exec '{MISBEHAVE}' everything", "failed", r"^timed out"),
    "mute": ("50", "exec >&- 2>&- <&-; while :; do sleep 0.1; done", "failed", r"^timed out"),
    "stalled": ("50", "exec sleep 600", "failed", r"^made no progress for 4s$"),
    # These make progress, each in its way, for longer than one may stand still.
    "silent": ("50", "while ((SECONDS < 15)); do :; done; " + SUCCESS % "computed", "succeeded", ""),
    "writer": (
        "50",
        "while ((SECONDS < 15)); do echo x >>file; sleep 0.2; done; " + SUCCESS % "written",
        "succeeded",
        "",
    ),
    "talker": ("50", "while ((SECONDS < 15)); do echo x >&2; sleep 0.2; done; " + SUCCESS % "told", "succeeded", ""),
    "gigabyte": (
        "50",
        "head -c 1G /dev/zero | tr '\\0' x",
        "failed",
        r"^standard output exceeded 64.0 MiB; 1 line over a limit, not read$",
    ),
    "messages": (
        "50",
        "trap '' TERM; while :; do head -c 1M /dev/zero; done >&2",
        "failed",
        r"^standard error exceeded 16.0 MiB$",
    ),
    "long_line": ("50", "head -c 50000000 /dev/zero | tr '\\0' x; echo; " + SUCCESS % "after it", "succeeded", ""),
    "bytes": (
        "50",
        r"""printf 'caf\351 \377\n' >&2; printf '\300\257\n' >$'b\377d\n.txt'
        printf '{"type":"ArchiveResult","status":"failed","output_str":"caf\351\\u0000","error":"\377\\u001b[2J"}\n'""",
        "failed",
        "",
    ),
    "hog": ("50", "exec tail /dev/zero", "failed", r"^memory exceeded 256.0 MiB$"),
    "hogs": (
        "50",
        "for i in 1 2 3 4 5 6; do setsid tail /dev/zero & done; wait",
        "failed",
        r"^memory exceeded 256.0 MiB$",
    ),
    "crowd": ("50", "trap '' TERM; for i in $(seq 80); do sleep 600 & done; wait", "failed", r"^timed out after 3s$"),
    "bomb": (  # what it forks lives for a moment: on a crowded machine many of them are there at once
        "50",
        f"exec '{MISBEHAVE}' bomb 30",
        "failed",
        r"^(timed out after 3s|memory exceeded 256.0 MiB|had more than 500 processes)$",
    ),
    "child": ("50", "sleep 600 & " + SUCCESS % "left one", "succeeded", ""),
    "grip": ("50", "setsid sh -c 'exec sleep 600' & exit 0", "noresults", ""),
    "shapes": ("50", WRONG_RECORDS + "\nexit 3", "failed", r"exit 3"),
    "many_records": ("50", """yes '{"type":"Tag","name":"x"}' | head -n 200000; exit 4""", "failed", r"exit 4"),
    "links": (
        "50",
        "ln -s /etc/passwd passwd; ln -s / root; ln -s /dev/zero endless; ln -s loop loop; "
        "ln '{outside}/precious' hard; mkfifo urls.jsonl; " + SUCCESS % "linked",
        "succeeded",
        "",
    ),
    "swap": ("50", "cd ..; rm -rf swap; ln -s '{outside}' swap; " + SUCCESS % "swapped", "succeeded", ""),
    "many_files": (
        "50",
        "for ((i = 0; ; i++)); do head -c 1M /dev/zero >file$i; sleep 0.005; done",
        "failed",
        r"^output files exceeded 8.0 MiB; many_files/ holds .* its files are not kept$",
    ),
    "big_file": (
        "50",
        "trap '' TERM XFSZ; while :; do head -c 1M /dev/zero; sleep 0.005; done >file",
        "failed",
        r"^output files exceeded 8.0 MiB; big_file/ holds .* its files are not kept$",
    ),
    "shim_killer": ("50", f"exec '{MISBEHAVE}' kill-shim", "failed", r"shim was killed by SIGKILL"),
    "shim_stopper": ("50", f"exec '{MISBEHAVE}' stop-shim", "failed", r"^timed out"),
    "sleeper": ("50", f"exec '{MISBEHAVE}' stop-itself", "failed", r"^timed out"),
    "crash": ("50", "kill -SEGV $$", "failed", r"killed by SIGSEGV"),
    "eraser": ("50", "rm -rf ../../eraser/* ./* .[!.]*; " + SUCCESS % "erased", "succeeded", ""),
    "locker": (
        "50",
        "mkdir -p in/deep; echo x >in/deep/file; chmod 0 in/deep in . ..; " + SUCCESS % "locked",
        "succeeded",
        "",
    ),
    "deep": (
        "50",
        "for i in $(seq 300); do mkdir d && cd d || exit 1; done; echo x >f; " + SUCCESS % "deep",
        "succeeded",
        r"^not kept, because their paths are too long or too deep \(1\): d/d/",
    ),
    "deaf_daemon": ("50", "trap '' TERM; echo ready; while :; do sleep 0.1; done", "failed", r"^killed by SIGKILL$"),
    "late": ("50", f"'{MISBEHAVE}' leave-daemon; echo ready; sleep 0.3; exit 7", "failed", r"exit 7"),
}
BACKGROUND = {"deaf_daemon", "late"}
# Seconds without progress.
STALLS = {"stalled": 4, "silent": 10, "writer": 10, "talker": 10}
# What a worker that is not root has to do otherwise.
LOCKING = {"locker", "eraser", "links", "swap", "deep", "daemon", "hogs", "shim_killer"}
# Of 24 kinds that a person would try first; the rest only in full.
RARE = {"talker", "nameless", "messages", "many_records", "crash", "sleeper", "late"}


class Hostile(WorkerCase):
    def stage(self, plain, **more):
        home = self.worker_place(
            plain,
            **more,
            WORKER_SNAPSHOTS=6,
            HOOK_MEMORY_LIMIT="256m",
            HOOK_OUTPUT_LIMIT="8m",
            LEASE="30s",
            MARGIN="10s",
            HEARTBEAT="1s",
        )
        home.outside = home.path / "outside"
        home.outside.mkdir()
        for name, mode in (("precious", 0o644), ("tool", 0o755)):
            (home.outside / name).write_text("as it was\n")
            (home.outside / name).chmod(mode)
        (home.outside / "link").symlink_to("/etc/hostname")
        if home.identity:
            for path in (home.outside, *home.outside.iterdir()):
                os.chown(path, home.identity["user"], home.identity["group"], follow_symlinks=False)
        return home

    def check_outside(self, home):
        self.assertEqual((home.outside / "precious").read_text(), "as it was\n")
        self.assertEqual((home.outside / "tool").stat().st_mode & 0o7777, 0o755)
        self.assertEqual(os.readlink(home.outside / "link"), "/etc/hostname")
        self.assertEqual(sorted(path.name for path in home.outside.iterdir()), ["link", "precious", "tool"])

    def rows(self, home):
        return {
            plugin: dict(status=status, output=output, error=error, wall=int(wall or 0), files=int(files))
            for plugin, status, output, error, wall, files in home.sql(
                "select plugin, status, output, replace(error, e'\\n', ' '), wall_ms, jsonb_array_length(output_files) "
                "from holdfast.archive_result order by plugin"
            )
        }

    @staticmethod
    def timeout(name):
        return TIMEOUT if "timed out" in DEEDS[name][3] or name in BACKGROUND else LONG

    def one_round(self, plain, names):
        home = self.stage(plain)
        for name in names:
            order, script, *_ = DEEDS[name]
            home.hook(
                name,
                f"on_Snapshot__{order}_{name}{'.bg' if name in BACKGROUND else ''}.sh",
                script.replace("{outside}", str(home.outside)),
            )
        home.work()
        worker = home.worker_pid()
        for name in names:
            home.queue(
                f"https://site.test/{name}",
                plugins=name,
                TIMEOUT=self.timeout(name),
                **({name.upper() + "_STALL_TIMEOUT": STALLS[name]} if name in STALLS else {}),
            )
        until(
            "every snapshot is sealed",
            lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [[str(len(names))]],
            240,
        )
        self.assertEqual(home.survivors(), [], "alive after the last seal")
        self.assertEqual(home.worker_pid(), worker, "the worker is another one")
        figure(
            f"{len(names)} hostile hooks{' as a plain user' if home.identity else ''}: worker's peak memory "
            f"{int(status_field(worker, 'VmHWM')) // 1024} MiB, open files {open_files(worker)}"
        )
        rows = self.rows(home)
        self.assertEqual(sorted(rows), sorted(names))
        for name in names:
            _, _, status, error = DEEDS[name]
            row = rows[name]
            with self.subTest(name, row=row):
                self.assertEqual(row["status"], status)
                self.assertTrue(re.search(error, row["error"]), row["error"])
                if status == "failed":
                    self.assertTrue(row["error"])
                # Its time, the grace, and room for a busy machine: it was ended, not lost.
                self.assertLess(row["wall"], 1000 * (self.timeout(name) + 20))
        outcomes = dict(
            home.sql("select url, outcome from holdfast.snapshot_sealed join holdfast.snapshot on id = snapshot_id")
        )
        for name in names:
            expected = "succeeded" if DEEDS[name][2] == "succeeded" else "failed"
            self.assertEqual(outcomes[f"https://site.test/{name}"], expected, name)
        self.check_outside(home)
        for path in home.data.glob("archive/*/*/*/*/a*"):
            for base, directories, files in os.walk(path):
                for entry in (*directories, *files):
                    link = os.path.join(base, entry)
                    if os.path.islink(link):
                        self.assertTrue(os.path.realpath(link).startswith(str(path)), link)
        home.leave()
        self.assertEqual(home.survivors(), [], "alive after the worker")
        self.assertEqual(home.run("check", **home.identity).records, [])
        home.holdfast("verify", "--all", **home.identity)
        self.assertEqual(list((home.data / "work/workers").iterdir()), [])

    def big_bomb(self, plain):
        """In the sandbox that hooks have by default: without one, the kernel limits no processes of root."""
        home = self.stage(plain, HOOK_SANDBOX="auto")
        home.hook("big_bomb", "on_Snapshot__50_big_bomb.sh", f"exec '{MISBEHAVE}' bomb 4000")
        home.work()
        with open(MISBEHAVE) as turn:  # one at a time, as in tests/process/stage.cpp
            fcntl.flock(turn, fcntl.LOCK_EX)
            home.queue("https://site.test/big_bomb", plugins="big_bomb", TIMEOUT=LONG)
            until("it is sealed", lambda: home.sql("select outcome from holdfast.snapshot_sealed") == [["failed"]], 60)
        row = self.rows(home)["big_bomb"]
        self.assertRegex(row["error"], "^had more than 500 processes$")
        self.assertEqual(home.survivors(), [], "alive after the seal")
        figure(f"a bomb of 4,000{' of a plain user' if home.identity else ''}: its end after {row['wall']} ms")
        home.leave()

    def test_big_bomb(self):
        self.big_bomb(False)

    @unittest.skipUnless(ROOT, "as root")
    def test_big_bomb_of_a_plain_user(self):
        self.big_bomb(True)

    def test_hooks(self):
        self.one_round(False, [name for name in DEEDS if FULL or name not in RARE])

    @unittest.skipUnless(ROOT, "as root")
    def test_hooks_as_plain_user(self):
        self.one_round(True, list(DEEDS) if FULL else sorted(LOCKING))

    @only_in_full
    def test_again_and_again(self):
        for _ in range(3):
            self.one_round(False, list(DEEDS))

    def test_siblings(self):
        """A hook that writes into another's directory has failed and says so. What it changed is in the other's row;
        what it had laid ready for a later one is gone."""
        home = self.stage(False)
        home.hook("victim", "on_Snapshot__50_victim.sh", "echo mine >mine.txt; " + SUCCESS % "mine")
        home.hook("later", "on_Snapshot__70_later.sh", "echo 'a word' >&2; exit 3")
        home.hook(
            "thief",
            "on_Snapshot__60_thief.sh",
            "echo changed >../victim/mine.txt; echo more >../victim/more.txt; "
            "mkdir -p ../later; echo x >../later/x.txt; " + SUCCESS % "stolen",
        )
        home.hook(
            "mover",
            "on_Snapshot__80_mover.sh",
            "mkdir -p ../last; rmdir ../last; ln -s '%s' ../last; exit 5" % home.outside,
        )
        home.hook("last", "on_Snapshot__90_last.sh", "echo y >y.txt; " + SUCCESS % "last")
        home.work()
        home.queue("https://site.test/siblings", plugins="victim,later,thief,mover,last", TIMEOUT=LONG)
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        rows = self.rows(home)
        self.assertEqual(
            {name: row["status"] for name, row in rows.items()},
            {"victim": "succeeded", "later": "failed", "thief": "failed", "mover": "failed", "last": "succeeded"},
        )
        done = "victim/mine.txt (changed), victim/more.txt (new)"
        self.assertEqual(
            rows["thief"]["error"], f"it wrote into directories of other plugins: later/ (taken away), {done}"
        )
        self.assertEqual(
            rows["victim"]["error"],
            f"after it had ended, its files were changed by thief/on_Snapshot__60_thief: {done}",
        )
        self.assertIn("it wrote into directories of other plugins: last/ (taken away)", rows["mover"]["error"])
        self.assertEqual(rows["later"]["files"], 0)
        self.assertEqual(home.sql("select outcome from holdfast.snapshot_sealed"), [["partial"]])
        # The rows list what was sealed.
        (attempt,) = home.attempts()
        listed = home.sql(
            """select r.plugin || '/' || (f ->> 'path'), f ->> 'sha256', f ->> 'size'
               from holdfast.archive_result r, jsonb_array_elements(r.output_files) f order by 1"""
        )
        self.assertEqual([name for name, *_ in listed], ["last/y.txt", "victim/mine.txt", "victim/more.txt"])
        for name, digest, size in listed:
            body = (attempt / name).read_bytes()
            self.assertEqual((hashlib.sha256(body).hexdigest(), str(len(body))), (digest, size), name)
        self.check_outside(home)
        self.assertEqual((attempt / "last/y.txt").read_text(), "y\n")
        home.leave()
        self.assertEqual(home.survivors(), [])
        self.assertEqual(home.run("verify", "--all").code, 0)

    def test_siblings_beside_others(self):
        """Several hooks run at once: the culprit is unknown, so none is blamed alone; reading is no crime."""
        home = self.stage(False)
        home.hook("victim", "on_Snapshot__50_victim.sh", "echo mine >mine.txt; " + SUCCESS % "mine")
        home.hook("whole", "on_Snapshot__51_whole.sh", "echo mine >mine.txt; " + SUCCESS % "mine")
        home.hook("handled", "on_Snapshot__52_handled.sh", "echo mine >mine.txt; " + SUCCESS % "mine")
        home.hook(
            "thief",
            "on_Snapshot__60_thief.bg.sh",
            "rm ../victim/mine.txt; echo ready; trap 'exit 0' TERM; while :; do sleep 0.1; done",
        )
        home.hook(
            "reader",
            "on_Snapshot__70_reader.sh",
            "until [ ! -e ../victim/mine.txt ]; do sleep 0.1; done; cat ../whole/mine.txt >copy.txt; "
            "touch -d @1 ../handled/mine.txt; ln ../handled/mine.txt hard; " + SUCCESS % "read",
        )
        home.work()
        home.queue("https://site.test/beside", plugins="victim,whole,handled,thief,reader", TIMEOUT=LONG)
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]])
        rows = self.rows(home)
        self.assertEqual(
            {name: row["status"] for name, row in rows.items()},
            {
                "victim": "succeeded",
                "whole": "succeeded",
                "handled": "succeeded",
                "thief": "noresults",
                "reader": "succeeded",
            },
        )
        suspects = "thief/on_Snapshot__60_thief.bg, reader/on_Snapshot__70_reader"
        changed = f"after it had ended, its files were changed by one of {suspects}: "
        self.assertEqual(
            {name: row["error"] for name, row in rows.items()},
            {
                "victim": changed + "victim/mine.txt (gone)",
                "handled": changed + "handled/mine.txt (touched)",
                "whole": "",
                "thief": "",
                "reader": "",
            },
        )
        self.assertEqual(
            {name: row["files"] for name, row in rows.items()},
            {"victim": 0, "whole": 1, "handled": 1, "thief": 0, "reader": 2},
        )
        # No hook has failed, but what is there is not what they made.
        self.assertEqual(
            home.sql("select outcome, reason from holdfast.snapshot_sealed"),
            [["partial", "another hook changed the files of handled, victim afterwards"]],
        )
        home.leave()
        self.assertEqual(home.run("verify", "--all").code, 0)

    @unittest.skipIf(looks_for_leaks(), "the build lets itself be traced")
    def test_hooks_cannot_look_into_the_processes_above_them(self):
        """As a plain user: the environment of the guard and of the worker, where the database is named."""
        home = self.stage(True)
        home.hook(
            "spy",
            "on_Snapshot__50_spy.sh",
            """
            pid=$PPID
            while [ "$pid" -gt 1 ]; do
                echo "$pid $(cat /proc/$pid/comm)" >>seen.txt
                cat /proc/$pid/environ >>environ.txt 2>/dev/null && echo "$pid" >>read.txt
                pid=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f2)
            done
            """
            + SUCCESS % "seen",
        )
        home.work()
        home.queue("https://site.test/spy", plugins="spy", TIMEOUT=LONG)
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]], 20)
        seen = next(home.data.glob("archive/*/*/*/*/a*/spy"))
        pids = {int(line.split()[0]) for line in (seen / "seen.txt").read_text().splitlines()}
        readable = {int(line) for line in (seen / "read.txt").read_text().split()}
        self.assertLessEqual({home.worker_pid(), home.guard.pid}, pids)
        self.assertTrue(readable, "the shim's is its own")
        self.assertEqual({home.worker_pid(), home.guard.pid} & readable, set())
        home.leave()

    def test_directory_of_the_snapshot(self):
        """A hook that puts a link in place of its snapshot's directory fails the snapshot, and nothing else."""
        home = self.stage(False)
        home.hook(
            "usurper",
            "on_Snapshot__50_usurper.sh",
            f"cd ../..; mv $SNAP_DIR taken; ln -s '{home.outside}' $SNAP_DIR; " + SUCCESS % "mine",
        )
        home.work()
        home.queue("https://site.test/usurper", plugins="usurper", TIMEOUT=LONG)
        until("it is sealed", lambda: home.sql("select count(*) from holdfast.snapshot_sealed") == [["1"]], 20)
        self.assertEqual(
            home.sql("select outcome, reason from holdfast.snapshot_sealed"),
            [["failed", "a hook removed or replaced the directory of its snapshot"]],
        )
        self.check_outside(home)
        home.leave()
        self.assertEqual(home.survivors(), [])
        self.assertEqual(home.run("check").records, [])
