"""why, events, status, completion, the manual and a worker's own endpoint."""

import csv
import fcntl
import http.client
import io
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import termios
from pathlib import Path

from metrics_text import check_metrics
from harness.case import OK, PROGRAM, REFUSED, USAGE, Case
from harness.wait import until

INTERRUPTED = 130


class Verbs(Case):
    def setUp(self):
        self.site = self.place(held=True)

    def add(self, *urls):
        self.site.holdfast("add", *urls)

    def test_why(self):
        self.add("http://127.0.0.1:9/one")
        snapshot = self.site.run("list", "snapshots", "--json").records[0]["id"]
        whole = self.site.holdfast("why", snapshot, "--json")
        record = whole.records[0]
        self.assertEqual((record["type"], record["kind"], record["id"]), ("Why", "snapshot", snapshot))
        self.assertIn("with outcome succeeded", record["reason"])
        self.assertEqual(record["facts"]["outcome"], "succeeded")
        short = self.site.run("why", snapshot[-8:], "--json")
        self.assertEqual(short.records[0]["reason"], record["reason"])
        self.site.holdfast("why", "5a5a5a5a", expect=REFUSED)
        self.site.run("add", "--bg", "http://127.0.0.1:9/two")
        crawl = [r for r in self.site.run("list", "crawls", "--json").records if r["status"] != "sealed"][0]
        self.assertIn("no worker is running", self.site.run("why", crawl["id"], "--json").records[0]["reason"])

    def test_events_are_followed(self):
        self.add("http://127.0.0.1:9/one")
        first = self.site.run("events", "-n", "5", "--json")
        self.assertEqual(len(first.records), 5)
        self.assertEqual([r["id"] for r in first.records], sorted(r["id"] for r in first.records))
        self.assertEqual({r["type"] for r in first.records}, {"Event"})
        follower = self.site.start("events", "--follow", "-n", "1", "--json")
        self.addCleanup(lambda: follower.poll() is None and follower.kill())
        follower.stdout.readline()
        self.add("http://127.0.0.1:9/two")
        lines, seen = [], ""
        while '"to_state":"sealed"' not in seen or '"lifecycle":"crawl"' not in seen:
            line = follower.stdout.readline()
            self.assertTrue(line, "it goes on")
            lines.append(line)
            seen += line
        self.assertEqual(len(lines), len(set(lines)), "none twice")
        follower.terminate()
        self.site.finish(follower)

    def test_status_is_followed(self):
        self.add("http://127.0.0.1:9/one")
        lines = self.site.start("status", "--follow", "--json", "-d", "0.1")
        self.addCleanup(lambda: lines.poll() is None and lines.kill())
        for _ in range(2):
            self.assertEqual(json.loads(lines.stdout.readline())["snapshots"], 1)
        lines.terminate()
        self.assertEqual(self.site.finish(lines).code, INTERRUPTED)

    def test_status_is_followed_on_a_terminal(self):
        self.add("http://127.0.0.1:9/one")
        self.site.run("add", "--bg", "http://127.0.0.1:9/two")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = self.site.start("status", "--follow", "-d", "0.2", stdin=slave, stdout=slave, env={"TERM": "xterm"})
        text = b""

        self.addCleanup(lambda: process.poll() is None and process.kill())

        def shows(word):
            nonlocal text
            while select.select([master], [], [], 0.05)[0]:
                text += os.read(master, 65536)
            return word in text

        until("it draws twice", lambda: shows(b"no worker runs") and text.count(b"\x1b[?2026l") > 1)
        self.assertNotIn(b"\x1b[2J", text, "the screen is never cleared: that flickers")
        for frame in text.split(b"\x1b[?2026h")[1:]:
            self.assertLess(frame.count(b"\r\n"), 24, "as many lines as it has")
        os.write(master, b"j\n")
        until("it says why", lambda: shows(b"Its 1 URL waits for a worker to"))
        self.assertTrue(re.search(rb"\x1b\[7m[0-9a-f]{8} +queued", text), "a row is chosen")
        for state in (b"paused", b"resumed"):
            os.write(master, b"p")
            until("it does so", lambda: shows(b": " + state))
        os.write(master, b"\x1b[B\x1b[Aq")
        self.assertEqual(self.site.finish(process).code, INTERRUPTED)
        self.assertTrue(termios.tcgetattr(slave)[3] & termios.ECHO, "keys are shown again")
        self.assertTrue(shows(b"\x1b[?7h\x1b[?25h\x1b[?1049l"), "the screen is given back")
        os.close(master)
        os.close(slave)

    def test_completion_in_other_shells(self):
        path = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
        home = self.site.path
        environment = {**os.environ, "PATH": path, "HOME": str(home), "TERM": "xterm"}
        lines = {
            "holdfast sched": "holdfast schedule",
            "holdfast schedule add --ev": "holdfast schedule add --every",
            "holdfast add --plugins title,wg": "holdfast add --plugins title,wget",
            "holdfast export --format=wac": "holdfast export --format=wacz",
            "holdfast --set worker.snapshots": "holdfast --set worker.snapshots=",
            "holdfast --log-level de": "holdfast --log-level debug",
        }
        if not shutil.which("zsh") or not shutil.which("fish"):
            self.skipTest("zsh or fish is not installed")
        scripts = home / ".config/fish/completions"
        scripts.mkdir(parents=True)
        (scripts / "holdfast.fish").write_text(self.site.run("completion", "fish").out)
        for line, whole in lines.items():
            done = subprocess.run(
                ["fish", "-c", f"complete -C '{line}'"], capture_output=True, text=True, env=environment, cwd=scripts
            )
            self.assertEqual([one.partition("\t")[0] for one in done.stdout.splitlines()], [whole.split()[-1]], line)
        master, slave = os.openpty()
        shell = subprocess.Popen(
            ["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=scripts
        )
        text = b""
        try:
            os.write(master, b"PS1=; autoload -U compinit; compinit -u -D; source <(holdfast completion zsh)\n")
            for number, (line, whole) in enumerate(lines.items()):
                os.write(master, f"{line}\t\x01echo {number}='\x05'\n".encode())  # quoted by its ends
                while f"\n{number}={whole}".encode() not in text.replace(b"\r", b""):
                    ready = select.select([master], [], [], 60)[0]
                    self.assertTrue(ready, text)
                    text += os.read(master, 1 << 16)
        finally:
            shell.kill()
            shell.wait()
            os.close(master)
            os.close(slave)

    def test_completion_and_manual(self):
        script = self.site.run("completion", "bash")
        self.assertEqual(script.code, OK)

        def complete(*words):
            line = " ".join(map(shlex.quote, ("holdfast", *words)))
            ask = f'{script.out}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _holdfast; echo "${{COMPREPLY[@]}}"'
            path = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
            done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, env={**os.environ, "PATH": path})
            return done.stdout.split()

        for words, expected in (
            (["w"], ["why", "webhook", "worker"]),
            (["events", "--f"], ["--follow"]),
            (["--data-dir", "x", "events", "--f"], ["--follow"]),
            (["list", "cr"], ["crawls"]),
            (["list", "crawls", "--outcome", "e"], ["empty"]),
            (["list", "--status", "qu"], ["queued"]),
            (["schedule", ""], ["add", "list", "next"]),
            (["schedule", "add", "--ev"], ["--every"]),
            (["schedule", "add", "--every", "da"], ["daily"]),
            (["schedule", "add", "--every", "=", "da"], ["daily"]),
            (["add", "--plugins", "wg"], ["wget"]),
            (["add", "-p", "wg"], ["wget"]),
            (["add", "--plugins=wg"], ["--plugins=wget"]),
            (["add", "-p", "title,wg"], ["title,wget"]),
            (["add", "--parser", "net"], ["netscape"]),
            (["export", "7f3a", "--format", "wa"], ["wacz", "warc"]),
            (["export", "--format", ""], ["wacz", "warc", "files"]),
            (["config", "worker.sn"], ["worker.snapshots"]),
            (["add", "--set", "worker.sn"], ["worker.snapshots="]),
            (["completion", "z"], ["zsh"]),
            (["add", "--plugins", "nosuch"], []),
        ):
            with self.subTest(words):
                found = complete(*words)
                self.assertEqual(found, [one for one in found if one.startswith(words[-1])])
                self.assertLessEqual(set(expected), set(found))
                self.assertTrue(expected or not found, found)
        self.assertEqual(self.site.run("completion", "tcsh").code, USAGE)
        manual = self.site.run("manual").out
        for word in (".TH HOLDFAST", "why", "serve", "EXIT STATUS"):
            self.assertIn(word, manual)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=manual, capture_output=True, text=True)
            self.assertEqual(done.stderr, "")

    def test_csv(self):
        self.add("http://127.0.0.1:9/a?b=c,d")
        done = self.site.holdfast("list", "snapshots", "--csv")
        [row] = list(csv.DictReader(io.StringIO(done.out, newline="")))
        self.assertEqual(row["url"], "http://127.0.0.1:9/a?b=c,d")
        self.assertEqual((row["status"], row["outcome"]), ("sealed", "succeeded"))
        record = self.site.run("list", "snapshots", "--json").records[0]
        self.assertEqual(set(row), set(record) - {"type"}, "all columns")
        self.assertTrue(
            self.site.run("list", "webhooks", "--csv").out.startswith("name,url,"),
            "a header, even with nothing below it",
        )

    def test_sessions_are_listed(self):
        self.site.hook("crawl", "on_CrawlSetup__10_first.sh", "echo ready")
        self.add("http://127.0.0.1:9/one")
        [session] = self.site.run("list", "sessions", "--json").records
        self.assertEqual((session["type"], session["status"]), ("CrawlSession", "closed"))

    def test_lifecycles(self):
        shown = self.site.run("inspect", "lifecycle").out
        unknown = self.site.run("inspect", "lifecycle", "nothing")
        self.assertEqual(unknown.code, USAGE)
        for name in ("crawl", "snapshot", "archive_result", "binary", "session", "process", "delivery"):
            self.assertIn(f"\n{name}\n", "\n" + shown)
            self.assertIn(name, unknown.err)

    def test_the_log_level_is_changed_while_a_worker_runs(self):
        self.add("http://127.0.0.1:9/one")
        log = self.site.path / "worker.log"
        with open(log, "w") as file:
            worker = self.site.start("worker", stdout=subprocess.DEVNULL, stderr=file)
        self.addCleanup(lambda: worker.poll() is None and worker.kill())
        [row] = until(
            "it has joined",
            lambda: [r for r in self.site.run("list", "workers", "--status", "running", "--json").records],
        )
        self.assertEqual(self.site.run("log-level", "trace").code, OK)
        until("it logs more", lambda: "log level: trace, it was info" in log.read_text())
        self.assertEqual(self.site.run("log-level", "warn", "--worker", row["id"]).code, OK)
        until("it logs less", lambda: "log level: warn, it was trace" in log.read_text())
        os.kill(row["pid"], signal.SIGUSR1)
        until("it is debugged", lambda: "log level: debug, it was warn" in log.read_text())
        os.kill(row["pid"], signal.SIGUSR1)
        until("no more", lambda: "log level: warn, it was debug" in log.read_text())
        self.assertEqual(self.site.run("log-level", "default").code, OK)
        until("as configured", lambda: "log level: info, it was warn" in log.read_text())
        self.assertEqual(self.site.run("log-level", "debug").code, OK)
        worker.terminate()
        self.assertEqual(worker.wait(120), OK)
        with open(log, "w") as file:
            worker = self.site.start("worker", stdout=subprocess.DEVNULL, stderr=file)
        self.addCleanup(lambda: worker.poll() is None and worker.kill())
        until("the next one heeds it too", lambda: "log level: debug, it was info" in log.read_text())
        worker.terminate()
        self.assertEqual(worker.wait(120), OK)
        self.assertEqual(self.site.run("log-level", "loud").code, USAGE)

    def test_a_worker_answers_for_itself(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.add("http://127.0.0.1:9/one")
        worker = self.site.start("worker", env={"HOLDFAST_HTTP_LISTEN": str(port)})

        def get(path):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except OSError:
                return 0, ""
            finally:
                connection.close()

        until("it is ready", lambda: get("/readyz")[0] == 200)
        self.assertEqual(get("/healthz"), (200, "ok\n"))
        status, numbers = get("/metrics")
        self.assertEqual(status, 200)
        values = dict(re.findall(r"^([a-z_]+) (\S+)$", numbers, re.M))
        self.assertEqual(float(values["holdfast_worker_claiming"]), 1)
        self.assertEqual(float(values["holdfast_worker_slots"]), 4)
        self.assertGreater(float(values["holdfast_worker_lease_left_seconds"]), 0)
        self.assertGreater(float(values["process_resident_memory_bytes"]), 1e6)
        check_metrics(self, numbers)
        self.add("http://127.0.0.1:9/two")
        until(
            "it has done something",
            lambda: 'holdfast_worker_hooks_total{outcome="succeeded",plugin="page"} 1' in get("/metrics")[1],
        )
        numbers = get("/metrics")[1]
        check_metrics(self, numbers)
        for line in (
            'holdfast_worker_hook_duration_seconds_bucket{le="+Inf",plugin="page"} 1',
            'holdfast_worker_hook_duration_seconds_count{plugin="page"} 1',
            "holdfast_worker_claims_total 1",
            "holdfast_worker_snapshots_claimed_total 1",
            "holdfast_worker_lease_losses_total 0",
            "holdfast_worker_fencings_total 0",
            "holdfast_worker_takeovers_total 0",
            "holdfast_worker_orphans_killed_total 0",
            "holdfast_worker_ready 1",
        ):
            self.assertIn("\n" + line + "\n", "\n" + numbers)
        self.assertEqual(get("/other")[0], 404)
        os.kill(self.site.server_pid(), signal.SIGINT)
        until("it says that it is not ready", lambda: get("/readyz")[0] == 503)
        until(
            "it counts what the database does not answer",
            lambda: "holdfast_worker_database_errors_total{" in get("/metrics")[1],
        )
        self.assertIn("\nholdfast_worker_ready 0\n", get("/metrics")[1])
        worker.terminate()
        self.assertEqual(self.site.finish(worker).code, OK)
        self.assertEqual(get("/healthz")[0], 0)
