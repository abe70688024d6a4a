"""why, events, top, completion, the manual and a node's own endpoint."""

import fcntl
import http.client
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import termios

from support import OK, REFUSED, USAGE, Case, until


class Verbs(Case):
    def setUp(self):
        self.site = self.place()

    def add(self, *urls):
        done = self.site.run("add", *urls)
        self.assertEqual(done.code, OK, str(done))

    def test_why(self):
        self.add("http://127.0.0.1:9/one")
        snapshot = self.site.run("list", "snapshots", "--json").records[0]["id"]
        whole = self.site.run("why", snapshot, "--json")
        self.assertEqual(whole.code, OK, str(whole))
        record = whole.records[0]
        self.assertEqual((record["type"], record["kind"], record["id"]), ("Why", "snapshot", snapshot))
        self.assertIn("It is done: sealed with outcome succeeded", record["reason"])
        self.assertEqual(record["facts"]["outcome"], "succeeded")
        short = self.site.run("why", snapshot[-8:], "--json")
        self.assertEqual(short.records[0]["reason"], record["reason"])
        unknown = self.site.run("why", "5a5a5a5a")
        self.assertEqual(unknown.code, REFUSED, str(unknown))
        self.site.run("add", "--bg", "http://127.0.0.1:9/two")
        crawl = [r for r in self.site.run("list", "crawls", "--json").records if r["status"] != "sealed"][0]
        self.assertIn("no node runs", self.site.run("why", crawl["id"], "--json").records[0]["reason"])

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

    def test_top_on_a_terminal(self):
        self.assertEqual(self.site.run("top").code, USAGE)
        self.add("http://127.0.0.1:9/one")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        before = termios.tcgetattr(slave)
        process = self.site.start("top", "-d", "0.2", stdin=slave, stdout=slave, env={"TERM": "xterm"})
        text = b""

        self.addCleanup(lambda: process.poll() is None and process.kill())

        def shows(word):
            nonlocal text
            while select.select([master], [], [], 0.05)[0]:
                text += os.read(master, 65536)
            return word in text

        until("it draws", lambda: shows(b"nothing runs"))
        self.assertIn(b"order: age", text)
        os.write(master, b"s")
        until("another order", lambda: shows(b"order: plugin"))
        os.write(master, b"p")
        until("it pauses", lambda: shows(b"PAUSED"))
        self.assertNotIn(b"\x1b[2J", text, "the screen is never cleared: that flickers")
        for frame in text.split(b"\x1b[?2026h")[1:]:
            for line in frame.split(b"\x1b[?2026l")[0].split(b"\r\n"):
                plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r", b"", line).decode()
                self.assertLessEqual(len(plain), 80)
        os.write(master, b"q")
        self.assertEqual(self.site.finish(process).code, OK)
        self.assertTrue(shows(b"\x1b[?1049l"), "the screen is given back")
        self.assertEqual(termios.tcgetattr(slave)[3], before[3], "and so are the terminal's settings")
        os.close(master)
        os.close(slave)

    def test_completion_and_manual(self):
        script = self.site.run("completion", "bash")
        self.assertEqual(script.code, OK)

        def complete(*words):
            ask = f'{script.out}\nCOMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _holdfast; echo "${{COMPREPLY[@]}}"'
            return subprocess.run(["bash", "-c", ask.replace("''", "''")], capture_output=True, text=True).stdout.split()

        self.assertIn("why", complete("holdfast", "w"))
        self.assertIn("--follow", complete("holdfast", "events", "--f"))
        self.assertIn("--follow", complete("holdfast", "--data-dir", "x", "events", "--f"))
        self.assertIn("crawls", complete("holdfast", "list", "c"))
        self.assertEqual(self.site.run("completion", "tcsh").code, USAGE)
        for shell in ("zsh", "fish"):
            self.assertIn("events", self.site.run("completion", shell).out)
        manual = self.site.run("manual").out
        for word in (".TH HOLDFAST", "why", "serve", "EXIT STATUS"):
            self.assertIn(word, manual)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=manual, capture_output=True, text=True)
            self.assertEqual(done.stderr, "")

    def test_a_node_answers_for_itself(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.add("http://127.0.0.1:9/one")
        node = self.site.start("worker", env={"HOLDFAST_HTTP_LISTEN": str(port)})

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
        self.assertEqual(float(values["holdfast_node_claiming"]), 1)
        self.assertEqual(float(values["holdfast_node_slots"]), 4)
        self.assertGreater(float(values["holdfast_node_lease_left_seconds"]), 0)
        self.assertGreater(float(values["process_resident_memory_bytes"]), 1e6)
        self.assertEqual(get("/other")[0], 404)
        node.terminate()
        self.assertEqual(self.site.finish(node).code, OK)
        self.assertEqual(get("/healthz")[0], 0)
